"""Credentials for an API server: tokens, token files, client certificates, exec plugins.

The transport calls `current()` before every request; it returns a cached credential while that is valid. After a 401
the transport calls `forget()` once, and the next `current()` reads the file or runs the plugin again.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from trainwright.api.times import seconds_of
from trainwright.client.errors import ConfigError
from trainwright.schema.jsonobject import Json

TOKEN_REREAD_SECONDS = 60.0
EXEC_TIMEOUT_SECONDS = 60.0
EXPIRY_MARGIN_SECONDS = 10.0


class Credential(msgspec.Struct, frozen=True):
    """The credential of one request: an Authorization header, a client certificate, or both."""

    authorization: str | None = None
    certificate: bytes | None = None
    key: bytes | None = None


class Credentials(Protocol):
    async def current(self) -> Credential: ...

    def forget(self) -> bool:
        """Called after a 401. True when the next `current()` may return another credential."""
        ...


class StaticCredentials:
    """A credential that does not change: a token, basic authentication, a client certificate."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        return self._credential

    def forget(self) -> bool:
        return False


class TokenFile:
    """A token in a file that is renewed, as the kubelet does: the file is read every minute and after a 401."""

    def __init__(self, path: Path, *, certificate: bytes | None = None, key: bytes | None = None) -> None:
        self._path = path
        self._certificate, self._key = certificate, key
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        if self._credential is None or time.monotonic() - self._read_at >= TOKEN_REREAD_SECONDS:
            try:
                token = self._path.read_text().strip()
            except OSError as error:
                raise ConfigError(f"cannot read the token file {self._path}: {error.strerror}") from error
            if not token:
                raise ConfigError(f"the token file {self._path} is empty")
            self._credential = Credential(f"Bearer {token}", self._certificate, self._key)
            self._read_at = time.monotonic()
        return self._credential

    def forget(self) -> bool:
        self._credential = None
        return True


class ExecPlugin:
    """A program that prints an ExecCredential; it runs when there is none or the last one is about to expire."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        directory: Path,
        cluster: Mapping[str, Any],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api_version = str(spec.get("apiVersion", ""))
        if self._api_version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
            raise ConfigError(
                f"exec plugin: apiVersion {self._api_version!r} is not supported;"
                " use client.authentication.k8s.io/v1 or v1beta1"
            )
        command = spec.get("command")
        if not command:
            raise ConfigError("exec plugin: command is required")
        # As kubectl does: a path with a separator is relative to the kubeconfig, a bare name is looked up in PATH.
        self._command = str(directory / command) if os.sep in command and not os.path.isabs(command) else str(command)
        self._args = [str(argument) for argument in spec.get("args") or ()]
        self._env = {str(entry["name"]): str(entry["value"]) for entry in spec.get("env") or ()}
        self._hint = str(spec.get("installHint") or "")
        self._cluster = dict(cluster) if spec.get("provideClusterInfo") else None
        self._now = now
        self._credential: Credential | None = None
        self._expires_at = float("inf")
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._lock:  # one run serves everyone who waits
            if self._credential is None or self._now() >= self._expires_at - EXPIRY_MARGIN_SECONDS:
                await self._run()
            assert self._credential is not None
            return self._credential

    def forget(self) -> bool:
        self._credential = None
        return True

    async def _run(self) -> None:
        info: Json = {
            "apiVersion": self._api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        if self._cluster is not None:
            info["spec"]["cluster"] = self._cluster
        environment = {**os.environ, **self._env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *self._args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            hint = f"\n{self._hint}" if self._hint else ""
            raise ConfigError(f"exec plugin {self._command}: cannot be run: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(EXEC_TIMEOUT_SECONDS):
                out, err = await process.communicate()
        except TimeoutError as error:
            raise ConfigError(f"exec plugin {self._command}: gave no answer in {EXEC_TIMEOUT_SECONDS:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            tail = err.decode("utf-8", "replace").strip()[-400:]
            raise ConfigError(f"exec plugin {self._command}: exit code {process.returncode}: {tail}")
        self._take(out)

    def _take(self, out: bytes) -> None:
        try:
            answer = json.loads(out)
            status = answer["status"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"exec plugin {self._command}: did not print an ExecCredential with a status") from error
        if answer.get("apiVersion") != self._api_version:
            raise ConfigError(
                f"exec plugin {self._command}: printed apiVersion {answer.get('apiVersion')!r},"
                f" the kubeconfig asks for {self._api_version!r}"
            )
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise ConfigError(
                f"exec plugin {self._command}: printed neither a token nor a client certificate with its key"
            )
        self._credential = Credential(
            f"Bearer {token}" if token else None,
            certificate.encode() if certificate else None,
            key.encode() if key else None,
        )
        expiry = status.get("expirationTimestamp")
        try:
            self._expires_at = seconds_of(expiry) if expiry else float("inf")
        except ValueError as error:
            raise ConfigError(f"exec plugin {self._command}: expirationTimestamp {expiry!r} is not a time") from error
