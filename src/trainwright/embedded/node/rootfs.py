"""A container's file tree: the machine's own, with volumes at any path, even where the machine has no such directory.

In: mounts. Out: the calling process, in a mount namespace of its own, sees each source at its target. Where every
target exists, each is a bind mount and no more. Where one does not, the root is assembled: an empty tmpfs, each entry
of the machine's root bound in, directories that need a new entry rebuilt the same way, then pivot_root. Invariant: the
machine's own tree is never written to. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from trainwright.embedded.node import namespaces
from trainwright.embedded.node.record import Mount


def show(mounts: Iterable[Mount], staging: Path) -> None:
    """Shows every source at its target. `staging` is an empty directory of the pod, used only as a mount point."""
    resolved: list[Mount] = [{**mount, "target": os.path.realpath(mount["target"])} for mount in mounts]
    ordered = sorted(
        resolved, key=lambda mount: len(Path(mount["target"]).parts)
    )  # what lies below another mount comes after it
    rebuilt = _directories_to_rebuild(ordered)
    root = Path("/")
    if rebuilt:
        root = staging
        namespaces.mount("tmpfs", str(staging), "tmpfs", namespaces.MS_NOSUID | namespaces.MS_NODEV, "mode=0755")
        _rebuild(Path("/"), root, rebuilt)
    for mount in ordered:
        target = root / mount["target"].lstrip("/")
        _make_mount_point(target, directory=os.path.isdir(mount["source"]))
        namespaces.bind(mount["source"], str(target), read_only=mount["readOnly"])
    if rebuilt:
        namespaces.pivot_root(str(staging))


def _directories_to_rebuild(mounts: list[Mount]) -> set[Path]:
    """The machine's directories that need an entry they do not have, and every directory on the way to them."""
    rebuilt: set[Path] = set()
    covered: list[Path] = []
    for mount in mounts:
        target = Path(mount["target"])
        # Below another volume the mount point is made inside that volume, as container runtimes do.
        if not any(target.is_relative_to(other) for other in covered) and not _fits(mount):
            there = next(parent for parent in target.parents if parent.is_dir())
            rebuilt.update((there, *there.parents))
        covered.append(target)
    return rebuilt


def _fits(mount: Mount) -> bool:
    """Whether the target is there and of the source's kind: a directory takes a directory, a file a file."""
    if os.path.isdir(mount["source"]):
        return os.path.isdir(mount["target"])
    return os.path.exists(mount["target"]) and not os.path.isdir(mount["target"])


def _rebuild(directory: Path, copy: Path, rebuilt: set[Path]) -> None:
    """Fills `copy`, an empty directory, with every entry of `directory`: bound or, on the way to a gap, rebuilt."""
    for entry in os.scandir(directory):
        source, target = directory / entry.name, copy / entry.name
        if entry.is_symlink():
            target.symlink_to(os.readlink(source))
        elif source in rebuilt:
            target.mkdir()
            _rebuild(source, target, rebuilt)
        else:
            _make_mount_point(target, directory=entry.is_dir())
            namespaces.bind(str(source), str(target))


def _make_mount_point(target: Path, *, directory: bool) -> None:
    if directory:
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
