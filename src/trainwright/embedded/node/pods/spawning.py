"""The node's side of the nursery: has supervisors started, and starts the nursery itself when there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

_PACKAGE_ROOT = Path(__file__).parents[4]


class StartFailed(Exception):
    """A supervisor could not be started; the message says why."""


class NurseryDied(Exception):
    """The nursery ended while it was starting a supervisor, which may or may not have begun."""


class Spawner:
    """`open()` starts the nursery ahead of the first pod. `close()` waits for what is being started."""

    def __init__(self, pods: Path) -> None:
        self._pods = pods
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[str, asyncio.Future[int]] = {}
        self._rest = b""

    def open(self) -> None:
        if self._process is not None:
            return
        command = [
            sys.executable,
            "-S",  # the standard library is all it needs; reading site-packages costs more than the rest
            "-m",
            "trainwright.embedded.node.supervision.nursery",
            str(self._pods),
        ]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(_PACKAGE_ROOT)}
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                cwd="/",
                bufsize=0,
            )
        except OSError as error:
            raise StartFailed(f"the pod's supervisor could not be started: {error}") from error
        assert self._process.stdout is not None
        asyncio.get_running_loop().add_reader(self._process.stdout.fileno(), self._read_replies)

    async def start(self, path: Path) -> int:
        """Has the supervisor of a pod's directory started. 0 when it has its first record on disk."""
        self.open()
        assert self._process is not None
        assert self._process.stdin is not None
        waiting = self._waiting[str(path)] = asyncio.get_running_loop().create_future()
        try:
            os.write(self._process.stdin.fileno(), os.fsencode(path) + b"\n")
        except BrokenPipeError:
            self._nursery_died()
        return await asyncio.shield(waiting)

    async def close(self) -> None:
        while self._waiting:
            await asyncio.wait(self._waiting.values())
        if (process := self._dismiss()) is not None:
            await asyncio.to_thread(process.wait)

    def _read_replies(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        data = os.read(self._process.stdout.fileno(), 65536)
        if not data:
            self._nursery_died()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            code, _, path = os.fsdecode(line).partition(" ")
            waiting = self._waiting.pop(path, None)
            if waiting is not None:
                waiting.set_result(int(code))

    def _nursery_died(self) -> None:
        if (process := self._dismiss()) is not None:
            process.kill()  # it may be alive and have closed its end
            process.wait()
        while self._waiting:
            waiting = self._waiting.popitem()[1]
            waiting.set_exception(NurseryDied("the process that starts supervisors has died"))
            waiting.exception()  # whoever waited may have left

    def _dismiss(self) -> subprocess.Popen[bytes] | None:
        """Ends the nursery's input, and with it the nursery; it is still to be waited for."""
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            asyncio.get_running_loop().remove_reader(process.stdout.fileno())
            process.stdin.close()
            process.stdout.close()
        return process
