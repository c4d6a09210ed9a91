"""An API server in the test's own event loop, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from trainwright.embedded.apiserver import ApiServer
from trainwright.schema.jsonobject import Json


class Http:
    """`await http("POST", path, body)` → status, decoded body; the last answer's headers are kept."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession, token: str) -> None:
        self.server = server
        self.session = session
        self.token = token
        self.headers: Any = {}

    async def __call__(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", token: str | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Authorization": f"Bearer {token or self.token}"}
        async with self.session.request(method, self.server.url + path, data=data, headers=headers) as answer:
            self.headers = answer.headers
            text = await answer.text()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    async def apply(self, path: str, body: Json, manager: str = "test", force: bool = False) -> tuple[int, Any]:
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return await self("PATCH", path + query, body, "application/apply-patch+yaml")

    async def merge(self, path: str, body: Json) -> tuple[int, Any]:
        return await self("PATCH", path, body, "application/merge-patch+json")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer(tmp_path / "state") as running:
        yield running


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[Http]:
    import ssl

    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=server.ca_file))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Http(server, session, server.token)
