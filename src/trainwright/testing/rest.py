"""A plain synchronous REST client for tests, independent of the client under test.

In: a server's address, its CA and a token or a client certificate. Out: decoded JSON. Blocking, one connection per
thread, no retries. It shares no code with `trainwright.client`.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from trainwright.schema.jsonobject import Json
from trainwright.testing.certificates import KeyPair

CONTENT_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


KEPT_SECONDS = 30.0  # servers close what has been idle for longer: kube-apiserver after 90


class Refused(Exception):
    """The server answered with an error; `status` is its Status object, or the text it sent instead."""

    def __init__(self, method: str, path: str, code: int, body: bytes) -> None:
        self.code = code
        try:
            self.status: Json = json.loads(body)
        except ValueError:
            self.status = {"message": body.decode(errors="replace")}
        self.reason: str = self.status.get("reason", "")
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.status.get('message', '')}")


class _Kept:
    """A connection that is closed when nothing refers to it any more: its thread or its client has ended."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.since = time.monotonic()

    def __del__(self) -> None:
        self.connection.close()


class Rest:
    def __init__(
        self, server: str, ca: Path | None, *, client: KeyPair | None = None, token: str | None = None
    ) -> None:
        parts = urlsplit(server)
        assert parts.hostname is not None
        self.server = server
        self._host, self._port = parts.hostname, parts.port
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca)
            if client is not None:
                self._tls.load_cert_chain(client.certificate, client.key)
        self._thread = threading.local()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @classmethod
    def from_kubeconfig(cls, path: Path, scratch: Path) -> Rest:
        """The current context of a kubeconfig; inline certificates are written to `scratch`, as `ssl` wants files."""
        config = yaml.safe_load(path.read_text())
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)

        def file(holder: Json, key: str) -> Path | None:
            if inline := holder.get(f"{key}-data"):
                target = scratch / f"{path.stem}-{key}"
                target.touch(mode=0o600)
                target.write_bytes(base64.b64decode(inline))
                return target
            return Path(holder[key]) if key in holder else None

        certificate, key = file(user, "client-certificate"), file(user, "client-key")
        client = KeyPair(certificate, key) if certificate and key else None
        return cls(cluster["server"], file(cluster, "certificate-authority"), client=client, token=user.get("token"))

    def connect(self, timeout: float = 30.0) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = 30.0,
    ) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content_type, "Accept": accept}
        kept: _Kept | None = getattr(self._thread, "kept", None)
        if kept is not None and kept.connection.sock is not None and time.monotonic() - kept.since < KEPT_SECONDS:
            kept.connection.sock.settimeout(timeout)
            try:
                return self._send(kept, method, path, data, headers)
            except (http.client.HTTPException, ConnectionError, ssl.SSLEOFError):
                pass  # the server had closed it meanwhile: once more, on a fresh one
        return self._send(_Kept(self.connect(timeout)), method, path, data, headers)

    def _send(
        self, kept: _Kept, method: str, path: str, data: str | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """One exchange. The connection is kept for this thread's next, since a TLS handshake costs more than most."""
        self._thread.kept = None
        kept.connection.request(method, path, data, headers)
        answer = kept.connection.getresponse()
        body = answer.read()
        kept.since = time.monotonic()
        self._thread.kept = kept
        return answer.status, body

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Json:
        code, answer = self.raw(method, path, body, **options)
        if code >= 400:
            raise Refused(method, path, code, answer)
        decoded: Json = json.loads(answer)
        return decoded

    def get(self, path: str, **query: str) -> Json:
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def find(self, path: str) -> Json | None:
        """The object, or None when there is none."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def items(self, path: str, **query: str) -> list[Json]:
        found: list[Json] = self.get(path, **query)["items"]
        return found

    def create(self, path: str, body: Json) -> Json:
        return self.request("POST", path, body)

    def replace(self, path: str, body: Json) -> Json:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Json:
        return self.request("PATCH", path, body, content_type=CONTENT_TYPES[kind])

    def apply(self, path: str, body: Json, manager: str = "test") -> Json:
        query = urlencode({"fieldManager": manager, "force": "true"})
        return self.request("PATCH", f"{path}?{query}", body, content_type=CONTENT_TYPES["apply"])

    def delete(self, path: str, **options: Any) -> Json:
        return self.request("DELETE", path, options or None)

    def delete_if_there(self, path: str) -> None:
        try:
            self.delete(path)
        except Refused as refused:
            if refused.code != 404:
                raise

    def watch(self, path: str, resource_version: str, *, idle: float = 300.0, **query: str) -> Iterator[Json]:
        """Events until the server ends the stream or `idle` seconds pass without a byte (TimeoutError)."""
        connection = self.connect(idle)
        asked = {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true", **query}
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", headers=self._headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise Refused("WATCH", path, answer.status, answer.read())
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()

    def until(
        self, path: str, holds: Callable[[Json | None], Any], *, seconds: float = 30.0, what: str = ""
    ) -> Json | None:
        """Reads the object ten times a second until `holds(object or None)`. Fails after the timeout."""
        end = time.monotonic() + seconds
        while True:
            seen = self.find(path)
            if holds(seen):
                return seen
            if time.monotonic() > end:
                raise AssertionError(
                    f"{path}: {what or 'condition'} did not hold in {seconds:.0f} s; last seen:\n{seen}"
                )
            time.sleep(0.1)
