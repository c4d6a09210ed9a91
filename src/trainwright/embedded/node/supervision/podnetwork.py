"""The network of a pod's own: a network namespace, whose only cable leads to a bridge that its job's pods share.

    pod 0: eth0 10.128.0.1 ──┐
    pod 1: eth0 10.128.0.2 ──┴── bridge of the job, in a network namespace of its own

Every job has a bridge, and nothing leads from one to another or to the machine: two jobs never meet, and every pod may
listen on any port. No process holds a bridge. Each supervisor of the job has it open as a descriptor, and it is gone
with the last of them. A supervisor that joins finds it in /proc of one that lives, by the files of the job's directory:

    <networks>/<job>/lock     held while a supervisor joins
    <networks>/<job>/<uid>    written by each: its identity, and the descriptors of its bridge's namespaces

In: the job's directory, the pod's uid and address. Out: the calling process, which has one thread, is in the pod's
network, and so are all that it starts. An ordinary user needs a user namespace for that, one for each job; the caller
is in it afterwards. What a container may not do without a network of its own it may not do in this one: it is not the
owner of the namespace. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

from trainwright.embedded.node.pods import identity
from trainwright.embedded.node.pods.record import read_json, write_json
from trainwright.embedded.node.supervision import netlink, syscalls

BRIDGE = "pods"
INTERFACE = "eth0"
PREFIX = 10
"""Addresses of one cluster's pods differ in their last 22 bits."""
LOCK = "lock"
NO_NAMES_BUT_FILES = "hosts: files\n"
"""For /etc/nsswitch.conf: nobody answers questions for names in such a network, and libraries wait for answers."""


class Bridge(NamedTuple):
    """Descriptors of the namespaces of a job's bridge. `user` is None where the machine's own is used."""

    network: int
    user: int | None


class Joining:
    """A pod that joins its job's network: the lock is held until `announce`."""

    def __init__(self, job: Path, lock: int, bridge: Bridge) -> None:
        self._job, self._lock, self._bridge = job, lock, bridge

    def announce(self, uid: str) -> None:
        """Says that the calling process has the bridge open, and keeps it open. Others may join now."""
        me = identity.of(os.getpid())
        assert me is not None
        said = {"supervisor": list(me), "network": self._bridge.network, "user": self._bridge.user}
        write_json(self._job / uid, said)
        fcntl.flock(self._lock, fcntl.LOCK_UN)  # whoever forked us has the descriptor too
        os.close(self._lock)


def join(job: Path, uid: str, address: str, *, user: bool) -> Joining:
    """Moves the caller into a network of its own, on the bridge of its job. Raises `OSError`."""
    job.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(job / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    bridge = _found(job)
    if bridge is None:
        bridge = make_bridge(user=user)
    elif bridge.user is not None:
        syscalls.enter_namespace(bridge.user, "user")
    plug_in(bridge, uid, address)
    return Joining(job, lock, bridge)


def make_bridge(*, user: bool) -> Bridge:
    """A new bridge. The caller is in its namespaces afterwards."""
    syscalls.unshare_network(user=user)
    netlink.add_bridge(BRIDGE)
    return Bridge(_open("net"), _open("user") if user else None)


def plug_in(bridge: Bridge, uid: str, address: str) -> None:
    """Moves the caller, which is in the bridge's user namespace, into a new network namespace with a cable to it."""
    syscalls.unshare_network(user=False)
    mine = _open("net")
    try:
        syscalls.enter_namespace(bridge.network, "net")
        netlink.add_veth(f"v{uid.replace('-', '')[:13]}", INTERFACE, mine, bridge=BRIDGE)
        syscalls.enter_namespace(mine, "net")
    finally:
        os.close(mine)
    netlink.set_up("lo")
    netlink.set_up(INTERFACE)
    netlink.add_address(INTERFACE, address, PREFIX)


def _found(job: Path) -> Bridge | None:
    """The bridge that a living supervisor of the job has open."""
    for entry in sorted(job.iterdir()):
        if entry.name == LOCK or entry.name.startswith("."):
            continue
        member = read_json(entry)
        if member is not None and identity.is_alive(process := identity.ProcessIdentity(*member["supervisor"])):
            try:
                network = os.open(f"/proc/{process.pid}/fd/{member['network']}", os.O_RDONLY | os.O_CLOEXEC)
                has_user = member["user"] is not None
                user = (
                    os.open(f"/proc/{process.pid}/fd/{member['user']}", os.O_RDONLY | os.O_CLOEXEC)
                    if has_user
                    else None
                )
            except OSError:  # it has ended
                continue
            return Bridge(network, user)
        entry.unlink(missing_ok=True)
    return None


def _open(kind: str) -> int:
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
