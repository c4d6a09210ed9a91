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
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
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


def unshare(*, user: bool, pid: bool) -> None:
    """Gives the caller mount and UTS namespaces of its own, and on request a user namespace, and a PID namespace for
    its children.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWUTS | (CLONE_NEWUSER if user else 0) | (CLONE_NEWPID if pid else 0)
    _check(_libc().unshare(flags), "unshare")
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    # Mounts made from here on must not propagate to the machine.
    mount(None, "/", None, MS_REC | MS_PRIVATE)


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
