"""Real supervisors and real processes: a `machine` starts pods as the node does and waits for what they come to."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from trainwright.embedded.node import identity, logs, tiers
from trainwright.embedded.node.directories import PodDirectories
from trainwright.embedded.node.record import ContainerToRun, Isolation, PodDirectory, PodRecord, supervisor_of

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
    ) -> PodDirectory:
        directory = self.directories.of(str(uuid.uuid4()))
        directory.path.mkdir(parents=True)
        directory.hosts.write_text(hosts)

        def container(name: str, argv: list[str]) -> ContainerToRun:
            environment = {"PATH": os.environ["PATH"], "TRAINWRIGHT_POD": directory.uid}
            where = cwd or str(directory.work)
            return {"name": name, "argv": argv, "env": environment, "cwd": where, "mounts": mounts or []}

        await self.directories.start(
            directory,
            {
                "uid": directory.uid,
                "namespace": "default",
                "name": "pod",
                "subdomain": "svc",
                "hostname": "pod-0",
                "address": "127.64.0.1",
                "ports": {},
                "isolation": isolation,
                "restartPolicy": policy,  # type: ignore[typeddict-item]
                "terminationGracePeriodSeconds": grace,
                "initContainers": [container(f"init{number}", argv) for number, argv in enumerate(init or [])],
                "containers": [container(f"c{number}", argv) for number, argv in enumerate(commands)],
                "notify": str(self.directories.notify),
            },
        )
        self.started.append(directory)
        return directory

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], seconds: float = 20.0) -> None:
        async def is_met() -> bool:
            answer = condition()
            return answer if isinstance(answer, bool) else await answer

        deadline = time.monotonic() + seconds
        while not await is_met():
            assert time.monotonic() < deadline, "it did not come to pass in time"
            await asyncio.sleep(0.01)

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
