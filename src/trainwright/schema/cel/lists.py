"""Functions on lists: order, sums, extremes, set operations."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from trainwright.schema.cel.signatures import Function, Signatures, need
from trainwright.schema.cel.values import NO_OVERLOAD, CelError, Duration, equal, ordered


def is_sorted(items: Any) -> bool:
    need(items, list)
    return all(not _less(b, a) for a, b in pairwise(items))


def _less(left: Any, right: Any) -> bool:
    if not ordered(left, right):
        raise CelError(NO_OVERLOAD)
    return bool(left < right)


def total(items: Any) -> Any:
    need(items, list)
    if not items:
        return 0
    if isinstance(items[0], Duration):
        return Duration(sum(item.nanos for item in items))
    for item in items:
        need(item, int, float)
    return sum(items[1:], items[0])


def slice_(items: Any, start: Any, end: Any) -> list[Any]:
    need(items, list)
    need(start, int)
    need(end, int)
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def sort(items: Any) -> list[Any]:
    need(items, list)
    return sorted(items, key=cmp_to_key(_compare))


def _compare(left: Any, right: Any) -> int:
    return -1 if _less(left, right) else int(_less(right, left))


def distinct(items: Any) -> list[Any]:
    need(items, list)
    found: list[Any] = []
    for item in items:
        if not _member(item, found):
            found.append(item)
    return found


def flatten(items: Any, depth: Any = 1) -> list[Any]:
    need(items, list)
    need(depth, int)
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        flat += flatten(item, depth - 1) if isinstance(item, list) and depth else [item]
    return flat


def range_(count: Any) -> list[int]:
    need(count, int)
    return list(range(count))


def reverse(items: Any) -> list[Any]:
    need(items, list)
    return list(items[::-1])


def _extreme(name: str, *, smallest: bool) -> Function:
    def pick(items: Any) -> Any:
        need(items, list)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _less(item, best) if smallest else _less(best, item):
                best = item
        return best

    return pick


def _member(item: Any, items: list[Any]) -> bool:
    return any(equal(item, other) for other in items)


def sets_contains(items: Any, part: Any) -> bool:
    need(items, list)
    need(part, list)
    return all(_member(item, items) for item in part)


def sets_equivalent(left: Any, right: Any) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def sets_intersects(left: Any, right: Any) -> bool:
    need(left, list)
    need(right, list)
    return any(_member(item, right) for item in left)


GLOBAL: Signatures = {}

NAMESPACED: Signatures = {
    "lists.range": (range_, 1, 1),
    "sets.contains": (sets_contains, 2, 2),
    "sets.equivalent": (sets_equivalent, 2, 2),
    "sets.intersects": (sets_intersects, 2, 2),
}

MEMBER: Signatures = {
    "slice": (slice_, 2, 2),
    "sort": (sort, 0, 0),
    "distinct": (distinct, 0, 0),
    "flatten": (flatten, 0, 1),
    "reverse": (reverse, 0, 0),
    "isSorted": (is_sorted, 0, 0),
    "sum": (total, 0, 0),
    "min": (_extreme("min", smallest=True), 0, 0),
    "max": (_extreme("max", smallest=False), 0, 0),
}
