"""The API server's core without HTTP: real store, real state, built-in types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import builtin_types
from trainwright.embedded.apiserver.controllers import namespaces
from trainwright.embedded.apiserver.operations import writing
from trainwright.embedded.apiserver.operations.writing import SYSTEM, WriteOptions
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Store
from trainwright.embedded.apiserver.types import Type


class Core:
    """The shared core, with a short way to put objects into it."""

    def __init__(self, api: Api) -> None:
        self.api = api
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
        place = namespace if served.namespaced else ""
        return await writing.create(self.api, served, place, decoded, WriteOptions(manager="test"), SYSTEM)


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    store = Store(tmp_path / "state")
    store.open()
    try:
        state = State(store)
        state.load()
        api = Api(state, Registry(builtin_types()))
        state.start()
        await namespaces.ensure(api, "default")
        yield Core(api)
    finally:
        store.close()
