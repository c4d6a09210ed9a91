"""Delivers the submissions of the outbox to their cluster: each once, in order, whoever delivers and whenever.

Before a TrainJob is created the cluster is asked for it. One with the run's id is an earlier delivery of ours, whose
answer was lost or whose deliverer was killed: it counts. One of another run is a stranger's: the submission is refused,
and the run's record ends with that sentence; where the user typed `run`, a finished one makes room, as it does for any
`run`. What the server refuses ends in its words; what nobody answers waits.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import msgspec

from trainwright.api.phases import condition
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.api.wellknown import RUN
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.delete import delete_job
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.submission import Submission
from trainwright.cli.run.lastseen import target_name
from trainwright.cli.run.recording import Recording
from trainwright.client.client import Client
from trainwright.client.errors import AlreadyExists, ClientError, NotFound, ServerError, TooManyRequests, Unauthorized
from trainwright.runs import RunsHome
from trainwright.runs.outbox import Entry, Outbox
from trainwright.schema.jsonobject import Json

LOOK_SECONDS = 2.0
RUNTIME_SECONDS = 20.0
LATER = (ServerError, TooManyRequests, Unauthorized)
"""Answers that say nothing about the TrainJob."""


class Result(NamedTuple):
    """What became of the outbox."""

    delivered: list[Entry]
    refused: list[tuple[Entry, str]]
    why_waiting: str
    """Why the rest waits; empty when nothing does."""


def keep(target: Target, prepared: Prepared, source: str, *, replaces: bool = False) -> Entry:
    """Puts a run into the outbox, then begins its record."""
    submission = prepared.submission
    entry = Entry(
        run=submission.run,
        submitted=rfc3339(time.time()),
        target=target_name(target),
        namespace=submission.namespace,
        source=source,
        job=submission.job,
        companions=list(submission.companions),
        belongings=list(submission.belongings),
        replaces=replaces,
        environment=None if prepared.environment is None else dict(prepared.environment),
        workdir=prepared.workdir,
        python=prepared.python,
    )
    target.directory.create()
    Outbox(target.directory.path).put(entry)
    _begin_record(target, prepared, entry)
    return entry


async def deliver(target: Target) -> Result:
    """Delivers what waits for this cluster, until somebody does not answer."""
    outbox = Outbox(target.directory.path)
    result = Result([], [], "")
    if not outbox.waiting(target_name(target)):
        return result
    with outbox.delivering() as ours:
        if not ours:
            return result._replace(why_waiting="another process is delivering")
        waiting = outbox.waiting(target_name(target))
        if not waiting:
            return result
        records = Recording(target)
        try:
            async with target.client() as client:
                for entry in waiting:
                    await _deliver(client, target, entry, records, result)
                    outbox.remove(entry)
        except (ClientError, Failure) as error:
            return result._replace(why_waiting=str(error))
    return result


async def deliver_all(target: Target) -> Result:
    """Delivers until nothing waits for this cluster any more."""
    total = Result([], [], "")
    while True:
        result = await deliver(target)
        total.delivered.extend(result.delivered)
        total.refused.extend(result.refused)
        if not Outbox(target.directory.path).waiting(target_name(target)):
            return total
        await asyncio.sleep(LOOK_SECONDS)


async def _deliver(client: Client, target: Target, entry: Entry, records: Recording, result: Result) -> None:
    prepared = _prepared(entry)
    submission = prepared.submission
    _begin_record(target, prepared, entry)  # whoever submitted it may have been killed before it did
    try:
        created = await _create_once(client, target, submission, replaces=entry.replaces)
    except Failure as failure:
        if isinstance(failure.__cause__, LATER):
            raise
        await submission.remove_belongings(client)
        records.refused(entry.run, failure.message)
        result.refused.append((entry, failure.message))
        return
    await submission.own_belongings(client, created)
    records.created(submission, created)
    result.delivered.append(entry)


def _prepared(entry: Entry) -> Prepared:
    submission = Submission(entry.job, entry.companions, entry.namespace, belongings=entry.belongings)
    return Prepared(submission, entry.environment, entry.workdir, entry.python)


async def _create_once(client: Client, target: Target, submission: Submission, *, replaces: bool) -> Json:
    """Our TrainJob: the one that is there already, or a new one. Raises `Failure` where it is refused."""
    while True:
        present = await _find(client, submission)
        if present is not None and _run_of(present) == submission.run:
            return present
        if present is not None and not (replaces and has_ended(present)):
            raise Failure(
                f"TrainJob {submission.name} exists already in namespace {submission.namespace}, of another run"
            )
        await _wait_for_runtime(client, submission)
        await submission.apply_companions(client)
        await submission.create_belongings(client)
        try:
            if present is not None:
                await submission.check(client)
                await delete_job(target, client, submission.name, submission.namespace)
            return await submission.create(client)
        except Failure as failure:
            if not isinstance(failure.__cause__, AlreadyExists):
                raise


async def _wait_for_runtime(client: Client, submission: Submission) -> None:
    """A cluster that comes up answers before all of it is there: a runtime may be late, and was judged when it was
    submitted.
    """
    end = time.monotonic() + RUNTIME_SECONDS
    while True:
        try:
            return await submission.check_runtime(client)
        except Failure as failure:
            if isinstance(failure.__cause__, LATER) or time.monotonic() > end:
                raise
        await asyncio.sleep(LOOK_SECONDS)


async def _find(client: Client, submission: Submission) -> Json | None:
    try:
        found: Json = await client.get(TRAIN_JOBS, submission.name, submission.namespace)
    except NotFound:
        return None
    return found


def _run_of(job: Json) -> str | None:
    return (job["metadata"].get("annotations") or {}).get(RUN)


def has_ended(job: Json) -> bool:
    return bool(condition(job, "Complete") or condition(job, "Failed"))


def _begin_record(target: Target, prepared: Prepared, entry: Entry) -> None:
    """The record of a run that waits, and since when; one that is there already says so, too."""
    home = RunsHome(target.directory.path)
    if home.read(entry.run) is None:
        Recording(target).begin(prepared, source=entry.source)
    said = f"not delivered yet: it waits in the outbox since {entry.submitted}, until the API server answers"
    home.update(
        entry.run,
        lambda record: (
            record if record.uid or record.is_finished else msgspec.structs.replace(record, pid=None, message=said)
        ),
    )
