"""Limits that the kernel keeps, where a part of the cgroup v2 tree is ours: CPU time and memory of a container.

In: the files of the tree. Out: the directory in which cgroups for containers can be made, and one cgroup for each
container with limits, gone with its container. A cgroup that has processes of its own cannot hand controllers on, so
the directory is the nearest one above our own process that hands them on already, and that we may write to: on a
desktop a slice of the user's own service, as root any. Nobody else's settings are changed. Where there is none, the
supervisor watches memory itself, and limits of CPU are whole CPUs. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

MOUNT_INFO = Path("/proc/self/mountinfo")
OWN = Path("/proc/self/cgroup")
CONTROLLERS = ("cpu", "memory")
PERIOD_MICROSECONDS = 100_000
LEAST_QUOTA = 1_000
"""The kernel refuses less than a millisecond."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """A directory of the tree in which cgroups can be made, and which controllers they have; or the reason for none."""

    directory: str
    controllers: tuple[str, ...]
    reason: str

    def __contains__(self, controller: str) -> bool:
        return controller in self.controllers


def none(reason: str) -> Delegation:
    return Delegation("", (), reason)


def find(mount_info: Path = MOUNT_INFO, own: Path = OWN) -> Delegation:
    """What is ours of the cgroup v2 tree."""
    try:
        mounts, lines = mount_info.read_text().splitlines(), own.read_text().splitlines()
    except OSError:
        return none("this system has no cgroups")
    place = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    mounted = next((found for line in mounts if (found := _mounted(line)) is not None), None)
    if place is None or mounted is None:
        return none("there is no cgroup v2 here")
    root, top = mounted
    inside = os.path.relpath(place, root)
    if inside.startswith(".."):
        return none("our own cgroup is not in the tree that is mounted here")
    directory = (top / inside).resolve()
    for candidate in (directory, *directory.parents):
        if not candidate.is_relative_to(top):
            break
        handed_on = _words(candidate / "cgroup.subtree_control")
        ours = tuple(name for name in CONTROLLERS if name in handed_on)
        if ours and os.access(candidate, os.W_OK) and os.access(candidate / "cgroup.procs", os.W_OK):
            return Delegation(str(candidate), ours, f"{' and '.join(ours)} at {candidate}")
    return none("no cgroup with the controllers cpu or memory is delegated to us")


def probe() -> Delegation:
    """What is ours, tried with a process that moves there and ends."""
    found = find()
    if not found.directory:
        return found
    trial = Path(found.directory, f"trainwright-probe-{os.getpid()}")
    try:
        trial.mkdir()
        try:
            words = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"', str(trial)]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
        finally:
            trial.rmdir()
    except (OSError, subprocess.SubprocessError) as error:
        return none(f"{found.directory} cannot be used: {error}")
    return found if done.returncode == 0 else none(f"{found.directory} cannot be used: {done.stderr.strip()}")


def _mounted(line: str) -> tuple[str, Path] | None:
    """Root and mount point of a line of mountinfo, if it is of cgroup v2."""
    before, _, after = line.partition(" - ")
    fields = before.split()
    if after.split()[:1] != ["cgroup2"] or len(fields) < 5:
        return None
    return fields[3], Path(fields[4].replace("\\040", " "))


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


class Cgroup:
    """The cgroup of one run of a container. Raises `OSError` if the kernel refuses it."""

    def __init__(self, delegated: str, name: str, *, memory: int | None, milli_cpus: int | None) -> None:
        self.path = Path(delegated, name)
        self.memory = memory
        self.path.mkdir(exist_ok=True)
        if memory is not None:
            self._write("memory.max", str(memory))
            self._write("memory.oom.group", "1")  # all of the container, as the node does
            if (self.path / "memory.swap.max").exists():
                self._write("memory.swap.max", "0")
        if milli_cpus is not None:
            quota = max(LEAST_QUOTA, milli_cpus * PERIOD_MICROSECONDS // 1000)
            self._write("cpu.max", f"{quota} {PERIOD_MICROSECONDS}")

    def enter(self) -> None:
        """Moves the calling process into it, and all that it starts later."""
        self._write("cgroup.procs", "0")

    def _write(self, name: str, text: str) -> None:
        with open(self.path / name, "w") as file:
            file.write(text)

    def was_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of it for its memory."""
        return self._count("oom_kill") > 0

    def _count(self, name: str) -> int:
        words = _words(self.path / "memory.events")
        return next((int(value) for key, value in zip(words[::2], words[1::2], strict=False) if key == name), 0)

    def peak(self) -> int | None:
        """The most memory that it ever had; kernels before 5.19 do not say."""
        words = _words(self.path / "memory.peak")
        return int(words[0]) if words and words[0].isdigit() else None

    def remove(self) -> None:
        """Once nothing of it runs."""
        try:
            self.path.rmdir()
        except OSError:  # a process that even SIGKILL does not end yet keeps it
            pass
