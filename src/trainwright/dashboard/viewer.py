"""One viewer: a connection to the API server with the viewer's own credentials, and the pictures that it pays for.

A picture of a namespace (or of all) is shared by the viewer's open pages, and goes some seconds after the last of
them, so that a reload does not list everything anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from trainwright.api.resources import Resource
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, ClientError
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.curves import Curves
from trainwright.dashboard.picture import Picture

LINGER_SECONDS = 20.0
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class Viewer:
    """`connection` is asked for each time: a local API server may have another port after each start."""

    def __init__(self, connection: Callable[[], Connection], curves: Curves, *, may_change: bool) -> None:
        self.connection = connection
        self.curves = curves
        self.may_change = may_change
        self.csrf = ""
        self._pictures: dict[str, _Shared] = {}
        self._name: str | None = None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with Client.to(self.connection()) as client:
            yield client

    async def name(self) -> str | None:
        """The user that the API server takes the viewer for; None when it does not know the credentials."""
        if self._name is None:
            try:
                async with self.client() as client:
                    review = await client.create(SELF_REVIEWS, {"kind": "SelfSubjectReview", **_VERSION})
            except ApiError as error:
                # A server before 1.28 has no such review: who may ask at all is known to it.
                return None if error.status.code == 401 else ""
            except ClientError:
                return ""
            info = (review.get("status") or {}).get("userInfo") or {}
            found = str(info.get("username") or "")
            self._name = None if found == "system:anonymous" else found
        return self._name

    async def home(self) -> str:
        """The namespace to begin with: a service account's own, else the connection's."""
        parts = (await self.name() or "").split(":")
        return (
            parts[2] if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4 else self.connection().namespace
        )

    @asynccontextmanager
    async def picture(self, namespace: str) -> AsyncIterator[Picture]:
        """The TrainJobs of a namespace, or with an empty name of all; shared while it is open."""
        shared = self._pictures.get(namespace)
        if shared is None:
            shared = self._pictures[namespace] = _Shared(Picture(self.connection, namespace or None, self.curves))
            await shared.open()
        shared.users += 1
        shared.stay()
        try:
            yield shared.picture
        finally:
            shared.users -= 1
            if not shared.users:
                shared.linger(lambda: self._pictures.pop(namespace, None))

    async def close(self) -> None:
        while self._pictures:
            _, shared = self._pictures.popitem()
            shared.stay()
            await shared.close()


_VERSION = {"apiVersion": SELF_REVIEWS.api_version}


class _Shared:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.users = 0
        self._stack = AsyncExitStack()
        self._leaving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._stack.enter_async_context(self.picture)

    async def close(self) -> None:
        await self._stack.aclose()

    def stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def linger(self, forget: Callable[[], object]) -> None:
        async def leave() -> None:
            await asyncio.sleep(LINGER_SECONDS)
            self._leaving = None
            forget()
            await self.close()

        self._leaving = asyncio.create_task(leave(), name="close a picture")
