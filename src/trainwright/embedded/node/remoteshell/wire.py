"""What ssh and sshd say to each other over a unix socket: JSON messages, the first with file descriptors.

    ssh → sshd    {"command": text, "variables": {…}} with descriptors 0, 1 and 2
    sshd → ssh    {"pid": number}, then {"exit": code}

A side that closes the connection has died. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

DIRECTORY = "TRAINWRIGHT_SHELLS"
"""The variable with the job's directory, in which each pod has a socket named after its host name."""
LISTEN = "TRAINWRIGHT_SSHD"
"""The variable with the address and port that sshd answers on."""
REACHED = "TRAINWRIGHT_REACHED"
"""The variable with a directory in which ssh leaves the name of every pod it has reached."""

STREAMS = 3
LARGEST = 8 << 20
LENGTH_BYTES = 4


def socket_name(host: str) -> str:
    return f"{host}.sock"


def connect(directory: str, host: str) -> socket.socket:
    """A connection to the pod's sshd. Raises `OSError` when nobody listens.

    The path of a unix socket may have 107 bytes, and a state directory more; a descriptor's path is always short.
    """
    return _with_short_path(directory, host, lambda sock, path: sock.connect(path))


def listen(directory: str, host: str) -> socket.socket:
    """The pod's socket. One that a predecessor of this pod left is replaced."""
    Path(directory, socket_name(host)).unlink(missing_ok=True)

    def bind(sock: socket.socket, path: str) -> None:
        sock.bind(path)
        sock.listen(64)

    return _with_short_path(directory, host, bind)


def _with_short_path(directory: str, host: str, use: Any) -> socket.socket:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        use(sock, f"/proc/self/fd/{opened}/{socket_name(host)}")
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(opened)
    return sock


def send(sock: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    data = json.dumps(message).encode()
    data = len(data).to_bytes(LENGTH_BYTES, "big") + data
    sent = socket.send_fds(sock, [data], descriptors) if descriptors else sock.send(data)
    sock.sendall(data[sent:])


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """The next message, or None at the connection's end."""
    return _message(sock, b"")


def receive_with_streams(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The first message and its descriptors."""
    data, descriptors, _, _ = socket.recv_fds(sock, 65536, STREAMS)
    message = _message(sock, data) if data else None
    if message is None or len(descriptors) != STREAMS:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    return message, list(descriptors)


def _message(sock: socket.socket, data: bytes) -> dict[str, Any] | None:
    while len(data) < LENGTH_BYTES:
        chunk = sock.recv(LENGTH_BYTES - len(data))
        if not chunk:
            return None
        data += chunk
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    if length > LARGEST:
        return None
    while len(data) < LENGTH_BYTES + length:
        chunk = sock.recv(min(65536, LENGTH_BYTES + length - len(data)))
        if not chunk:
            return None
        data += chunk
    message = json.loads(data[LENGTH_BYTES:])
    return message if isinstance(message, dict) else None
