"""A container's file tree: the machine's own, with volumes at any path, even where the machine has no such directory.

In: mounts. Out: the calling process, in a mount namespace of its own, sees each source at its target. A target that
exists gets a bind mount. For a target that does not exist, its parent directory is replaced: a tmpfs, with every entry
of the original bound into it, is mounted over it, and takes the new entry. If that directory is the root, pivot_root
switches to the replacement. All other directories stay the machine's own, so that files can be moved between them and
outlive the pod. Invariant: the machine's own tree is never written to. Standard library only: the supervisor imports
this.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from trainwright.embedded.node.pods.record import Mount
from trainwright.embedded.node.supervision import syscalls


class Tree(NamedTuple):
    """What a container sees: `mounts`, and a tmpfs of its own over each directory in `memory`.

    `staging` is an empty directory of the pod, used only for mount points. `hidden` is a directory of which it sees
    nothing but `shown`, directories below it; empty for none.
    """

    mounts: list[Mount]
    memory: list[str]
    staging: Path
    hidden: str = ""
    shown: list[str] = []  # noqa: RUF012 - never changed


def show(tree: Tree) -> None:
    """Mounts every source at its target."""
    staging = tree.staging
    resolved: list[Mount] = [{**mount, "target": os.path.realpath(mount["target"])} for mount in tree.mounts]
    ordered = sorted(
        resolved, key=lambda mount: len(Path(mount["target"]).parts)
    )  # what lies below another mount comes after it
    gaps = _gaps(ordered)
    root = Path("/")
    if root in gaps:
        root = staging
        _replace(Path("/"), root, gaps)
    else:
        for number, gap in enumerate(_tops(gaps)):
            copy = staging / str(number)
            copy.mkdir(exist_ok=True)
            _replace(gap, copy, gaps)
            syscalls.bind(str(copy), str(gap))
    for mount in ordered:
        target = root / mount["target"].lstrip("/")
        _make_mount_point(target, directory=os.path.isdir(mount["source"]))
        syscalls.bind(mount["source"], str(target), read_only=mount["readOnly"])
    if root == staging:
        syscalls.pivot_root(str(staging))
    if tree.hidden and os.path.isdir(tree.hidden):
        _hide(tree.hidden, tree.shown)
    for directory in filter(os.path.isdir, tree.memory):
        syscalls.mount("tmpfs", directory, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=1777")


def _hide(directory: str, shown: list[str]) -> None:
    """Mounts an empty tmpfs over the directory, and binds into it what is to be seen.

    Files that are made there later, by whomever, stay hidden too. Without capabilities nobody inside can undo it.
    """
    opened = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in sorted(shown) if os.path.isdir(path)]
    syscalls.mount("tmpfs", directory, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    for path, descriptor in opened:
        os.makedirs(path, exist_ok=True)
        syscalls.bind(f"/proc/self/fd/{descriptor}", path)
        os.close(descriptor)


def _gaps(mounts: list[Mount]) -> set[Path]:
    """The machine's directories that lack an entry for a mount point."""
    gaps: set[Path] = set()
    covered: list[Path] = []
    for mount in mounts:
        target = Path(mount["target"])
        # Below another volume the mount point is made inside that volume, as container runtimes do.
        if not any(target.is_relative_to(other) for other in covered) and not _fits(mount):
            gaps.add(next(parent for parent in target.parents if parent.is_dir()))
        covered.append(target)
    return gaps


def _tops(gaps: set[Path]) -> list[Path]:
    return sorted(gap for gap in gaps if not gaps & set(gap.parents))


def _replace(directory: Path, copy: Path, gaps: set[Path]) -> None:
    """Mounts a tmpfs at `copy` that has every entry of `directory` and can take new ones."""
    mode = f"mode={os.stat(directory).st_mode & 0o7777:o}"
    syscalls.mount("tmpfs", str(copy), "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, mode)
    _rebuild(directory, copy, {path for gap in gaps for path in (gap, *gap.parents)})


def _fits(mount: Mount) -> bool:
    """Whether the target exists and is, like the source, a directory or a file."""
    if os.path.isdir(mount["source"]):
        return os.path.isdir(mount["target"])
    return os.path.exists(mount["target"]) and not os.path.isdir(mount["target"])


def _rebuild(directory: Path, copy: Path, rebuilt: set[Path]) -> None:
    """Fills `copy`, an empty directory, with every entry of `directory`: bound, or rebuilt if it leads to a gap."""
    for entry in os.scandir(directory):
        source, target = directory / entry.name, copy / entry.name
        if entry.is_symlink():
            target.symlink_to(os.readlink(source))
        elif source in rebuilt:
            target.mkdir()
            _rebuild(source, target, rebuilt)
        else:
            _make_mount_point(target, directory=entry.is_dir())
            try:
                syscalls.bind(str(source), str(target))
            except FileNotFoundError:  # gone since the directory was read: /run has files that come and go
                target.rmdir() if target.is_dir() else target.unlink()


def _make_mount_point(target: Path, *, directory: bool) -> None:
    if directory:
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
