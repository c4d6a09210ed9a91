"""The API server's core without HTTP: real state and built-in types, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.operations.creating import create
from trainwright.embedded.apiserver.operations.finalizing import ensure_namespace
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, replacing
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.memory import MemoryStore
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.testing.virtualserver import VirtualServer


class Core:
    """The shared core, with a short way to put objects into it."""

    def __init__(self, api: Api, clock: VirtualClock) -> None:
        self.api = api
        self.clock = clock
        self.state = api.state

    def served(self, plural: str, group: str = "", version: str = "v1") -> Type:
        found = self.api.registry.find(group, version, plural)
        assert found is not None
        return found

    async def create(self, plural: str, obj: dict[str, Any], *, group: str = "", namespace: str = "default") -> Any:
        served = self.served(plural, group)
        whole = {"apiVersion": served.api_version, "kind": served.kind, **obj}
        decoded, _ = served.strategy.decode(whole)
        served.strategy.default(decoded)
        key = Key(served.resource, namespace if served.namespaced else "", "")
        options = WriteOptions(manager="test")
        return await create(self.api, Write(served, key, SYSTEM, options, replacing(decoded), method="create"))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def server(clock: VirtualClock) -> AsyncIterator[VirtualServer]:
    """The whole server, with its controllers, behind a client."""
    async with VirtualServer(clock=clock) as running:
        yield running


@pytest.fixture
async def core(clock: VirtualClock) -> Core:
    state = State(MemoryStore(), clock)
    state.start()
    api = Api(state, Registry(builtin_types(clock)))
    await ensure_namespace(api, "default")
    return Core(api, clock)
