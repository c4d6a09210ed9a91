"""The addresses at which the processes of a pod listen on a port.

Pods share the machine's network, so a port of 127.0.0.1 may be another pod's or the user's own. The kernel knows which
process has a socket: /proc/PID/net/tcp lists the sockets that listen, with their inodes, and /proc/PID/fd those that a
process has open.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

from trainwright.embedded.node.pods.processes import PROC, descendants

LISTENS = "0A"


def listening_addresses(root: int, port: int, proc: Path = PROC) -> list[str] | None:
    """Where `root` and its descendants listen on the port; None where the kernel does not tell."""
    if not (proc / str(root) / "net" / "tcp").exists():
        return None
    sockets = {
        f"socket:[{inode}]": address
        for table in ("tcp", "tcp6")
        for address, inode in _listeners(proc / str(root) / "net" / table, port)
    }
    if not sockets:
        return []
    found = {name for pid in (root, *descendants(root, proc)) for name in _open_files(proc / str(pid) / "fd")}
    return [address for name, address in sockets.items() if name in found]


def _listeners(table: Path, port: int) -> Iterator[tuple[str, str]]:
    """Address and inode of each socket that listens on the port."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return  # a kernel without IPv6
    for line in lines:
        words = line.split()
        address, _, number = words[1].partition(":")
        if words[3] == LISTENS and int(number, 16) == port:
            yield _readable(address), words[9]


def _readable(address: str) -> str:
    """The address as people write it. The kernel prints it in words of the machine's byte order."""
    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
    found = ipaddress.ip_address(b"".join(words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _open_files(directory: Path) -> Iterator[str]:
    try:
        entries = os.listdir(directory)
    except OSError:
        return  # it has ended
    for entry in entries:
        try:
            yield os.readlink(directory / entry)
        except OSError:
            continue
