"""What `trainwright wait --for` waits for. Pure.

Complete, Failed, Suspended, condition=TYPE[=STATUS]   a condition of the TrainJob
Running                                                all of its pods run, or have
delete, create                                         it is gone with its pods, or there
jsonpath={.status.state}=Running                       a field has a value, or any where none is given
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from trainwright.cli.console.nearness import near
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.jsonpaths import as_text, find, steps_of
from trainwright.pipeline.reasons.sentences import Phase
from trainwright.schema.jsonobject import Json

CONDITIONS = ("Complete", "Failed", "Suspended")


class Goal(NamedTuple):
    what: str
    """For a message: `TrainJob x will never be WHAT`."""
    is_reached: Callable[[Json, Phase], bool]
    code: Callable[[Phase], int] = lambda phase: 0
    is_absence: bool = False
    waits_for_creation: bool = False
    may_follow_the_end: bool = False
    """Whether it can still come about when the job has ended."""

    @property
    def lack(self) -> str:
        return "has not ended" if self is ENDED else f"is not {self.what}"


ENDED = Goal("at its end", lambda job, phase: phase.is_final, lambda phase: 0 if phase.name == "Complete" else 1)


def goal_of(text: str) -> Goal:
    """The goal that the user wrote."""
    word, _, rest = text.partition("=")
    if word.lower() == "delete":
        return Goal("deleted", lambda job, phase: False, is_absence=True, may_follow_the_end=True)
    if word.lower() == "create":
        return Goal("created", lambda job, phase: True, waits_for_creation=True)
    if word == "jsonpath":
        return _jsonpath(rest)
    if word.lower() == "condition":
        kind, _, status = rest.partition("=")
        return _condition(kind, status or "True")
    if text.lower() == "running":
        return Goal("Running", _runs, lambda phase: 1 if phase.name == "Failed" else 0)
    if text.lower() in ("end", "ended"):
        return ENDED
    for kind in CONDITIONS:
        if text.lower() == kind.lower():
            return _condition(kind, "True")
    words = [*CONDITIONS, "Running", "delete", "create", "condition=Complete", "jsonpath={.status.state}=Running"]
    raise Failure(f"--for {text}: not a goal{near(text, words) or '; choose from ' + ', '.join(words)}", 2)


def _runs(job: Json, phase: Phase) -> bool:
    return phase.name == "Running" or phase.is_final


def _condition(kind: str, status: str) -> Goal:
    if not re.fullmatch(r"[A-Za-z][\w./-]*", kind):
        raise Failure(f"--for condition={kind}: write a type of condition, such as condition=Complete", 2)

    def is_reached(job: Json, phase: Phase) -> bool:
        for item in (job.get("status") or {}).get("conditions") or ():
            if str(item.get("type")).lower() == kind.lower():
                return str(item.get("status")).lower() == status.lower()
        return status.lower() == "false"

    return Goal(kind if status.lower() == "true" else f"{kind}={status}", is_reached)


def _jsonpath(text: str) -> Goal:
    expression, _, wanted = text.strip("'").rpartition("}")
    if not expression:
        expression, _, wanted = text.strip("'").partition("=")
        wanted = f"={wanted}" if wanted else ""
    if wanted and not wanted.startswith("="):
        raise Failure(f"--for jsonpath={text}: write jsonpath={{.status.state}}=Running", 2)
    steps, value = steps_of(expression + ("}" if expression.startswith("{") else "")), wanted[1:]

    def is_reached(job: Json, phase: Phase) -> bool:
        found = [as_text(item) for item in find(job, steps)]
        return bool(found) if not wanted else value in found

    return Goal(f"at {text}", is_reached, may_follow_the_end=True)
