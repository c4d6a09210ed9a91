"""Sockets that are bound before their servers run, so that the port is known.

A kept port stays the same over restarts of the control plane: running pods have it in their environment. In: the file
that remembers it. Out: a socket bound to it on loopback. The first time, a port is chosen below those that the kernel
gives to outgoing connections, where it is still free after a restart.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from trainwright.cli.failure import Failure
from trainwright.embedded.node.network.addresses import LOOPBACK, free_port

log = logging.getLogger(__name__)


def bind_kept_port(file: Path, purpose: str) -> socket.socket:
    """A socket at the port of last time, or at another one, with a warning in the log, if that is taken."""
    kept = _read(file)
    if kept is not None:
        try:
            return bind(kept)
        except OSError as error:
            log.warning(
                "%s: port %d of last time cannot be used (%s): another one is used, which running pods do not know",
                purpose,
                kept,
                error.strerror,
            )
    tried: set[int] = set()
    while True:
        try:
            port = free_port(tried)
        except OSError as error:
            raise Failure(f"{purpose}: {error}") from error
        tried.add(port)
        try:
            listener = bind(port)
        except OSError:
            continue  # taken since `free_port` looked
        file.write_text(f"{port}\n")
        return listener


def _read(file: Path) -> int | None:
    try:
        port = int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return port if 0 < port < 65536 else None


def bind(port: int = 0) -> socket.socket:
    """A socket bound on loopback that does not listen yet: until it does, connections are refused."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Connections of the last control plane may still be closing on this port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError:
        listener.close()
        raise
    return listener
