"""What a conversion or its proof found out about one aspect of a job.

Errors of this room:

    Refused     the job cannot be converted: each sentence says where and why
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    EQUAL = "equal"
    SAME = "means the same"
    DIFFERS = "differs"


class Finding(NamedTuple):
    """One row of the proof."""

    aspect: str
    """What was compared, in the words of the v1 job; `--accept` takes it."""
    verdict: Verdict
    reason: str = ""


class Refused(Exception):
    """The job is not one that v1 would run, or that can be converted."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = list(sentences)
