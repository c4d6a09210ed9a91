"""A watch that notes when each object first was as wanted, and the API server that it watches."""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import yaml

METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}


class Server:
    """The API server of a kubeconfig with inline credentials."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url: str = cluster["server"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:  # ssl reads key material from files only
            for member in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[member]) + b"\n")
            pair.flush()
            self.tls.load_cert_chain(pair.name)

    @asynccontextmanager
    async def session(self, url: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections to the API server, or to another on loopback, whose certificate is not looked at."""
        connector = aiohttp.TCPConnector(ssl=False if url else self.tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        async with aiohttp.ClientSession(
            url or self.url, connector=connector, timeout=timeout, read_bufsize=2**20
        ) as session:
            yield session


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status | None = None
    message: str = ""

    @property
    def is_complete(self) -> bool:
        conditions = (self.status.conditions if self.status else None) or []
        return any(condition.type == "Complete" and condition.status == "True" for condition in conditions)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class Watcher:
    """Notes when each object is first seen, and when it is first seen as wanted.

    `async with` returns when the watch is established.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        path: str,
        names: frozenset[str],
        *,
        headers: dict[str, str],
        wanted: Callable[[_Object], bool] = lambda found: True,
    ) -> None:
        self._session, self._path, self._names = session, path, names
        self._headers, self._wanted = headers, wanted
        self._decoder = msgspec.json.Decoder(_Event)
        self._changed = asyncio.Condition()
        self._established = asyncio.Event()
        self.noticed: dict[str, float] = {}
        self.seen: dict[str, float] = {}

    async def __aenter__(self) -> Watcher:
        async with self._session.get(self._path, params={"limit": "1"}) as answer:
            answer.raise_for_status()
            version = (await answer.json())["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._read(version))
        established = asyncio.create_task(self._established.wait())
        await asyncio.wait({self._task, established}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            established.cancel()
            self._task.result()
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, names: frozenset[str]) -> None:
        """Returns when all of `names` have been seen; raises what ended the watch."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._task.done() or names <= self.seen.keys())
        if not names <= self.seen.keys():
            self._task.result()

    async def _read(self, version: str) -> None:
        query = {"watch": "true", "resourceVersion": version}
        try:
            async with self._session.get(self._path, params=query, headers=self._headers) as answer:
                answer.raise_for_status()
                self._established.set()
                while line := await answer.content.readline():
                    await self._note(self._decoder.decode(line))
            raise ConnectionError(f"the watch of {self._path} ended")
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def _note(self, event: _Event) -> None:
        if event.type == "ERROR":
            raise ConnectionError(f"the watch of {self._path} failed: {event.object.message}")
        name = event.object.metadata.name
        if event.type == "DELETED" or name not in self._names or name in self.seen:
            return
        now = time.monotonic()
        self.noticed.setdefault(name, now)
        if self._wanted(event.object):
            self.seen[name] = now
            async with self._changed:
                self._changed.notify_all()
