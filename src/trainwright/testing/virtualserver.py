"""A real API server in memory and in virtual time, for tests of operators, controllers and plugins.

    async with VirtualServer() as server:
        await server.admin.create(TRAIN_JOBS, job, "default")
        operator = Operator(server.client, settings, clock=server.clock)
        ...
        await server.clock.advance(60)                       # no test ever sleeps
        assert server.get(JOB_SETS, "job") is not None       # what is stored, without a request
        assert server.faults.writes == []                    # what `client` asked for
        server.faults.rules.append(Rule(DropAfter(), method="PATCH"))

The server validates, defaults, collects garbage and refuses as `trainwright up` does; it is the same code, without
disk and sockets. The package's CRDs are installed once for each process and copied from then on.
"""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType

from trainwright.api.resources import Resource
from trainwright.client import Client
from trainwright.client.servertime import ServerTime
from trainwright.clock import VirtualClock
from trainwright.embedded import manifests
from trainwright.embedded.apiserver.inprocess import InProcessTransport
from trainwright.embedded.apiserver.server import Server
from trainwright.embedded.apiserver.storage.memory import MemoryStore
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import FaultyTransport

_INSTALLED: dict[frozenset[str], MemoryStore] = {}  # by the CRDs that were left out


class VirtualServer:
    """`client` is for what is tested: its requests are recorded, and meet the faults. `admin` is for the test itself.

    `without` names CRDs that are not installed, such as `jobsets.jobset.x-k8s.io`; `with_alpha` serves Kubernetes' own
    PodGroups.
    """

    def __init__(
        self, *, clock: VirtualClock | None = None, without: Collection[str] = (), with_alpha: bool = False
    ) -> None:
        self.clock = clock or VirtualClock()
        self._with_alpha = with_alpha
        self._without = frozenset(without)

    async def __aenter__(self) -> VirtualServer:
        self.store = (await _with_crds(self._without)).copy()
        self.server = await Server(self.store, clock=self.clock, with_alpha=self._with_alpha).__aenter__()
        self._transports = (InProcessTransport(self.server), InProcessTransport(self.server))
        self.faults = FaultyTransport(self._transports[0], clock=self.clock)
        self.client = self._client(self.faults)
        self.admin = self._client(self._transports[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.__aexit__(kind, error, trace)

    async def restart(self) -> None:
        """The server ends, and another one begins with what the first had stored. Watches end."""
        await self.server.__aexit__(None, None, None)
        self.server = await Server(self.store, clock=self.clock, with_alpha=self._with_alpha).__aenter__()
        for transport in self._transports:
            transport.server = self.server

    def _client(self, transport: InProcessTransport | FaultyTransport) -> Client:
        client = Client(transport)
        client.server_time = ServerTime(self.clock.wall, self.clock.now)
        return client

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Json | None:
        """An object as it is stored."""
        key = Key(resource.group_resource, namespace if resource.namespaced else "", name)
        stored = self.server.state.get(key)
        return None if stored is None else self._whole(resource, stored.data)

    def list(self, resource: Resource, namespace: str = "") -> list[Json]:
        """The objects of a namespace, or of all of them, by name."""
        table = self.server.state.table(resource.group_resource)
        return [self._whole(resource, stored.data) for stored in table.select(namespace)]

    def _whole(self, resource: Resource, data: bytes) -> Json:
        served = self.server.registry.find(resource.group, resource.version, resource.plural)
        assert served is not None, f"{resource.group_resource} is not served"
        return served.whole_object(data)


async def _with_crds(without: frozenset[str]) -> MemoryStore:
    found = _INSTALLED.get(without)
    if found is None:
        found = MemoryStore()
        async with Server(found) as server:
            await server.install(crd for crd in manifests.crds() if crd["metadata"]["name"] not in without)
        _INSTALLED[without] = found
    return found
