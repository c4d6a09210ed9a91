"""Judges a run: its end state is that of an undisturbed one, as much came and went, and no invariant was broken."""

from __future__ import annotations

import asyncio
import difflib
from typing import NamedTuple

import yaml

from trainwright.schema.jsonobject import Json
from trainwright.testing.plans.plan import KINDS, Plan
from trainwright.testing.plans.play import Ending, play

CLOCKS = frozenset(("skew", "jump", "rate"))
CLOCK_SECONDS = 5.0
"""By which a run may end later when only the operator's clock is off: time is the API server's."""

LONGEST_SECONDS = 60.0

_undisturbed: dict[str, Ending] = {}


def forget() -> None:
    """The undisturbed runs, after the code has changed."""
    _undisturbed.clear()


async def undisturbed(plan: Plan) -> Ending:
    """The run that a plan is compared with, played once. It must be good itself."""
    key = str(plan.undisturbed)
    if key not in _undisturbed:
        ending = await play(plan.undisturbed)
        if ending.problems:
            raise AssertionError(f"{key}: " + "\n".join(ending.problems))
        _undisturbed[key] = ending
    return _undisturbed[key]


class Verdict(NamedTuple):
    wrong: list[str]
    in_window: int = 0
    """How many jobs trained twice as the known window allows (`window`)."""


async def judge(plan: Plan) -> list[str]:
    """What is wrong with it; nothing when it holds."""
    return (await verdict(plan)).wrong


async def verdict(plan: Plan) -> Verdict:
    reference = await undisturbed(plan)
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            ending = await play(plan)
    except TimeoutError:
        return Verdict([f"it did not come to an end within {LONGEST_SECONDS:.0f} s of real time"])
    faults = list(ending.problems)
    expected, found = (_comparable(it.state, plan) for it in (reference, ending))
    if expected != found and not any("never happened" in text for text in faults):
        faults.append("the end state differs:\n" + difference(expected, found))
    for name in sorted(reference.counts.keys() | ending.counts.keys()):
        if _may_replace(plan) and " JobSet " in name:
            continue
        if reference.counts[name] != ending.counts[name]:
            faults.append(f"{name}: {ending.counts[name]} times, undisturbed {reference.counts[name]}")
    rate = next((fault.number for fault in plan.of("rate")), 1.0)
    late = ending.seconds - reference.seconds / min(rate, 1.0)
    if plan.faults and not plan.of(*KINDS - CLOCKS) and late > CLOCK_SECONDS:
        faults.append(f"took {ending.seconds:.1f} s, undisturbed {reference.seconds:.1f} s")
    return Verdict(faults, len(ending.losses))


def _may_replace(plan: Plan) -> bool:
    """A JobSet at rest whose change is refused as invalid is replaced by a new one: that is how it should be."""
    return any(fault.value == "422" for fault in plan.of("refused"))


def _comparable(state: dict[str, Json], plan: Plan) -> dict[str, Json]:
    if not _may_replace(plan):
        return state
    return {name: _as_replaced(item) if name.startswith("JobSet/") else item for name, item in state.items()}


def _as_replaced(job_set: Json) -> Json:
    """Without what a JobSet that was replaced, or suspended by a patch of its own, has otherwise."""
    metadata = {key: value for key, value in job_set["metadata"].items() if key != "managedFields"}
    return {**{key: value for key, value in job_set.items() if key != "status"}, "metadata": metadata}


def difference(before: object, after: object) -> str:
    old, new = (yaml.safe_dump(state).splitlines() for state in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "undisturbed", "disturbed", lineterm="", n=2))
