"""Semantic versions in CEL: `semver('1.2.3').isLessThan(semver('2.0.0'))`."""

from __future__ import annotations

import re
from typing import Any

from trainwright.schema.cel.quantities import MEMBER as QUANTITY
from trainwright.schema.cel.signatures import Function, Signatures, need
from trainwright.schema.cel.values import CelError

_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?",
    re.ASCII,
)
_LOOSE = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(.*)", re.ASCII | re.DOTALL)


class Version:
    """A parsed version; build metadata does not count in comparisons."""

    cel_type = "kubernetes.Semver"
    __slots__ = ("key", "numbers")

    def __init__(self, text: str) -> None:
        match = _SEMVER.fullmatch(text)
        if match is None:
            raise CelError(f"semver parse error: {text} is not a semantic version")
        self.numbers = (_uint64(match[1]), _uint64(match[2]), _uint64(match[3]))
        parts = match[4].split(".") if match[4] else []
        # Numbers sort before words; a release comes after its pre-releases.
        ranked = tuple((0, _uint64(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        self.key = (self.numbers, not parts, ranked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def _uint64(digits: str) -> int:
    number = int(digits) if len(digits) <= 20 else 2**64
    if number >= 2**64:
        raise CelError(f"semver parse error: {digits[:20]} is out of range")
    return number


def _loose(text: str) -> str:
    """A version in full: `v1.2` is `1.2.0`, `01` is `1`."""
    match = _LOOSE.fullmatch(text)
    if match is None:
        return text
    return ".".join((part or "0").lstrip("0") or "0" for part in match.groups()[:3]) + match[4]


def semver(text: Any, normalize: Any = False) -> Version:
    need(text, str)
    need(normalize, bool)
    return Version(_loose(text) if normalize else text)


def is_semver(text: Any, normalize: Any = False) -> bool:
    try:
        semver(text, normalize)
    except CelError as error:
        if not str(error).startswith("semver"):
            raise
        return False
    return True


def _number(at: int) -> Function:
    def number(value: Any) -> int:
        need(value, Version)
        return int(value.numbers[at])

    return number


def _shared(name: str, compare: Function) -> Function:
    """A function of quantities and versions: the type of its argument decides."""
    of_quantities = QUANTITY[name][0]

    def choose(left: Any, right: Any) -> Any:
        if not isinstance(left, Version):
            return of_quantities(left, right)
        need(right, Version)
        return compare(left.key, right.key)

    return choose


GLOBAL: Signatures = {"semver": (semver, 1, 2), "isSemver": (is_semver, 1, 2)}

NAMESPACED: Signatures = {}

MEMBER: Signatures = {
    "major": (_number(0), 0, 0),
    "minor": (_number(1), 0, 0),
    "patch": (_number(2), 0, 0),
    "isLessThan": (_shared("isLessThan", lambda a, b: a < b), 1, 1),
    "isGreaterThan": (_shared("isGreaterThan", lambda a, b: a > b), 1, 1),
    "compareTo": (_shared("compareTo", lambda a, b: int(a > b) - int(a < b)), 1, 1),
}
