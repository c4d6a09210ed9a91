"""However a watch is cut, expired or refused, the store ends as the server is, and listeners heard of every change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import PODS
from trainwright.client import Client, UnknownOutcome, Unreachable
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import Delta, Source, VirtualClock
from trainwright.controlloop.informer import Informer
from trainwright.schema.jsonobject import Json


class Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class History:
    """A server that remembers what happened, up to a compaction, and replays it from any version: a transport."""

    def __init__(self) -> None:
        self.version = 1
        self.compacted = 0
        self.objects: dict[str, Json] = {}
        self.events: list[tuple[int, bytes]] = []
        self.refusals = 0
        self.bytes_left: int | None = None  # the next stream breaks after so many bytes
        self._cut = asyncio.Event()
        self._news = asyncio.Event()

    def put(self, name: str) -> None:
        self.version += 1
        known = name in self.objects
        uid = self.objects[name]["metadata"]["uid"] if known else f"{name}-{self.version}"
        metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version)}
        self.objects[name] = {"metadata": metadata}
        self._happened("MODIFIED" if known else "ADDED", self.objects[name])

    def drop(self, name: str) -> None:
        if name in self.objects:
            self.version += 1
            gone = self.objects.pop(name)
            gone["metadata"]["resourceVersion"] = str(self.version)
            self._happened("DELETED", gone)

    def compact(self) -> None:
        self.compacted = self.version
        self.cut()

    def cut(self) -> None:
        self._cut.set()
        self._cut = asyncio.Event()
        self._wake()

    def _happened(self, kind: str, thing: Json) -> None:
        self.events.append((self.version, json.dumps({"type": kind, "object": thing}).encode()))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def send(self, request: Request, *, deadline: float) -> Answer:
        if self.refusals:
            self.refusals -= 1
            raise Unreachable("refused")
        body = {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.objects.values())}
        return Answer(200, {}, json.dumps(body).encode())

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Any]:
        if self.refusals:
            self.refusals -= 1
            raise Unreachable("refused")
        yield self._Stream(self, int(dict(request.query)["resourceVersion"]))

    class _Stream:
        def __init__(self, server: History, version: int) -> None:
            self.status = 200
            self.headers: dict[str, str] = {}
            self._server = server
            self._version = version
            self._cut = server._cut

        async def lines(self) -> AsyncIterator[bytes]:
            server = self._server
            if self._version < server.compacted:
                expired = {"kind": "Status", "code": 410, "reason": "Expired"}
                yield json.dumps({"type": "ERROR", "object": expired}).encode()
                return
            while not self._cut.is_set():
                news = server._news
                for version, line in list(server.events):
                    if version > self._version:
                        self._version = version
                        yield self._bitten(line)
                await news.wait()

        def _bitten(self, line: bytes) -> bytes:
            """The line, or its beginning when the connection breaks in the middle of it."""
            left = self._server.bytes_left
            if left is None:
                return line
            if left >= len(line):
                self._server.bytes_left = left - len(line)
                return line
            self._server.bytes_left = None
            self._server.cut()
            if left == 0:
                raise UnknownOutcome("reset")
            return line[:left]

    async def open(self) -> None: ...
    async def close(self) -> None: ...


steps = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd")),
    st.tuples(st.just("put"), st.sampled_from("abcd")),
    st.tuples(st.just("drop"), st.sampled_from("abcd")),
    st.tuples(st.just("cut"), st.just("")),
    st.tuples(st.just("compact"), st.just("")),
    st.tuples(st.just("bite"), st.integers(0, 400)),
    st.tuples(st.just("refuse"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.floats(0, 40)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=25))
def test_whatever_happens_to_the_connection_the_store_ends_as_the_server_is(story: list[tuple[str, Any]]) -> None:
    async def play() -> None:
        clock = VirtualClock()
        server = History()
        source = Source(PODS, Pod)
        told: dict[str, Pod] = {}

        def tell(delta: Delta[Pod]) -> None:
            if delta.new is not None:
                assert told.get(delta.new.metadata.name) == delta.old
                told[delta.new.metadata.name] = delta.new
            elif delta.old is not None:
                assert told.pop(delta.old.metadata.name).metadata.uid == delta.old.metadata.uid  # its last state

        source.listen(tell)
        task = asyncio.create_task(Informer(Client(server), source, clock, jitter=lambda: 0.5).run())
        try:
            await clock.settle()
            for action, argument in story:
                if action == "bite":
                    server.bytes_left = argument
                elif action == "refuse":
                    server.refusals = argument
                elif action == "wait":
                    await clock.advance(argument)
                elif argument:
                    getattr(server, action)(argument)
                else:
                    getattr(server, action)()
                await clock.settle()
            server.bytes_left = None
            await clock.advance(600)  # longer than all refusals together can make it pause
            shown = {pod.metadata.name: pod.metadata.resource_version for pod in source.store}
            assert shown == {name: thing["metadata"]["resourceVersion"] for name, thing in server.objects.items()}
            assert {name: pod.metadata.resource_version for name, pod in told.items()} == shown
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(play())
