"""Workload + TrainJob + time → the TrainJob's status.

In: the TrainJob with its last status, what the plugin reports of its workload if there is one, the time, and what went
wrong in this pass if anything did. Out: the status to store and two decisions as data: when to look again, and whether
the workload must go. Complete and Failed are latches: once one of them is true, nothing here sets the other or takes
it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from trainwright.api.metadata import Condition, find_condition, is_true
from trainwright.api.times import moment_of, rfc3339
from trainwright.api.trainjob import COMPLETE, FAILED, SUSPENDED, ElasticStatus, JobStatus, TrainJob, TrainJobStatus
from trainwright.pipeline.elasticity import said_of
from trainwright.pipeline.errors import PipelineError, RuntimeNotSupported, WorkloadLost, WorkloadUnknown
from trainwright.pipeline.reasons.reason import reason_of_end, reason_of_problem
from trainwright.pipeline.workload import WorkloadStatus

DEADLINE_EXCEEDED = "DeadlineExceeded"
FINAL: Mapping[type[PipelineError], str] = {
    RuntimeNotSupported: "TrainingRuntimeNotSupported",
    WorkloadLost: "WorkloadLost",
}
"""Problems that nothing mends, with the reason of the Failed condition."""


class StatusUpdate(msgspec.Struct, frozen=True):
    """The status a TrainJob should have now, and what follows from it."""

    status: TrainJobStatus
    look_again_after: float | None
    """Seconds until the deadline; None when there is none to wait for."""
    delete_workload: bool
    """The TrainJob ended before its workload did: the workload must be deleted, now and until it is gone."""


def status(
    job: TrainJob,
    workload: WorkloadStatus | None,
    now: datetime,
    *,
    runtime_revision: str = "",
    workload_uid: str = "",
    workload_plugin: str = "",
    problem: PipelineError | str | None = None,
    explanation: str = "",
    elastic: ElasticStatus | None = None,
) -> StatusUpdate:
    """Fold what is known into the status.

    `workload_uid` is the workload's, where there is one; `workload_plugin` is who built it, if that must be
    remembered; `problem` is why this pass could not write what it wanted, in words for the user; `explanation` is why
    the workload failed or does not run, where somebody has looked at its pods (`reasons`); `elastic` counts the nodes
    of an elastic job.
    """
    old = job.status or TrainJobStatus()
    conditions = list(old.conditions or ())
    was_finished = job.is_finished
    if isinstance(problem, PipelineError) and type(problem) in FINAL and not was_finished:
        _set(conditions, _condition(FAILED, "True", FINAL[type(problem)], str(problem), now))
    if job.is_suspended:
        _set(conditions, _condition(SUSPENDED, "True", "Suspended", "TrainJob is suspended", now))
    elif is_true(conditions, SUSPENDED):
        _set(conditions, _condition(SUSPENDED, "False", "Resumed", "TrainJob is resumed", now))
    jobs_status = old.jobs_status
    if workload is not None:
        jobs_status = workload.jobs
        if workload.end is not None and not _finished(conditions):
            _set(conditions, workload.end)  # with its own reason, message and time
    remaining = _remaining(job, conditions, now)
    if remaining is not None and remaining < 0:
        _set(conditions, _condition(FAILED, "True", DEADLINE_EXCEEDED, "TrainJob exceeded its active deadline", now))
    state, message = _summary(job, workload, conditions, problem, explanation, elastic)
    folded = TrainJobStatus(
        conditions=conditions or None,
        jobs_status=jobs_status or None,
        trainer_status=old.trainer_status,
        state=state,
        message=message,
        runtime_revision=old.runtime_revision or runtime_revision or None,
        workload_uid=workload_uid or old.workload_uid,
        workload_plugin=workload_plugin or old.workload_plugin,
        elastic=elastic or old.elastic,
    )
    return StatusUpdate(
        status=folded,
        look_again_after=max(remaining, 1.0) if remaining is not None and remaining >= 0 else None,
        delete_workload=workload is not None and _finished(conditions) and not workload.is_finished,
    )


def _remaining(job: TrainJob, conditions: list[Condition], now: datetime) -> float | None:
    """Seconds left before the deadline, negative when it has passed; None when no deadline runs."""
    seconds = job.spec.active_deadline_seconds if job.spec else None
    if not seconds or _finished(conditions) or job.is_suspended:
        return None
    resumed = find_condition(conditions, SUSPENDED)
    start = resumed.last_transition_time if resumed is not None else job.metadata.creation_timestamp
    if not start:
        return None
    return (moment_of(start) + timedelta(seconds=seconds) - now).total_seconds()


def _summary(
    job: TrainJob,
    workload: WorkloadStatus | None,
    conditions: list[Condition],
    problem: PipelineError | str | None,
    explanation: str,
    elastic: ElasticStatus | None,
) -> tuple[str, str]:
    """What `kubectl get trainjob` shows: one word, and one sentence that says what is going on or what to do."""
    for type in (COMPLETE, FAILED):
        end = find_condition(conditions, type)
        if end is not None and end.is_true:
            return type, _said_of_end(job, end, explanation)
    if isinstance(problem, WorkloadUnknown) and job.status is not None and job.status.state:
        return job.status.state, _said_of_problem(job, problem)  # nobody knows better
    started = workload is not None and any(item.ready or item.succeeded for item in workload.jobs)
    trains = elastic is not None and elastic.ready_nodes >= elastic.min_nodes
    started = started or trains
    if problem is not None:
        state = "Running" if started else "Suspended" if job.is_suspended else "Pending"
        return state, _said_of_problem(job, problem)
    if job.is_suspended:
        return "Suspended", explanation or "TrainJob is suspended"
    if workload is None:
        return "Pending", "waiting for the workload to be created"
    said = explanation or workload.message or _progress(workload.jobs, workload.restarts)
    if elastic is not None and elastic.ready_nodes:
        short = elastic.ready_nodes < elastic.wanted_nodes and explanation
        said = f"{said_of(elastic)}: {explanation}" if short else said_of(elastic)
    return ("Running" if started else "Pending"), said


def _said_of_problem(job: TrainJob, problem: PipelineError | str) -> str:
    """What keeps the operator from going on, and what to do about it."""
    reason = reason_of_problem(job.metadata.name, str(problem))
    return reason.message if reason is not None else str(problem)


def _said_of_end(job: TrainJob, end: Condition, explanation: str) -> str:
    """What was said when the job ended stays: what it was read from may be gone by now."""
    if job.is_finished and job.status is not None and job.status.message:
        return job.status.message
    if not explanation and end.type == FAILED:
        reason = reason_of_end(job.metadata.name, end)
        explanation = reason.message if reason is not None else ""
    return explanation or end.message


def _progress(jobs: list[JobStatus], restarts: int) -> str:
    running = [item.name for item in jobs if item.ready]
    waiting = [item.name for item in jobs if item.active and not item.ready]
    parts = []
    if running:
        parts.append(f"running: {', '.join(running)}")
    if waiting:
        parts.append(f"waiting for pods of: {', '.join(waiting)}")
    if restarts:
        parts.append(f"restarts: {restarts}")
    return "; ".join(parts) or "waiting for the first pods"


def _finished(conditions: list[Condition]) -> bool:
    return is_true(conditions, COMPLETE) or is_true(conditions, FAILED)


def _condition(type: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message, last_transition_time=rfc3339(now))


def _set(conditions: list[Condition], condition: Condition) -> None:
    """Upsert by type; the transition time moves only when the status does."""
    for index, present in enumerate(conditions):
        if present.type == condition.type:
            if present.status == condition.status:
                condition = msgspec.structs.replace(condition, last_transition_time=present.last_transition_time)
            conditions[index] = condition
            return
    conditions.append(condition)
