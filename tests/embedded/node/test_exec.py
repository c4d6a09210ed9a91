"""Commands that run in a container beside its own, with real processes, in every isolation there is."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from embedded.node.machine import PROBED, Machine, isolations, processes_marked, supervisor_pid
from trainwright.embedded.node.endpoint.execclient import Command, ExecFailed, RunningCommand, running
from trainwright.embedded.node.pods.record import Isolation
from trainwright.embedded.node.supervision import tiers

USER_NAMESPACE: Isolation = {**PROBED.isolation, "user": True}
"""What an ordinary user gets, also where the tests run as root."""

every_isolation = pytest.mark.parametrize(
    "isolation",
    [
        *isolations(),
        *(
            [pytest.param(USER_NAMESPACE, id="T1-user-namespace")]
            if PROBED.name == "T1" and PROBED.isolation != USER_NAMESPACE and tiers._try(USER_NAMESPACE) is None
            else []
        ),
    ],
)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
UP = ["sh", "-c", "echo up; exec sleep 1000"]


async def read_all(run: RunningCommand, stream: str = "stdout") -> bytes:
    pieces = []
    while piece := await run.read(stream):
        pieces.append(piece)
    return b"".join(pieces)


async def execute(directory: Path, argv: list[str], input: bytes | None = None, tty: bool = False) -> tuple[int, bytes]:
    command = Command("c0", argv, stdin=input is not None, stdout=True, tty=tty)
    async with running(directory, command) as run:
        if input is not None:
            writing = asyncio.create_task(run.write(input))
            writing.add_done_callback(lambda _: asyncio.ensure_future(run.close_input()))
        output = await read_all(run)
        return await run.finished(), output


@every_isolation
async def test_a_command_sees_what_the_container_sees(machine: Machine, isolation: Isolation) -> None:
    """Names, files, processes, variables and directory of the container itself, though it changed some of them."""
    volume = machine.directories.path / "volume"
    volume.mkdir()
    mounts = [{"source": str(volume), "target": "/no-such-path-here/data", "readOnly": False}]
    look = "hostname; ls -d /no-such-path-here/data; readlink /proc/self/ns/*; pwd; echo $TRAINWRIGHT_POD; id -u"
    command = [f"{look}; echo up; exec sleep 1000"]
    directory = await machine.start(
        ["sh", "-c", *command], isolation=isolation, mounts=mounts if isolation["mount"] else None
    )
    await machine.says(directory, "up")
    code, seen = await execute(directory.path, ["sh", "-c", look])
    own = (await machine.output(directory)).replace(b"up\n", b"")
    assert b"/no-such-path-here/data" in own or not isolation["mount"]
    assert seen == b"".join(line for line in own.splitlines(keepends=True) if not line.startswith(b"ls:"))
    assert code == 0
    _, processes = await execute(directory.path, ["sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"])
    assert (b"sleep" in processes or b"nursery" in processes or b"python" in processes) or not isolation["pid"]


async def test_exit_codes_and_signals_come_back(machine: Machine) -> None:
    directory = await machine.start(UP)
    assert (await execute(directory.path, ["sh", "-c", "exit 3"]))[0] == 3
    assert (await execute(directory.path, ["sh", "-c", "kill -SEGV $$"]))[0] == 128 + signal.SIGSEGV


async def test_input_and_output_of_any_size_pass_unchanged(machine: Machine) -> None:
    directory = await machine.start(UP)
    data = os.urandom(3_000_000)
    assert await execute(directory.path, ["cat"], data) == (0, data)


@every_isolation
async def test_a_terminal_is_one(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(UP, isolation=isolation)
    show = ["sh", "-c", "tty; stty size; trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done"]
    async with running(directory.path, Command("c0", show, stdin=True, stdout=True, tty=True)) as run:
        output = b""
        while b"ready" not in output:
            output += await run.read("stdout")
        run.resize(123, 45)
        output += await read_all(run)
        assert await run.finished() == 5
    assert b"/dev/pts/" in output
    assert b"45 123" in output


async def test_control_c_in_a_terminal_reaches_the_command(machine: Machine) -> None:
    directory = await machine.start(UP)
    show = ["sh", "-c", "echo ready; exec sleep 1000"]
    async with running(directory.path, Command("c0", show, stdin=True, stdout=True, tty=True)) as run:
        assert b"ready" in await run.read("stdout")
        await run.write(b"\x03")
        await read_all(run)
        assert await run.finished() == 128 + signal.SIGINT


@linux_only
@every_isolation
async def test_nothing_stays_when_the_caller_leaves(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(UP, isolation=isolation)
    await machine.says(directory, "up")
    before = processes_marked(directory.uid)
    stubborn = "trap '' TERM HUP; (setsid sleep 1000 &) ; echo ready; while :; do sleep 0.05; done"
    async with running(directory.path, Command("c0", ["sh", "-c", stubborn], stdout=True)) as run:
        assert await run.read("stdout") == b"ready\n"
        assert len(processes_marked(directory.uid)) > len(before)
    await machine.until(lambda: processes_marked(directory.uid) == before)


@linux_only
@every_isolation
async def test_what_a_command_leaves_in_the_background_ends_with_it(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(UP, isolation=isolation)
    await machine.says(directory, "up")
    before = processes_marked(directory.uid)
    code, output = await execute(directory.path, ["sh", "-c", "setsid sleep 1000 & echo left"])
    assert (code, output) == (0, b"left\n")
    await machine.until(lambda: processes_marked(directory.uid) == before)


@linux_only
@every_isolation
async def test_a_command_ends_with_its_container(machine: Machine, isolation: Isolation) -> None:
    directory = await machine.start(UP, isolation=isolation)
    await machine.says(directory, "up")
    async with running(directory.path, Command("c0", ["sh", "-c", "echo in; exec sleep 1000"], stdout=True)) as run:
        assert await run.read("stdout") == b"in\n"
        await machine.directories.terminate(directory, 30)
        await read_all(run)
        with pytest.raises(ExecFailed, match="the container has ended"):
            raise ExecFailed(f"the container has ended: {await run.finished()}")
    await machine.done(directory)
    assert processes_marked(directory.uid) == []


async def test_commands_that_cannot_run_say_why(machine: Machine) -> None:
    directory = await machine.start(["true"], ["sleep", "1000"])
    await machine.until(lambda: "terminated" in (directory.record() or {"containers": {}})["containers"]["c0"]["state"])
    for container, argv, says in [
        ("c1", ["no-such-program"], "executable file not found"),
        ("c0", ["true"], 'container not found ("c0")'),
        ("other", ["true"], 'container not found ("other")'),
    ]:
        with pytest.raises(ExecFailed) as refused:
            async with running(directory.path, Command(container, argv)):
                pass
        assert says in str(refused.value)
    await machine.directories.terminate(directory, 0)
    await machine.done(directory)
    with pytest.raises(ExecFailed, match="has ended"):
        async with running(directory.path, Command("c1", ["true"])):
            pass


async def test_a_pod_runs_a_limited_number_of_commands_and_goes_on_after(machine: Machine) -> None:
    directory = await machine.start(UP)
    entered = [running(directory.path, Command("c0", ["sleep", "1000"])) for _ in range(32)]
    for one in entered:
        await one.__aenter__()
    with pytest.raises(ExecFailed, match="32 commands run in this pod"):
        await execute(directory.path, ["true"])
    for one in entered:
        await one.__aexit__(None, None, None)

    async def works() -> bool:
        try:
            return await execute(directory.path, ["true"]) == (0, b"")
        except ExecFailed:
            return False

    await machine.until(works)
    os.kill(supervisor_pid(directory), 0)
