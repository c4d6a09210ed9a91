"""The socket on which a pod's supervisor takes commands to run in its containers, from the node.

    <pods>/<uid>/exec.sock

One connection is one command. In: a line of JSON, `{"container": …, "argv": […], "streams": ["stdin", …]}`, with the
descriptors of those streams beside it (SCM_RIGHTS), so that what the command reads and writes never passes through the
supervisor. Out: the lines that `execution` reports; then the connection ends, and nothing of the command runs. A
connection that the node closes kills its command. The line `{"connect": [address, port]}` asks for a connection to a
port of the pod instead, whose descriptor is the answer: the pod may have a network of its own.

A container that is being started is waited for; one that does not run refuses. Standard library only: the supervisor
imports this.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from trainwright.embedded.node.supervision.container import Container
from trainwright.embedded.node.supervision.execution import Execution, Streams

NAME = "exec.sock"
LARGEST_REQUEST = 1024 * 1024
MOST_COMMANDS = 32
"""Commands in one pod at once."""

CONNECT_SECONDS = 1.0
"""For a connection from the pod to itself, which the kernel makes or refuses at once."""

FindContainer = Callable[[str], Container | None]


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """The socket's path, short enough for the kernel, which takes 107 bytes, however deep the directory is."""
    path = str(directory / NAME)
    if sys.platform != "linux" or len(os.fsencode(path)) < 104:
        yield path
        return
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)


class ExecSocket:
    """Part of the supervisor's loop: `advance()` begins what can begin, `ended(pid)` for every reaped child."""

    def __init__(self, directory: Path, find: FindContainer, selector: selectors.BaseSelector) -> None:
        self._find = find
        self._selector = selector
        self._calls: list[Call] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        with address(directory) as path:
            self._listener.bind(path)
        self._listener.listen(MOST_COMMANDS)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the node has left again, or there are no descriptors left
            return
        call = Call(connection)
        if len(self._calls) >= MOST_COMMANDS:
            call.refuse(f"{MOST_COMMANDS} commands run in this pod already")
            call.close()
            return
        self._calls.append(call)
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(call))

    def _read(self, call: Call) -> None:
        # It may have been dropped since the selector returned, when its process was reaped.
        if call in self._calls and not call.read():
            self._drop(call)

    def advance(self) -> None:
        """Starts commands whose containers have started, and refuses those whose containers do not run."""
        for call in self._calls[:]:
            if call.execution is not None or call.request is None:
                continue
            if wanted := call.request.get("connect"):
                call.connect(str(wanted[0]), int(wanted[1]))
                self._drop(call)
                continue
            container = self._find(call.request["container"])
            if container is None or not container.is_running:
                call.refuse(f'container not found ("{call.request["container"]}")')
                self._drop(call)
            elif container.has_started:
                call.begin(container)
                if call.execution is None:
                    self._drop(call)

    def ended(self, pid: int) -> None:
        for call in self._calls[:]:
            if call.execution is not None and call.execution.ended(pid):
                self._drop(call)

    def _drop(self, call: Call) -> None:
        self._calls.remove(call)
        self._selector.unregister(call.connection)
        call.close()


class Request(TypedDict):
    connect: NotRequired[tuple[str, int]]
    container: str
    argv: list[str]
    streams: list[Literal["stdin", "stdout", "stderr"]]


class Call:
    """One connection: a request that is coming in, or a command that runs."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.request: Request | None = None
        self.execution: Execution | None = None
        self._received = b""
        self._descriptors: list[int] = []

    def read(self) -> bool:
        """Takes in what has come. False when the node has left, or sent what is no request."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.connection, 65536, 3)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._descriptors += descriptors
        if not data or self.request is not None or len(self._received) > LARGEST_REQUEST:
            return False
        self._received += data
        if data.endswith(b"\n"):
            try:
                self.request = json.loads(self._received)
            except ValueError:
                return False
        return True

    def begin(self, container: Container) -> None:
        """Starts the command. Without an execution afterwards it could not, and the node has been told why."""
        assert self.request is not None
        given = dict(zip(self.request["streams"], self._descriptors, strict=False))
        try:
            self.execution = container.execute(self.request["argv"], Streams(**given), self.connection.fileno())
        except OSError as error:  # the machine is out of processes or descriptors
            self.refuse(str(error))
        self._close_descriptors()

    def connect(self, address: str, port: int) -> None:
        """Answers with a connection to a port of this pod, or says why there is none."""
        try:
            with socket.create_connection((address, port), CONNECT_SECONDS) as made:
                made.setblocking(True)
                socket.send_fds(self.connection, [b'{"connected": true}\n'], [made.fileno()])
        except OSError as error:
            self.refuse(error.strerror or str(error))

    def refuse(self, why: str) -> None:
        try:
            self.connection.send(json.dumps({"error": why}).encode() + b"\n")
        except OSError:
            pass  # the node has left

    def close(self) -> None:
        if self.execution is not None:
            self.execution.kill()
        self._close_descriptors()
        self.connection.close()

    def _close_descriptors(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []
