"""The types of this package: a `Cause` is a row of the table, a `Finding` is a cause that was met in a TrainJob."""

from __future__ import annotations

from typing import Final

import msgspec

FIRST: Final = 0
"""The weight of what explains by itself why a job failed or waits."""
VAGUE: Final = 1
"""Of what may explain it, when nothing better does: an exit code, an unknown exception."""
CONSEQUENCE: Final = 2
"""Of what happens to a rank because another one failed, such as a connection that broke."""


class Cause(msgspec.Struct, frozen=True):
    """Why a job fails or waits, as the troubleshooting page tells it."""

    code: str
    summary: str
    """What it is, in a few words: the heading of its paragraph."""
    meaning: str
    mend: str
    """What to do about it: one imperative sentence without a full stop. It ends the headline."""
    more: str = ""
    """What else helps; for the page alone."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that was met, with who it concerns."""

    cause: Cause
    what: str
    """What happened, to whom: the headline without its mend and without a full stop."""
    mend: str = ""
    """What to do in this case, where it is more than the cause's own words."""
    kind: str = "TrainJob"
    """The kind of the object in which it was found."""
    name: str = ""
    rank: int | None = None
    weight: int = FIRST
    time: str = ""
    """When it happened, where that is known; an RFC 3339 text."""
    details: tuple[str, ...] = ()
    """Lines that `why` shows: of a log, of a stack, of the kernel."""
