"""Makes the plans: every write of every workload, with everything that can happen to it, and every view of the whole.

An undisturbed run says how many writes and reads there are. Where not all of what is possible is tried, the seed draws;
`wide` tries it all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from trainwright.testing.plans.plan import Fault, Plan
from trainwright.testing.plans.verdict import undisturbed
from trainwright.testing.plans.workloads import WORKLOADS

AT_WRITES = ("lost", "unheard", "doubled", "crash-before", "crash-after")
CODES = ("409", "422", "429", "500", "503", "504")
MANY = 12
VIEWED = ("trainjobs", "jobsets")
MOST_WRITES = 14
"""Of one workload; those of one with more are of several jobs that do the same."""

Faults = tuple[Fault, ...]


async def all_plans(seed: int = 0, *, wide: bool = False) -> list[Plan]:
    return [plan for name in WORKLOADS for plan in await plans_of(name, seed, wide=wide)]


async def plans_of(workload: str, seed: int = 0, *, wide: bool = False) -> list[Plan]:
    reference = await undisturbed(Plan(workload, seed))
    draw = random.Random(f"{workload} {seed}")  # noqa: S311
    count = len(reference.writes)
    places = range(1, count + 1)
    if count > MOST_WRITES and not wide:
        places = sorted(draw.sample(places, MOST_WRITES))  # type: ignore[assignment]
    found: list[Faults] = []
    for at in places:
        found += _at_write(at, draw)
        some = list(_views_at(at, draw))
        found += some if wide else draw.sample(some, 4)
        more = list(_together(at, count, draw))
        found += more if wide else [draw.choice(more)]
    for at in range(1, reference.reads + 1):
        some = [(Fault("read-lost", at=at),), (Fault("read-refused", "503", 3, at),), (Fault("read-garbled", at=at),)]
        found += some if wide else [draw.choice(some)]
    found += _throughout(count, draw)
    return [Plan(workload, seed, faults) for faults in found]


def _at_write(at: int, draw: random.Random) -> Iterator[Faults]:
    for kind in AT_WRITES:
        yield (Fault(kind, at=at),)
    yield (Fault("late", str(draw.choice((2, 8, 25, 45))), at=at),)
    for code in CODES:
        yield (Fault("refused", code, at=at),)
        yield (Fault("refused", code, MANY, at),)


def _views_at(at: int, draw: random.Random) -> Iterator[Faults]:
    for plural in VIEWED:
        yield (Fault("hide", f"{plural}/{draw.choice((3, 8, 15, 40))}", at=at),)
    for back in (1, 3, 6):
        yield (Fault("stale", f"{draw.choice((5, 15, 30))}/{back}", at=at),)
    for kind in ("cut", "expire", "server"):
        yield (Fault(kind, at=at),)


def _together(at: int, count: int, draw: random.Random) -> Iterator[Faults]:
    yield (Fault("crash-after", at=at), Fault("unheard", at=at + 1))
    yield (Fault("unheard", at=at), Fault("refused", "503", 3, at=draw.randint(1, count)))
    yield (Fault("two"), Fault(draw.choice(AT_WRITES), at=at))
    yield (Fault("frozen", str(draw.choice((8, 20, 60))), at=at),)


def _throughout(count: int, draw: random.Random) -> Iterator[Faults]:
    for seconds in ("1", "5", "20"):
        yield (Fault("lag", seconds),)
    for plural in VIEWED:
        for seconds in ("2", "10", "30"):
            yield (Fault("delay", f"{plural}/{seconds}"),)
    yield (Fault("delay", "trainjobs/10"), Fault("delay", "jobsets/3"))
    for kind, values in (("skew", ("-600", "600")), ("rate", ("0.7", "1.4"))):
        for value in values:
            yield (Fault(kind, value),)
    for jump in ("-3600", "3600"):
        yield (Fault("jump", jump, at=draw.randint(1, count)),)
    yield (Fault("two"),)
