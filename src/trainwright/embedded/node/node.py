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
from trainwright.embedded.node import registration, tiers
from trainwright.embedded.node.directories import PodDirectories
from trainwright.embedded.node.environment import Facts
from trainwright.embedded.node.kubelet import Kubelet, pods_of_node
from trainwright.embedded.node.launch import machine_variables
from trainwright.embedded.node.record import PodDirectory
from trainwright.embedded.node.server import NodeServer
from trainwright.embedded.node.tiers import Tier

HOST_ADDRESS = "127.0.0.1"
END_SECONDS = 10.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The configuration of a node.

    `directory` keeps its pods across restarts. `token` authenticates the API server when it asks for logs. `tls` holds
    the node's certificate (None: plain HTTP, for tests). `tier` forces a tier; by default the machine is probed.
    `hosts` are names of services with their addresses on this machine, for the pods' /etc/hosts. `working_directory` is
    for containers that name none (default: a directory of the pod).
    """

    directory: Path
    token: str
    name: str = "local"
    tls: ssl.SSLContext | None = None
    tier: Tier | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    working_directory: Path | None = None
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
        pods = pods_of_node(config.name)

        def changed(uid: str) -> None:
            key = kubelet.key_of(uid)
            if key is not None:
                controller.add(key)

        directories = PodDirectories(config.directory, changed)

        def find(namespace: str, name: str) -> PodDirectory | None:
            pod = pods.store.get(Key(namespace, name))
            return directories.of(pod.metadata.uid) if pod else None

        kubelet = Kubelet(
            self._client,
            pods,
            directories,
            tier=tier,
            facts=Facts(HOST_ADDRESS, HOST_ADDRESS, registration.capacity()),
            machine=machine_variables(config.environ, config.hosts),
            hosts=config.hosts,
            clock=self._clock,
            working_directory=config.working_directory,
        )
        controller = Controller("node", kubelet.reconcile, [Watches(pods)], workers=config.workers, clock=self._clock)
        async with directories, NodeServer(find, token=config.token, tls=config.tls) as server:
            self.port = server.port
            await registration.register(
                self._client,
                config.name,
                tier=tier,
                host_address=HOST_ADDRESS,
                port=server.port,
                clock=self._clock,
            )
            for key in await kubelet.adopt():
                controller.add(key)

            async def keep_alive() -> None:
                await registration.keep_alive(self._client, config.name, self._clock)

            async def tell_ready() -> None:
                await pods.wait_synced()
                ready()

            await Manager(self._client, [controller], tasks=[keep_alive, tell_ready], clock=self._clock).run()

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
