"""System calls that make a plain process a pod, without root and without an image: namespaces, mounts, prctl.

Each call changes the calling process for good; its children inherit the change. Root needs no user namespace; an
ordinary user gets one that maps only its own uid and gid, so files keep their owner and, after exec, the process has
no capabilities.
Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36

# A remount in a user namespace must keep the flags the mount was made with: the kernel locks them.
_LOCKED = {os.ST_NOSUID: MS_NOSUID, os.ST_NODEV: MS_NODEV, os.ST_NOEXEC: MS_NOEXEC} if hasattr(os, "ST_NODEV") else {}


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def prctl(option: int, value: int) -> None:
    _check(_libc().prctl(option, value, 0, 0, 0), "prctl")


def become_subreaper() -> None:
    """Makes the caller a sub-reaper: orphans among its descendants become its children."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def unshare(*, user: bool, pid: bool, run_as: Sequence[int] | None = None) -> None:
    """Gives the caller mount and UTS namespaces of its own, and on request a user namespace, and a PID namespace for
    its children.

    `run_as` are the uid and gid that the caller has inside its user namespace; by default those it has outside.
    """
    outside = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWUTS | (CLONE_NEWUSER if user else 0) | (CLONE_NEWPID if pid else 0)
    _check(_libc().unshare(flags), "unshare")
    if user:
        _map_user(outside, run_as or outside)
    # Mounts made from here on must not propagate to the machine.
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def unshare_network(*, user: bool) -> None:
    """Gives the caller a network namespace of its own, with nothing in it but a loopback interface that is down; on
    request in a user namespace of its own.
    """
    outside = os.geteuid(), os.getegid()
    _check(_libc().unshare(CLONE_NEWNET | (CLONE_NEWUSER if user else 0)), "unshare net")
    if user:
        _map_user(outside, outside)


def _map_user(outside: Sequence[int], inside: Sequence[int]) -> None:
    """Maps one uid and one gid into the user namespace that the caller has just made."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{inside[0]} {outside[0]} 1")
    _write("/proc/self/gid_map", f"{inside[1]} {outside[1]} 1")


def drop_capabilities() -> None:
    """What the caller executes from now on has no capabilities, even as user 0 of its user namespace."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno != errno.EINVAL:  # no such capability
                raise
            return


def enter(pid: int, *, user: bool, pid_namespace: bool) -> None:
    """Moves the caller, which must have one thread, into the namespaces that `unshare` gave to process `pid`; its
    children into the PID namespace of that process's children.
    """
    names = ["user"] * user + ["uts"] + ["pid_for_children"] * pid_namespace + ["mnt"]
    # All are opened before the first is entered: afterwards /proc may be another one.
    opened = [(name, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in names]
    for name, descriptor in opened:
        enter_namespace(descriptor, name)
        os.close(descriptor)


def enter_namespace(descriptor: int, name: str) -> None:
    """Moves the caller, which must have one thread, into the namespace of that descriptor."""
    _check(_libc().setns(descriptor, 0), f"setns {name}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def set_hostname(name: str) -> None:
    encoded = name.encode()
    _check(_libc().sethostname(encoded, len(encoded)), "sethostname")


def mount(source: str | None, target: str, filesystem: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, filesystem)]
    _check(_libc().mount(*arguments, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def mount_proc() -> None:
    """Mounts a /proc for the caller's PID namespace, of which the caller must be process 1."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Binds `source`, with everything mounted below it, at `target`, which must exist."""
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        present = os.statvfs(target).f_flag
        kept = sum(flag for status, flag in _LOCKED.items() if present & status)
        mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def pivot_root(new_root: str) -> None:
    """Makes `new_root`, a mount point, the root, and detaches the old one."""
    os.chdir(new_root)
    machine = os.uname().machine
    number = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}.get(machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"pivot_root: the system call's number is not known for {machine}")
    # With "." and "." the old root is stacked over the new one, so no directory is needed to hold it.
    _check(_libc().syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _check(_libc().umount2(b".", MNT_DETACH), "umount2")
    os.chdir("/")
