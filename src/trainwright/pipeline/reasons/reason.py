"""The reason of a TrainJob: one headline, its cause, its mend, and the chain of objects that leads to it.

    reason_of(evidence)   → a Reason, or None when nothing is wrong as far as the evidence shows

Pure, and used by everybody who says anything about a job: the operator for `status.message` and its events, `run`,
`get` and `why`. Who gives more evidence may learn more, and is told nothing that contradicts: what a finished job's
status says stays its headline.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain as joined

import msgspec

from trainwright.api.metadata import Condition
from trainwright.pipeline.reasons import failures, jobs, queues, quiet, scheduling, volumes, waiting, webhooks
from trainwright.pipeline.reasons.cause import FIRST, Finding
from trainwright.pipeline.reasons.chain import Link, chain_of
from trainwright.pipeline.reasons.evidence import Evidence, condition_of, name_of, phase_name, status_of

_WAITS = (
    jobs.find,
    queues.find,
    webhooks.find,
    scheduling.find,
    waiting.find,
    volumes.find,
    quiet.find,
    jobs.find_idle,
)
"""Why a job that has not ended does not go on: the first that finds anything decides."""


class Reason(msgspec.Struct, frozen=True):
    """Why a job is as it is."""

    code: str
    headline: str
    """What happened, to whom."""
    mend: str
    """What to do about it."""
    rank: int | None
    details: tuple[str, ...]
    chain: tuple[Link, ...]

    @property
    def message(self) -> str:
        """The whole sentence, as `status.message` has it."""
        return message_of(self.headline, self.mend)


def message_of(headline: str, mend: str) -> str:
    return f"{headline}. {mend}" if mend else headline


def reason_of(evidence: Evidence) -> Reason | None:
    """The reason, or None when the job is well as far as the evidence shows."""
    found = _found(evidence)
    said = _said_of_end(evidence)
    if found is None:
        return Reason(_code_of(evidence, said), said, "", None, (), ()) if said else None
    mend = "" if jobs.says_what_to_do(found) else jobs.mend_for(found.mend or found.cause.mend, name_of(evidence.job))
    reason = Reason(found.cause.code, found.what, mend, found.rank, found.details, chain_of(evidence, found))
    if said and said != reason.message and found.weight > FIRST:  # what it was read from may be gone
        return msgspec.structs.replace(reason, code=_code_of(evidence, said), headline=said, mend="")
    return reason


def _said_of_end(evidence: Evidence) -> str:
    """What the status of a job that Failed says, where that is more than the workload controller's own words."""
    failed = condition_of(evidence.job, "Failed")
    said = str(status_of(evidence.job).get("message") or "") if failed else ""
    return "" if failed is None or said == str(failed.get("message") or "") else said


def _code_of(evidence: Evidence, said: str) -> str:
    """The code under which the operator told it, if its event is there."""
    told = (event for event in evidence.events if event.get("message") == said)
    return str(next(told, {}).get("reason") or "")


def is_vague(code: str) -> bool:
    """Whether this is no more than how something ended, so that it is worth reading logs."""
    return code in ("", "ExitCode", "EndedFromOutside", "PeerLost", "Crashed", "CrashLoop")


def reason_of_end(name: str, end: Condition) -> Reason | None:
    """The reason of a job that Failed, where its condition alone tells."""
    condition = {"type": "Failed", "status": "True", "reason": end.reason, "message": end.message}
    return reason_of(Evidence(job={"metadata": {"name": name}, "status": {"conditions": [condition]}}))


def reason_of_problem(name: str, problem: str) -> Reason | None:
    """The reason of a job with which the operator cannot go on, by the error that it met."""
    return reason_of(Evidence(job={"metadata": {"name": name}}, problem=problem))


def _found(evidence: Evidence) -> Finding | None:
    if condition_of(evidence.job, "Complete"):
        return None
    if condition_of(evidence.job, "Failed"):
        return next(jobs.find(evidence), None) or worst(failures.find(evidence))
    first = next(joined.from_iterable(find(evidence) for find in _WAITS), None)
    if first is None and any(phase_name(pod) == "Failed" for pod in evidence.pods):
        return worst(failures.find(evidence))
    return first


def worst(found: Iterator[Finding]) -> Finding | None:
    """The finding that explains most; of several the one that came first."""
    return min(
        found, default=None, key=lambda one: (one.weight, one.time or "~", one.rank if one.rank is not None else 0)
    )
