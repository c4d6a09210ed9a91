"""What is left to do, and whether there is space for it.

In: the items of a source, the target, and a cache or none. Out: a `Plan`. A cache makes room for newcomers by
itself, and one that is too small is done without; a target that is too small ends the run before a byte is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainwright.initializers.errors import NoSpace
from trainwright.initializers.folder import Folder
from trainwright.initializers.progress import amount
from trainwright.initializers.source import Item
from trainwright.initializers.store import Store
from trainwright.initializers.target import Target

KEPT_FREE = 2**20
"""For directories, journals and records."""


@dataclass(frozen=True, slots=True)
class Plan:
    there: list[Item]
    """Items that an earlier run put in place."""
    missing: list[Item]
    cache: Store | None


def make_plan(
    items: Sequence[Item], target: Target, parts: Store, cache: Store | None, say: Callable[[str], None]
) -> Plan:
    there = [item for item in items if target.has(item)]
    present = {item.name for item in there}
    missing = [item for item in items if item.name not in present]
    if cache is not None and not _fits_in_cache(cache, target, missing):
        say(f"the cache {cache.folder.path} is too small for this: doing without")
        _make_room_for_target(cache, target, parts, missing)
        cache = None
    if cache is None:
        check_space(target.folder, sum(parts.missing_bytes(item) for item in missing), "what is to be fetched")
    else:
        check_space(target.folder, sum(item.size or 0 for item in missing), "what is to be fetched")
    return Plan(there, missing, cache)


def check_space(folder: Folder, wanted: int, what: str) -> None:
    """Refuse to begin what the disk has no room for."""
    free = folder.free()
    if wanted and free < wanted + KEPT_FREE:
        raise NoSpace(
            f"{folder.path}: {what} needs {amount(wanted)}, and {amount(free)} are free. Free some "
            f"space or ask for a larger volume, then run it again: what was fetched is kept"
        )


def _fits_in_cache(cache: Store, target: Target, missing: Sequence[Item]) -> bool:
    """Whether the cache has room for what it lacks, and on the same disk the target for its copies too."""
    cached = [item for item in missing if item.resumable]
    wanted = sum(cache.missing_bytes(item) for item in cached) + KEPT_FREE
    if cache.folder.device() == target.folder.device():
        wanted += sum(item.size or 0 for item in missing)
    return cache.folder.free() >= wanted or cache.make_room(wanted, {item.key for item in cached})


def _make_room_for_target(cache: Store, target: Target, parts: Store, missing: Sequence[Item]) -> None:
    """Removes files of a cache on the target's disk when the target would not fit otherwise."""
    wanted = sum(parts.missing_bytes(item) for item in missing) + KEPT_FREE
    if cache.folder.device() == target.folder.device() and target.folder.free() < wanted:
        cache.make_room(wanted, ())
