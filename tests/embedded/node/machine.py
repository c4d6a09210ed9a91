"""A `machine` starts pods as the node does, with real supervisors and processes, and waits for their ends."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from trainwright.embedded.node.endpoint import logs
from trainwright.embedded.node.pods import identity
from trainwright.embedded.node.pods.directories import PodDirectories
from trainwright.embedded.node.pods.record import (
    CgroupsToUse,
    ContainerToRun,
    Isolation,
    PodDirectory,
    PodRecord,
    supervisor_of,
)
from trainwright.embedded.node.supervision import tiers
from waiting import until

PROBED = tiers.probe()
T0 = tiers.T0_ISOLATION
WITHOUT_PID_NAMESPACE: Isolation = {**PROBED.isolation, "pid": False}


def isolations() -> list[Any]:
    """Every isolation this machine can give, strongest first."""
    every = [("T1", PROBED.isolation), ("T1-no-pid-namespace", WITHOUT_PID_NAMESPACE), ("T0", T0)]
    different = {str(isolation): (name, isolation) for name, isolation in reversed(every)}
    return [pytest.param(isolation, id=name) for name, isolation in reversed(different.values())]


class Machine:
    def __init__(self, directories: PodDirectories) -> None:
        self.directories = directories
        self.started: list[PodDirectory] = []

    async def start(
        self,
        *commands: list[str],
        isolation: Isolation = PROBED.isolation,
        init: list[list[str]] | None = None,
        policy: str = "Never",
        grace: int = 30,
        mounts: list[Any] | None = None,
        hosts: str = "127.0.0.1 localhost\n",
        cwd: str | None = None,
        extra: dict[str, Any] | None = None,
        address: str = "127.64.0.1",
        cgroups: CgroupsToUse | None = None,
    ) -> PodDirectory:
        """Starts a pod with a container for each command: `init0`… and `c0`…. `extra` has what a container's spec needs
        more, by its name.
        """
        directory = self.directories.of(str(uuid.uuid4()))
        directory.path.mkdir(parents=True)
        directory.hosts.write_text(hosts)

        def container(name: str, argv: list[str]) -> ContainerToRun:
            environment = {"PATH": os.environ["PATH"], "TRAINWRIGHT_POD": directory.uid}
            where = cwd or str(directory.work)
            made = {"name": name, "argv": argv, "env": environment, "cwd": where, "mounts": mounts or []}
            return cast(ContainerToRun, {**made, **(extra or {}).get(name, {})})

        # Only what every version writes: an older control plane may start this version's supervisors.
        await self.directories.start(
            directory,
            {
                "uid": directory.uid,
                "namespace": "default",
                "name": "pod",
                "subdomain": "svc",
                "hostname": "pod-0",
                "address": address,
                "ports": {},
                "isolation": isolation,
                "restartPolicy": policy,  # type: ignore[typeddict-item]
                "terminationGracePeriodSeconds": grace,
                "initContainers": [container(f"init{number}", argv) for number, argv in enumerate(init or [])],
                "containers": [container(f"c{number}", argv) for number, argv in enumerate(commands)],
                "notify": str(self.directories.notify),
                **({"cgroups": cgroups} if cgroups else {}),  # type: ignore[typeddict-item]
            },
        )
        self.started.append(directory)
        return directory

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], seconds: float = 20.0) -> None:
        await until("what the test waits for", condition, seconds)

    async def done(self, directory: PodDirectory) -> PodRecord:
        await self.until(lambda: bool((record := directory.record()) and record["done"]))
        record = directory.record()
        assert record is not None
        return record

    async def says(self, directory: PodDirectory, text: str, container: str = "c0") -> None:
        await self.until(lambda: text in self.raw_log(directory, container))

    def raw_log(self, directory: PodDirectory, container: str = "c0") -> str:
        path = directory.log(container, 0)
        return path.read_text(errors="replace") if path.exists() else ""

    async def output(self, directory: PodDirectory, container: str = "c0", restart: int = 0) -> bytes:
        pieces = logs.read(directory.log(container, restart), logs.LogOptions(), lambda: True)
        return b"".join([piece async for piece in pieces])


def terminated(record: PodRecord, container: str = "c0") -> dict[str, Any]:
    state: dict[str, Any] = record["containers"][container]["state"]["terminated"]
    return state


def processes_marked(uid: str) -> list[int]:
    """Every live process of this pod, found by the variable all its containers carry."""
    mark, found = f"TRAINWRIGHT_POD={uid}".encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark in Path("/proc", name, "environ").read_bytes().split(b"\0") and identity.of(int(name)):
                    found.append(int(name))
            except OSError:
                continue
    return found


def supervisor_pid(directory: PodDirectory) -> int:
    record = directory.record()
    assert record is not None
    return supervisor_of(record).pid
