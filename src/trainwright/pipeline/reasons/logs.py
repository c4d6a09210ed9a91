"""What the output of a container says about its end.

In: a container that ended with an error, and its last lines. Out: the finding that explains it best, if the lines say
anything. The first exception that explains itself counts; a broken connection counts only if there is nothing else,
because it is what the other ranks see of the one that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainwright.pipeline.reasons import signals
from trainwright.pipeline.reasons.cause import CONSEQUENCE, FIRST, VAGUE, Cause, Finding
from trainwright.pipeline.reasons.evidence import Ended, name_of
from trainwright.pipeline.reasons.logcauses import EXCEPTION, NCCL, PATTERNS, PEER_LOST, SHARED_GPU, WORLD_SIZE, Pattern
from trainwright.pipeline.reasons.ranks import Speaker, speaker
from trainwright.pipeline.reasons.tracebacks import raised, root_cause

LENGTH = 240
"""How much of a line a headline shows."""
CONTEXT = 4
NCCL_LINES = 5
"""How many lines behind NCCL's error its own last error stands."""


class _Said(NamedTuple):
    """A line that explains something."""

    weight: int
    position: int
    cause: Cause
    rank: int | None
    label: str
    text: str
    place: str


def find(one: Ended) -> Finding | None:
    """What the container's lines say about its end."""
    who = speaker(one.pod)
    root = root_cause(one.lines)
    said = min(_candidates(one, who), default=None, key=lambda line: (line.weight, line.position))
    if said is not None and said.cause is NCCL:
        said = _of_shared_gpu(said, one, who)
    was_killed = root is not None and root.exit_code < 0 and -root.exit_code != signals.TERM
    if root is not None and was_killed and (said is None or said.weight > FIRST):
        return signals.finding(one, root.rank, -root.exit_code)
    if said is None:
        return None
    rank = said.rank if said.rank is not None else root.rank if root is not None else None
    where = f" ({said.place})" if said.place else ""
    return Finding(
        cause=said.cause,
        what=f"{f'rank {rank}' if rank is not None else said.label} failed: {_cut(said.text)}{where}",
        kind="Pod",
        name=name_of(one.pod),
        rank=rank,
        weight=said.weight,
        time=one.time,
        details=tuple(one.lines[max(0, said.position - CONTEXT) : said.position + 1]),
    )


def _candidates(one: Ended, who: Speaker) -> Iterator[_Said]:
    for position, label, rank, text, place in raised(one.lines, who):
        pattern = _pattern_of(text)
        cause = pattern.cause if pattern else EXCEPTION
        weight = CONSEQUENCE if cause is PEER_LOST else FIRST
        yield _Said(weight, position, cause, rank, label, text, place)
    for position, line in enumerate(one.lines):
        label, rank, text, _ = who.attribute(line)
        pattern = _pattern_of(text)
        if pattern is not None and pattern.anywhere:
            weight = CONSEQUENCE if pattern.cause is PEER_LOST else VAGUE
            yield _Said(weight, position, pattern.cause, rank, label, text.strip(), "")


def _of_shared_gpu(said: _Said, one: Ended, who: Speaker) -> _Said:
    """NCCL's error, or what it says below it where two ranks use one GPU: that is nobody's network."""
    for line in one.lines[said.position : said.position + NCCL_LINES]:
        text = who.attribute(line).text.strip()
        if SHARED_GPU.search(text):
            return said._replace(cause=WORLD_SIZE, text=text)
    return said


def _pattern_of(text: str) -> Pattern | None:
    return next((pattern for pattern in PATTERNS if pattern.expression.search(text)), None)


def _cut(text: str) -> str:
    text = re.sub(r"\s+", " ", text).rstrip(". ")
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}…"
