"""The API server over TLS, spoken to byte by byte: bodies that are not wanted, too large, in pieces, or never end."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.apiserver.http import listener
from trainwright.embedded.apiserver.http.bodies import MAX_BODY
from waiting import until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader, self.writer, self.token = reader, writer, token

    def send(self, first: str, *fields: str, body: bytes = b"", token: str | None = None) -> None:
        lines = [f"{first} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token or self.token}", *fields]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    async def answer(self) -> tuple[int, Any]:
        async with asyncio.timeout(30):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
            body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        return int(head.split()[1]), json.loads(body) if body else None


@asynccontextmanager
async def connected(server: ApiServer) -> AsyncIterator[Wire]:
    host, port = server.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cafile=server.ca_file)
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        yield Wire(reader, writer, server.token)
    finally:
        writer.close()


async def test_who_may_not_write_is_refused_before_the_body_is_sent(server: ApiServer) -> None:
    async with connected(server) as wire:
        wire.send(f"POST {CONFIG_MAPS}", "Content-Length: 1000", "Expect: 100-continue", token="nobody")
        status, said = await wire.answer()
        assert (status, said["reason"]) == (401, "Unauthorized")


async def test_a_body_in_chunks_is_one_body(server: ApiServer) -> None:
    body = b'{"metadata":{"name":"in-chunks"}}'
    chunks = b"".join(b"1\r\n%b\r\n" % body[at : at + 1] for at in range(len(body))) + b"0\r\n\r\n"
    async with connected(server) as wire:
        fields = ("Transfer-Encoding: chunked", "Content-Type: application/json", "Expect: 100-continue")
        wire.send(f"POST {CONFIG_MAPS}", *fields)
        assert await wire.answer() == (100, None)
        wire.writer.write(chunks)
        status, made = await wire.answer()
        assert (status, made["metadata"]["name"]) == (201, "in-chunks")
        wire.send(f"GET {CONFIG_MAPS}/in-chunks")
        assert (await wire.answer())[0] == 200


async def test_a_body_that_grows_too_large_is_refused_while_it_comes(server: ApiServer) -> None:
    async with connected(server) as wire:
        wire.send(f"POST {CONFIG_MAPS}", "Transfer-Encoding: chunked", "Content-Type: application/json")
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(MAX_BODY // 0x10000 + 1):
            wire.writer.write(piece)
        status, said = await wire.answer()
        assert (status, said["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_that_stops_is_refused_after_a_while(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "BODY_SECONDS", 0.1)
    async with connected(server) as wire:
        wire.send(f"POST {CONFIG_MAPS}", "Content-Length: 10", "Content-Type: application/json", body=b"{")
        status, said = await wire.answer()
        assert (status, said["reason"]) == (408, "Timeout")


async def test_chunks_that_are_none_are_a_bad_request(server: ApiServer) -> None:
    async with connected(server) as wire:
        wire.send(f"POST {CONFIG_MAPS}", "Transfer-Encoding: chunked", "Content-Type: application/json")
        wire.writer.write(b"1\r\n{\r\nnot a length\r\n")
        status, said = await wire.answer()
        assert (status, said["reason"]) == (400, "BadRequest")


async def test_a_watcher_that_goes_away_without_a_word_is_forgotten(server: ApiServer) -> None:
    watchers = server.server.state.table("configmaps").watchers
    async with connected(server) as wire:
        wire.send(f"GET {CONFIG_MAPS}?watch=true")
        await until("the watch to begin", lambda: len(watchers) == 1)
        wire.writer.transport.abort()
    await until("the watch to end", lambda: not watchers)


async def test_a_request_behind_a_watch_waits_for_its_end(server: ApiServer) -> None:
    async with connected(server) as wire:
        wire.send(f"GET {CONFIG_MAPS}?watch=true&timeoutSeconds=1")
        wire.send(f"GET {CONFIG_MAPS}")
        async with asyncio.timeout(30):
            assert b"chunked" in await wire.reader.readuntil(b"\r\n\r\n")
            await wire.reader.readuntil(b"0\r\n\r\n")
        status, found = await wire.answer()
        assert (status, found["kind"]) == (200, "ConfigMapList")
