"""The objects of one selection, kept current by a list and a watch.

When the API server goes away the mirror keeps what it last saw, says so through `is_away`, and follows again as soon as
the server is back. A watch that breaks does not mean that the server is away: only a new connection that fails too
does. The connection is asked for at each attempt: a local API server may have another port after each start.

This is not `controlloop`'s informer: a user wants to see at once that the server is away, where an informer backs off
for half a minute and does not tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trainwright.api.resources import Resource
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, ClientError, Forbidden, ServerError, Unauthorized
from trainwright.client.kubeconfig import Connection
from trainwright.client.requests import Selection
from trainwright.schema.jsonobject import Json

RECONNECT_SECONDS = 0.3


def _no_news(changed: Json | None) -> None: ...


class Mirror:
    """The objects of one selection, as of the last event."""

    def __init__(
        self,
        connection: Callable[[], Connection],
        resource: Resource,
        namespace: str | None,
        selection: Selection,
        announce: Callable[[], None],
        on_change: Callable[[Json | None], None] = _no_news,
    ) -> None:
        """`on_change` gets each object that comes, changes or goes, and None after a list."""
        self._connection = connection
        self.resource = resource
        self._namespace = namespace
        self._selection = selection
        self._announce = announce
        self._on_change = on_change
        self.items: dict[str, Json] = {}
        self.connected = False
        self.is_away = False
        self._answers = 0

    async def follow(self) -> None:
        while True:
            answers = self._answers
            try:
                async with Client.to(self._connection()) as client:
                    while True:  # a watch that the server ended is opened again after a new list
                        await self._list_and_watch(client)
            except (Forbidden, Unauthorized):
                raise
            except ClientError as error:
                self.connected = False
                is_answer = isinstance(error, ApiError) and not isinstance(error, ServerError)
                if self._answers == answers and not is_answer:
                    self.is_away = True
                self._announce()
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _list_and_watch(self, client: Client) -> None:
        listed = await client.list(self.resource, self._namespace, **self._selection)
        self.items = {item["metadata"]["uid"]: item for item in listed.items or ()}
        self._answers += 1
        self.is_away = False
        self.connected = True
        self._on_change(None)
        self._announce()
        since: Selection = {**self._selection, "resource_version": listed.resource_version}
        async with client.watch(self.resource, self._namespace, **since) as events:
            async for event in events:
                if event.object is None:
                    continue
                uid = event.object["metadata"]["uid"]
                if event.type == "DELETED":
                    self.items.pop(uid, None)
                else:
                    self.items[uid] = event.object
                self._on_change(event.object)
                self._announce()
