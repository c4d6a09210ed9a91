"""One finding of `doctor`."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(NamedTuple):
    what: str
    state: str
    """ok, warn (training may suffer) or fail (training is not possible)."""
    text: str
    mend: str = ""


def ok(what: str, text: str) -> Finding:
    return Finding(what, OK, text)


def warn(what: str, text: str, mend: str) -> Finding:
    return Finding(what, WARN, text, mend)


def fail(what: str, text: str, mend: str) -> Finding:
    return Finding(what, FAIL, text, mend)
