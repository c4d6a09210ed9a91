"""Delivers the submissions of the outbox to their cluster: each once, in order, whoever delivers and whenever.

Before a TrainJob is created the cluster is asked for it. One with the run's id is an earlier delivery of ours, whose
answer was lost or whose deliverer was killed: it counts. One of another run is a stranger's: the submission is refused,
and the run's record ends with that sentence. What the server refuses ends in its words; what nobody answers waits.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import msgspec

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.api.wellknown import RUN
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.submission import Submission
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


def target_name(target: Target) -> str:
    """The cluster in an entry: `local`, or its address, which stays the same under another context's name."""
    return "local" if target.is_local else target.kubeconfig().server


def keep(target: Target, submission: Submission, source: str) -> Entry:
    """Puts a submission into the outbox, then begins its record."""
    entry = Entry(
        run=submission.run,
        submitted=rfc3339(time.time()),
        target=target_name(target),
        namespace=submission.namespace,
        source=source,
        job=submission.job,
        companions=list(submission.companions),
    )
    target.directory.create()
    Outbox(target.directory.path).put(entry)
    _begin_record(target, submission, source)
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
    submission = Submission(entry.job, entry.companions, entry.namespace)
    if RunsHome(target.directory.path).read(entry.run) is None:
        _begin_record(target, submission, entry.source)  # whoever submitted it was killed in between
    try:
        created = await _create_once(client, submission)
    except Failure as failure:
        if isinstance(failure.__cause__, LATER):
            raise
        records.refused(entry.run, failure.message)
        result.refused.append((entry, failure.message))
        return
    records.created(submission, created)
    result.delivered.append(entry)


async def _create_once(client: Client, submission: Submission) -> Json:
    """Our TrainJob: the one that is there already, or a new one. Raises `Failure` where it is refused."""
    while True:
        present = await _find(client, submission)
        if present is not None:
            return present
        await _wait_for_runtime(client, submission)
        await submission.apply_companions(client)
        try:
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
    if ((found["metadata"].get("annotations") or {}).get(RUN)) != submission.run:
        raise Failure(f"TrainJob {submission.name} exists already in namespace {submission.namespace}, of another run")
    return found


def _begin_record(target: Target, submission: Submission, source: str) -> None:
    Recording(target).begin(Prepared(submission), source=source)
    said = "not delivered yet: it waits in the outbox until the API server answers"
    RunsHome(target.directory.path).update(
        submission.run, lambda record: msgspec.structs.replace(record, pid=None, message=said)
    )
