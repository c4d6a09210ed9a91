"""The node's side of `execsocket`: a command in a container of a pod, its streams read and written by the node.

In: a pod's directory, what to run, which streams. Out: a `RunningCommand`. Leaving the `async with` block of `running`
kills the command, if it still runs.
"""

from __future__ import annotations

import array
import asyncio
import errno
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trainwright.embedded.node.supervision.execsocket import address

START_SECONDS = 60.0
"""For the supervisor to start the command: the container may be starting itself."""
CONNECT_SECONDS = 10.0
READ_BYTES = 64 * 1024
END_OF_INPUT = b"\x04"
"""What a terminal takes for the end of its input."""


async def connect(directory: Path, host: str, port: int) -> socket.socket:
    """A connection to a port of a pod that has a network of its own, made by its supervisor. Raises `OSError`."""
    return await asyncio.to_thread(_connect, directory, host, port)


def _connect(directory: Path, host: str, port: int) -> socket.socket:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked, address(directory) as path:
        asked.settimeout(CONNECT_SECONDS)
        asked.connect(path)
        asked.sendall(json.dumps({"connect": [host, port]}).encode() + b"\n")
        said, descriptors, _, _ = socket.recv_fds(asked, READ_BYTES, 1)
    if descriptors:
        made = socket.socket(fileno=descriptors[0])
        made.setblocking(False)
        return made
    reason = json.loads(said).get("error") if said else "the pod has ended"
    raise ConnectionRefusedError(errno.ECONNREFUSED, reason)


class ExecFailed(Exception):
    """The command could not be run, or its end is not known; the message says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run in a container. A terminal has one output; there `stderr` has no meaning."""

    container: str
    argv: list[str]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class RunningCommand:
    """`write` and `read` its streams, then wait for it to be `finished`. Nothing is buffered here: a command that does
    not read makes the writer wait, and one that nobody reads waits itself.
    """

    def __init__(self, connection: socket.socket, ends: dict[str, int], *, tty: bool) -> None:
        self._connection = connection
        self._ends = ends
        self._tty = tty
        self._received = b""

    async def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` when the command reads no more."""
        view = memoryview(data)
        while view:
            if "stdin" not in self._ends:
                raise BrokenPipeError("the command's input has been closed")
            end = self._ends["stdin"]
            try:
                view = view[os.write(end, view) :]
            except BlockingIOError:
                await _writable(end)
            except OSError as error:  # a terminal whose last process has closed it says EIO
                raise BrokenPipeError(str(error)) from None

    async def close_input(self) -> None:
        if self._tty:
            await self.write(END_OF_INPUT)
        elif "stdin" in self._ends:
            os.close(self._ends.pop("stdin"))

    async def read(self, stream: str) -> bytes:
        """Bytes of `stdout` or `stderr` as they come; none at the end."""
        end = self._ends.get(stream)
        while end is not None:
            try:
                return os.read(end, READ_BYTES)
            except BlockingIOError:
                await _readable(end)
            except OSError:  # a terminal whose last process has closed it says EIO
                break
        return b""

    def resize(self, width: int, height: int) -> None:
        if self._tty:
            fcntl.ioctl(self._ends["stdout"], termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def started(self) -> None:
        async with asyncio.timeout(START_SECONDS):
            await self._report("started")

    async def finished(self) -> int:
        """The command's exit code, 128 and its number for a signal. Raises `ExecFailed`."""
        code = os.waitstatus_to_exitcode(await self._report("exit"))
        return code if code >= 0 else 128 - code

    async def _report(self, name: str) -> int:
        loop = asyncio.get_running_loop()
        while True:
            line, found, rest = self._received.partition(b"\n")
            if found:
                report = json.loads(line)
                if "error" in report:
                    raise ExecFailed(report["error"])
                self._received = rest
                if name in report:
                    return int(report[name])
                continue
            try:
                data = await loop.sock_recv(self._connection, READ_BYTES)
            except ConnectionError:
                data = b""
            if not data:
                raise ExecFailed("the container has ended, and the command with it")
            self._received += data

    def close(self) -> None:
        """Kills the command, if it runs."""
        for end in set(self._ends.values()):
            os.close(end)
        self._ends.clear()
        self._connection.close()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


@asynccontextmanager
async def running(directory: Path, command: Command) -> AsyncIterator[RunningCommand]:
    """The command, started. Raises `ExecFailed` when it cannot be."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    ours, theirs = _terminal() if command.tty else _pipes(command)
    run = RunningCommand(connection, ours, tty=command.tty)
    try:
        try:
            await _ask(connection, directory, command, theirs)
        finally:
            for descriptor in set(theirs.values()):
                os.close(descriptor)
        try:
            await run.started()
        except TimeoutError:
            raise ExecFailed(f'container "{command.container}" has not started for {START_SECONDS:g} s') from None
        yield run
    finally:
        run.close()


def _terminal() -> tuple[dict[str, int], dict[str, int]]:
    """Our end and the command's, which is its input and both outputs."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    return dict.fromkeys(("stdin", "stdout"), ours), dict.fromkeys(("stdin", "stdout", "stderr"), theirs)


def _pipes(command: Command) -> tuple[dict[str, int], dict[str, int]]:
    ours: dict[str, int] = {}
    theirs: dict[str, int] = {}
    for name, wanted in (("stdin", command.stdin), ("stdout", command.stdout), ("stderr", command.stderr)):
        if wanted:
            reader, writer = os.pipe()
            ours[name], theirs[name] = (writer, reader) if name == "stdin" else (reader, writer)
            os.set_blocking(ours[name], False)
    return ours, theirs


async def _ask(connection: socket.socket, directory: Path, command: Command, theirs: dict[str, int]) -> None:
    loop = asyncio.get_running_loop()
    try:
        with address(directory) as path:
            await loop.sock_connect(connection, path)
    except FileNotFoundError:
        raise ExecFailed("the pod has ended, or was started by a version without exec") from None
    except (ConnectionRefusedError, BlockingIOError):
        raise ExecFailed("the pod has ended, or its supervisor does not answer") from None
    request = {"container": command.container, "argv": command.argv, "streams": list(theirs)}
    data = json.dumps(request).encode() + b"\n"
    try:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs.values()))] if theirs else []
        sent = connection.sendmsg([data], rights)
        await loop.sock_sendall(connection, data[sent:])
    except ConnectionError:
        pass  # refused before it was read: the reason can be read still
