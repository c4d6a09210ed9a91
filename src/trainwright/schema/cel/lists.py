"""Lists: order, sums, extremes, and lists seen as sets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .signatures import Function, Signatures, need
from .values import NO_OVERLOAD, CelError, Duration, equal, ordered


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
    "sets.contains": (sets_contains, 2, 2),
    "sets.equivalent": (sets_equivalent, 2, 2),
    "sets.intersects": (sets_intersects, 2, 2),
}

MEMBER: Signatures = {
    "isSorted": (is_sorted, 0, 0),
    "sum": (total, 0, 0),
    "min": (_extreme("min", smallest=True), 0, 0),
    "max": (_extreme("max", smallest=False), 0, 0),
}
