"""Service-account tokens in pods' volumes: fetched at start, renewed before they end, as a kubelet does.

In: pods with projected `serviceAccountToken` sources. Out: token files, and the time to renew each: after four fifths
of its life, or a day. That time is kept in the pod's directory, for the node that adopts the pod. A renewal that fails
leaves the old token, which is valid for the last fifth of its life, and is tried again.
Invariant: a reader in the pod sees a whole old token or a whole new one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainwright.api.resources import SERVICE_ACCOUNTS
from trainwright.api.times import seconds_of
from trainwright.client import Client, ClientError, NotFound
from trainwright.controlloop import Clock
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec.declarations import declared
from trainwright.embedded.node.podspec.environment import Unresolved
from trainwright.embedded.node.storage.volumes import DEFAULT_MODE
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)


DEFAULT_SECONDS = 3600
LONGEST_SECONDS = 24 * 3600.0
"""A token is renewed after this time, however long it is valid."""
RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class TokenSource:
    """One `serviceAccountToken` of a projected volume."""

    volume: str
    path: str
    audience: str
    seconds: int
    mode: int

    @property
    def key(self) -> str:
        return f"{self.volume}/{self.path}"


def token_sources(pod: Json) -> Iterator[TokenSource]:
    for volume in pod["spec"].get("volumes") or ():
        projected = volume.get("projected") or {}
        for source in projected.get("sources") or ():
            if wanted := source.get("serviceAccountToken"):
                yield TokenSource(
                    volume["name"],
                    wanted["path"],
                    wanted.get("audience", ""),
                    wanted.get("expirationSeconds", DEFAULT_SECONDS),
                    projected.get("defaultMode", DEFAULT_MODE),
                )


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    renew_at: float


class PodTokens:
    """The tokens of this node's pods. Times are seconds since the epoch, because they outlive the process."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._renew_at: dict[str, dict[str, float]] = {}

    async def fetch(self, pod: Json) -> dict[str, Token]:
        """A token for each source, by volume and path.

        Without its service account a pod waits, as in a cluster, unless the token is for an optional volume.
        """
        found = {}
        optional = declared(pod).optional_volumes
        for source in token_sources(pod):
            try:
                found[source.key] = await self._request(pod, source)
            except NotFound as error:
                if source.volume not in optional:
                    raise Unresolved(f"no token for service account {account_of(pod)}: {error}") from error
        return found

    async def remember(self, directory: PodDirectory, tokens: Mapping[str, Token]) -> None:
        """Keeps the times at which `renew` has to renew the tokens."""
        if tokens:
            await self._keep(directory, {key: token.renew_at for key, token in tokens.items()})

    def forget(self, uid: str) -> None:
        self._renew_at.pop(uid, None)

    async def renew(self, pod: Json, directory: PodDirectory) -> float:
        """Renews the tokens that are due. Returns the seconds until the next one is, infinite if the pod has none."""
        wanted = list(token_sources(pod))
        if not wanted:
            return float("inf")
        if directory.uid not in self._renew_at:
            self._renew_at[directory.uid] = await asyncio.to_thread(directory.token_times)
        times = dict(self._renew_at[directory.uid])
        for source in wanted:
            if times.get(source.key, 0.0) > self._clock.wall():
                continue
            try:
                token = await self._request(pod, source)
            except ClientError as error:
                metadata = pod["metadata"]
                log.warning("pod %s/%s: %s not renewed: %s", metadata["namespace"], metadata["name"], source.key, error)
                times[source.key] = self._clock.wall() + RETRY_SECONDS
                continue
            path = directory.volumes / source.volume / source.path
            await asyncio.to_thread(_replace, path, token.text, source.mode)
            times[source.key] = token.renew_at
        if times != self._renew_at[directory.uid]:
            await self._keep(directory, times)
        return max(0.0, min(times[source.key] for source in wanted) - self._clock.wall())

    async def _keep(self, directory: PodDirectory, times: dict[str, float]) -> None:
        self._renew_at[directory.uid] = times
        await asyncio.to_thread(directory.write_token_times, times)

    async def _request(self, pod: Json, source: TokenSource) -> Token:
        metadata = pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [source.audience] if source.audience else [],
                "expirationSeconds": source.seconds,
                "boundObjectRef": bound,
            },
        }
        answer = await self._client.create(
            SERVICE_ACCOUNTS, request, metadata["namespace"], name=account_of(pod), subresource="token"
        )
        now = self._clock.wall()
        life = seconds_of(answer["status"]["expirationTimestamp"]) - now
        return Token(answer["status"]["token"], now + min(0.8 * life, LONGEST_SECONDS))


def account_of(pod: Json) -> str:
    return pod["spec"].get("serviceAccountName") or "default"


def _replace(path: Path, text: str, mode: int) -> None:
    """Replaces the file. The pod sees the new one, because the directory is mounted and not the file."""
    path = path.resolve()  # through the link that leads to the volume's present files
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(mode)
    os.replace(temporary, path)
