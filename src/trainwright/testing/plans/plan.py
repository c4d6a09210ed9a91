"""A plan as a value and as one line: `W4 0 refused:503x12@3 two`.

A line is a workload, a seed, and faults. A fault is `KIND[:VALUE][xTIMES][@WHERE]`; WHERE counts the operators' writes
(for `read-…` their reads) from 1.

    lost@3              write 3 never reaches the server
    unheard@3           write 3 is carried out, its answer is lost
    doubled@3           write 3 is carried out twice
    late:20@3           write 3 takes 20 s to arrive
    refused:503x12@3    write 3, and its eleven repetitions, are answered with 503
    crash-before@3      the operator dies instead of write 3, and is started again
    crash-after@3       the same, after the server has carried it out
    read-lost@2, read-refused:500x3@2, read-garbled@2
    lag:5               every event reaches the operator 5 s late
    delay:jobsets/20    events of one kind do
    hide:jobsets/15@3   from write 3 on nothing of that kind is seen for 15 s, and then only what is left
    stale:20/4@3        after write 3 the operator dies; its successor sees for 20 s what was 4 changes earlier
    cut@3, expire@3     all watches break, or end with 410
    server@3            the API server is restarted
    jump:-3600@3        the operator's wall clock is set
    skew:600, rate:1.5  it is off, or fast
    two                 two operators act at once, without election
    frozen:60@3         two with election; the leader stands still for 60 s in the middle of write 3
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FAULT = re.compile(r"(?P<kind>[a-z-]+)(:(?P<value>[^x@]+))?(x(?P<times>\d+))?(@(?P<at>\d+))?")
KINDS = frozenset(
    (
        *("lost", "unheard", "doubled", "late", "refused", "crash-before", "crash-after"),
        *("read-lost", "read-refused", "read-garbled"),
        *("lag", "delay", "hide", "stale", "cut", "expire", "server"),
        *("jump", "skew", "rate", "two", "frozen"),
    )
)


@dataclass(frozen=True)
class Fault:
    kind: str
    value: str = ""
    times: int = 1
    at: int = 0

    def __str__(self) -> str:
        text = self.kind + (f":{self.value}" if self.value else "")
        return text + (f"x{self.times}" if self.times > 1 else "") + (f"@{self.at}" if self.at else "")

    @property
    def number(self) -> float:
        return float(self.value)

    @property
    def pair(self) -> tuple[str, str]:
        first, _, second = self.value.partition("/")
        return first, second


@dataclass(frozen=True)
class Plan:
    workload: str
    seed: int = 0
    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.workload, str(self.seed), *map(str, self.faults)])

    def of(self, *kinds: str) -> list[Fault]:
        return [fault for fault in self.faults if fault.kind in kinds]

    @property
    def undisturbed(self) -> Plan:
        return Plan(self.workload, self.seed)


def parse(line: str) -> Plan:
    """Raises `ValueError` for a line that is no plan."""
    words = line.split()
    if len(words) < 2 or not words[1].isdecimal():
        raise ValueError(f"{line!r} is no plan: write WORKLOAD SEED FAULT…")
    return Plan(words[0], int(words[1]), tuple(_fault(word) for word in words[2:]))


def _fault(word: str) -> Fault:
    found = _FAULT.fullmatch(word)
    if found is None or found["kind"] not in KINDS:
        raise ValueError(f"{word!r} is no fault: there are {', '.join(sorted(KINDS))}")
    return Fault(found["kind"], found["value"] or "", int(found["times"] or 1), int(found["at"] or 0))
