"""The way from a pod with a network of its own to services of this machine: to the one that takes progress reports.

In: ports of the machine's loopback. Out: whoever connects to such a port of the pod's loopback is connected to the
machine's. A process of its own stays in the machine's network: it is forked before the supervisor leaves it, gets the
listening sockets that the supervisor makes in the pod's, and ends when the supervisor closes its end or dies.
Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Sequence
from typing import NoReturn

from trainwright.embedded.node.supervision import keeper

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
READ_BYTES = 64 * 1024
MOST_PORTS = 16


class Passage:
    """`Passage()` in the machine's network, `open` in the pod's."""

    def __init__(self) -> None:
        self._side, theirs = socket.socketpair()
        if os.fork() == 0:
            _serve(theirs)
        theirs.close()

    def open(self, ports: Sequence[int]) -> None:
        sockets = [socket.create_server((LOOPBACK, port)) for port in ports[:MOST_PORTS]]
        numbers = ",".join(map(str, ports[:MOST_PORTS])).encode()
        socket.send_fds(self._side, [numbers], [sock.fileno() for sock in sockets])
        for sock in sockets:
            sock.close()

    def close(self) -> None:
        """Ends it, and waits until it has ended."""
        self._side.shutdown(socket.SHUT_WR)
        self._side.recv(1)
        self._side.close()


def _serve(side: socket.socket) -> NoReturn:
    """The process in the machine's network."""
    try:
        for number in keeper.STARTING_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        keeper.close_all_but({side.fileno()})
        numbers, descriptors, _, _ = socket.recv_fds(side, READ_BYTES, MOST_PORTS)
        for port, descriptor in zip(numbers.split(b","), descriptors, strict=False):
            listener = socket.socket(fileno=descriptor)
            threading.Thread(target=_accept, args=(listener, int(port)), daemon=True).start()
        side.recv(1)  # nothing comes but the end
    finally:
        os._exit(0)


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        caller, _ = listener.accept()
        threading.Thread(target=_connect, args=(caller, port), daemon=True).start()


def _connect(caller: socket.socket, port: int) -> None:
    """Passes bytes on in both directions until both have ended."""
    try:
        service = socket.create_connection((LOOPBACK, port), CONNECT_SECONDS)
    except OSError:  # nobody listens there: the control plane is away
        caller.close()
        return
    service.settimeout(None)
    back = threading.Thread(target=_pass_on, args=(service, caller), daemon=True)
    back.start()
    _pass_on(caller, service)
    back.join()
    caller.close()
    service.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(READ_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
