"""The local node, wired: directories, kubelet, log server and registration in one TaskGroup.

In: a client and a `NodeConfig`. Out: `run()`, until cancelled.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.client import Client
from trainwright.controlloop import Clock, Controller, Key, Manager, SystemClock, Watches
from trainwright.embedded.node import registration
from trainwright.embedded.node.endpoint.server import NodeServer
from trainwright.embedded.node.kubelet import Kubelet, pods_of_nodes
from trainwright.embedded.node.pods.directories import PodDirectories
from trainwright.embedded.node.pods.quiet import DEFAULT_SECONDS
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec.environment import Facts
from trainwright.embedded.node.podspec.launch import machine_variables
from trainwright.embedded.node.podspec.runs import Runs
from trainwright.embedded.node.resources import devices
from trainwright.embedded.node.resources.allotment import Allotments
from trainwright.embedded.node.resources.devices import Devices
from trainwright.embedded.node.shapes import NAME, NodeShape, capacities
from trainwright.embedded.node.storage.claims import claims_of
from trainwright.embedded.node.storage.provisioner import Provisioner
from trainwright.embedded.node.supervision import cgroups, tiers
from trainwright.embedded.node.supervision.cgroups import Delegation
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.runs import RunsHome

HOST_ADDRESS = "127.0.0.1"
END_SECONDS = 10.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The configuration of a node.

    `directory` keeps its pods across restarts. `token` authenticates the API server when it asks for logs. `tls` holds
    the node's certificate (None: plain HTTP, for tests). `tier` forces a tier; by default the machine is probed.
    `hosts` are names of services with their addresses on this machine, for the pods' /etc/hosts, and `reachable` their
    ports, which pods reach also from networks of their own (tier T2, which is never probed for). `working_directory` is
    for containers that name none (default: a directory of the pod). `runs` keeps the logs and outputs of pods that
    belong to a run; without it they go with the pod. `devices` are its GPUs and `limits` its part of the
    cgroup tree; by default they are looked for.
    `hidden` is a directory of which pods see only what they need: it has the cluster's secrets.
    `hang_after` is how many seconds a pod may print nothing before it is called quiet, unless the pod says otherwise; 0
    for ever. `python` is a directory for the end of such pods' PYTHONPATH. `shapes` are the nodes that this machine is
    shown as; by default one, of this `name`.
    """

    directory: Path
    token: str
    name: str = NAME
    shapes: tuple[NodeShape, ...] = ()
    tls: ssl.SSLContext | None = None
    tier: Tier | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    reachable: tuple[int, ...] = ()
    working_directory: Path | None = None
    runs: RunsHome | None = None
    python: Path | None = None
    devices: Devices | None = None
    limits: Delegation | None = None
    hidden: Path | None = None
    hang_after: float = DEFAULT_SECONDS
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    workers: int = 8


class LocalNode:
    """This machine as a node. `run()` serves until cancelled and leaves pods running; `end_pods()` ends them."""

    def __init__(self, client: Client, config: NodeConfig, *, clock: Clock | None = None) -> None:
        self._client = client
        self._config = config
        self._clock = clock or SystemClock()
        self.port = 0

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serves until cancelled. `ready` is called when the Node is registered and its pods are being watched."""
        config = self._config
        tier = config.tier if config.tier is not None else await asyncio.to_thread(tiers.probe)
        found = config.devices if config.devices is not None else await asyncio.to_thread(devices.find, config.environ)
        limits = config.limits if config.limits is not None else await asyncio.to_thread(cgroups.probe)
        amounts = registration.capacity(found)
        shapes = config.shapes or (NodeShape(config.name),)
        sizes = capacities(shapes, amounts)
        pods = pods_of_nodes([shape.name for shape in shapes])

        def changed(uid: str) -> None:
            key = kubelet.key_of(uid)
            if key is not None:
                controller.add(key)

        directories = PodDirectories(config.directory, changed)

        def in_use(namespace: str, claim: str) -> bool:
            return any(
                pod.metadata.namespace == namespace
                and not pod.is_finished
                and any(name == claim for _, name in claims_of(pod.spec, pod.metadata.name))
                for pod in pods.store
            )

        def find(namespace: str, name: str) -> PodDirectory | None:
            pod = pods.store.get(Key(namespace, name))
            return directories.of(pod.metadata.uid) if pod else None

        kubelet = Kubelet(
            self._client,
            pods,
            directories,
            tier=tier,
            facts=Facts(HOST_ADDRESS, HOST_ADDRESS, amounts),
            allotments=Allotments(found, _cpus()),
            hidden=config.hidden,
            machine=machine_variables(config.environ, config.hosts),
            hosts=config.hosts,
            reachable=config.reachable,
            limits=limits,
            clock=self._clock,
            working_directory=config.working_directory,
            runs=Runs(config.runs, config.python) if config.runs is not None else None,
            hang_after=config.hang_after,
        )
        controller = Controller("node", kubelet.reconcile, [Watches(pods)], workers=config.workers, clock=self._clock)
        provisioner = Provisioner(self._client, config.directory / "volumes", in_use, self._clock)
        async with (
            directories,
            NodeServer(find, token=config.token, tls=config.tls, keepers=directories.keepers) as server,
        ):
            self.port = server.port
            directories.get_ready_to_start()
            for shape in shapes:
                await registration.register(
                    self._client,
                    shape,
                    tier=tier,
                    host_address=HOST_ADDRESS,
                    port=server.port,
                    clock=self._clock,
                    amounts=sizes[shape.name],
                )
            await registration.forget_others(self._client, [shape.name for shape in shapes])
            for key in await kubelet.adopt():
                controller.add(key)

            async def keep_alive() -> None:
                alive = (registration.keep_alive(self._client, shape.name, self._clock) for shape in shapes)
                await asyncio.gather(*alive)

            async def tell_ready() -> None:
                await pods.wait_synced()
                ready()

            controllers = [controller, provisioner.controller()]
            tasks = [keep_alive, tell_ready, provisioner.begin]
            await Manager(self._client, controllers, tasks=tasks, clock=self._clock).run()

    async def end_pods(self, grace_period: float = END_SECONDS) -> None:
        """Ends every pod of this node and returns when nothing of them runs. Call it when `run` has ended."""
        directories = PodDirectories(self._config.directory, lambda _: None)
        async with directories:
            found = [directory for directory, _ in await directories.all()]
            while True:
                # A pod that has no supervisor, or none any more, is over.
                over = await asyncio.gather(*(directories.terminate(directory, grace_period) for directory in found))
                found = [directory for directory, is_over in zip(found, over, strict=True) if not is_over]
                if not found:
                    return
                await asyncio.sleep(POLL_SECONDS)


def _cpus() -> list[int]:
    """The CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
