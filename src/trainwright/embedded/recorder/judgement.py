"""What the record of a run says, given what the API shows. Pure.

In: the record so far, the TrainJob, how often its workload restarted, its pods. Out: the record. Where pods tell when
something happened, their times are used and not the time at which somebody noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from trainwright.api.metadata import Condition
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import COMPLETE, FAILED, TrainerStatus, TrainJob
from trainwright.api.wellknown import RUN
from trainwright.embedded.recorder.objects import ManagedMeta, Pod
from trainwright.runs import Progress, Record, State
from trainwright.schema.jsonobject import Json

STOPPED = "the cluster was stopped"
"""Who asked, when the control plane ended and its pods with it."""

_STATES = {str(state): state for state in (State.WAITING, State.PENDING, State.RUNNING, State.SUSPENDED)}


def first_record(job: TrainJob, version: str) -> Record:
    """The record of a TrainJob that nobody recorded before."""
    metadata = job.metadata
    return Record(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        created=metadata.creation_timestamp,
        state=State.PENDING,
        origin=_origin(job),
        version=version,
    )


def submitted(job: TrainJob) -> Json:
    """The TrainJob without what the cluster added to it."""
    metadata = job.metadata
    kept = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
    }
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {field: value for field, value in kept.items() if value},
        "spec": msgspec.to_builtins(job.spec) if job.spec is not None else {},
    }


def judged(record: Record, job: TrainJob, restarts: int, pods: Sequence[Pod], failures: Iterable[Failure]) -> Record:
    """The record as of now. One that has an end keeps it."""
    record = _described(record, job)
    if record.is_finished:
        return record
    started = min((time for pod in pods if (time := pod.started_at)), default=None)
    record = msgspec.structs.replace(
        record,
        started=min(filter(None, (record.started, started)), default=None),
        attempts=max(record.attempts, restarts + 1) if record.started or started else record.attempts,
        progress=progress_of(job) or record.progress,
    )
    if record.nodes is None and job.status is not None and job.status.state != State.PENDING:
        nodes = len({pod.node for pod in pods} - {None})  # the runtime decided
        record = msgspec.structs.replace(record, nodes=nodes or None)
    for kind, state in ((COMPLETE, State.COMPLETE), (FAILED, State.FAILED)):
        condition = job.condition(kind)
        if condition is not None and condition.is_true:
            said = (job.status.message if job.status is not None else None) or condition.message
            return _ended(record, state, condition, said, pods, failures)
    return _alive(record, job, started)


class Failure(msgspec.Struct, frozen=True, order=True):
    """A container that failed, by the attempt and the time."""

    attempt: int
    finished: str
    exit_code: int


def failures_of(pod: Pod) -> list[Failure]:
    """The failed containers of a pod."""
    return [
        Failure(pod.attempt, ended.get("finishedAt") or "", int(ended["exitCode"]))
        for ended in pod.terminated
        if ended.get("exitCode")
    ]


def deleted(record: Record, last: TrainJob | None, failures: Iterable[Failure], now: str) -> Record:
    """The record of a run whose TrainJob is gone. `last` is its last state, where somebody saw it."""
    if last is not None:
        record = judged(record, last, 0, (), failures)
    by = record.asked.by if record.asked is not None else ""
    message = f"deleted by {by}" if by else "its TrainJob was deleted before it ended"
    return record.ended_as(State.DELETED, now, reason="Deleted", message=message)


def progress_of(job: TrainJob) -> Progress | None:
    reported: TrainerStatus | None = job.status.trainer_status if job.status is not None else None
    if reported is None:
        return None
    return Progress(
        time=reported.last_updated_time,
        percent=reported.progress_percentage,
        remaining_seconds=reported.estimated_remaining_seconds,
        metrics={metric.name: metric.value for metric in reported.metrics or ()} or None,
    )


def _described(record: Record, job: TrainJob) -> Record:
    """Adds what the record does not say yet."""
    spec = job.spec
    trainer = spec.trainer if spec is not None else None
    return msgspec.structs.replace(
        record,
        uid=record.uid or job.metadata.uid,
        created=record.created or job.metadata.creation_timestamp,
        runtime=record.runtime or (spec.runtime_ref.name if spec is not None else ""),
        nodes=record.nodes if record.nodes is not None or trainer is None else trainer.num_nodes,
        procs=record.procs if record.procs is not None or trainer is None else trainer.num_proc_per_node,
        origin=record.origin or _origin(job),
    )


def _ended(
    record: Record,
    state: State,
    condition: Condition,
    message: str,
    pods: Sequence[Pod],
    failures: Iterable[Failure],
) -> Record:
    times = [ended.get("finishedAt") or "" for pod in pods for ended in pod.terminated]
    code: int | None = 0
    if state is State.FAILED:
        code = _exit_code([failure for pod in pods for failure in failures_of(pod)] or list(failures))
        if record.asked is not None:
            message = f"{record.asked.by} at {record.asked.time}, which ended its processes; {message}"
    return record.ended_as(
        state, max(times, default="") or condition.last_transition_time, reason=condition.reason, message=message,
        exit_code=code,
    )  # fmt: skip


def _exit_code(failures: Sequence[Failure]) -> int | None:
    """The exit code of the first container that failed in the last attempt."""
    if not failures:
        return None
    last = max(failure.attempt for failure in failures)
    return min(failure for failure in failures if failure.attempt == last).exit_code


def _alive(record: Record, job: TrainJob, started: str | None) -> Record:
    said = job.status
    state = State.SUSPENDED if job.is_suspended else _STATES.get((said and said.state) or "", State.PENDING)
    asked = record.asked
    if asked is not None and started is not None and started > (asked.time or ""):
        asked = None  # it runs again: what ended its processes then is over
    message = (said and said.message) or ""
    if state is State.SUSPENDED and asked is not None:
        message = f"suspended by {asked.by}"
    return msgspec.structs.replace(record, state=state, message=message, asked=asked)


def _origin(job: TrainJob) -> str:
    """Who created the TrainJob: by our own annotation, else by the name under which its fields were set."""
    fields = job.metadata.managed_fields if isinstance(job.metadata, ManagedMeta) else None
    managers = {entry.manager for entry in fields or ()}
    if job.metadata.annotation(RUN) or "trainwright-run" in managers:
        return "run"
    if any(manager.startswith("kubectl") for manager in managers):
        return "kubectl"
    return "sdk" if any("python" in manager.lower() or "OpenAPI" in manager for manager in managers) else "api"
