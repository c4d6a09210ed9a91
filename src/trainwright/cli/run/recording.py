"""The record of a run as `trainwright run` writes it.

On the local cluster the recorder goes on with it. Another cluster has nobody who keeps our records, so there the
command itself writes how the run ended, as the TrainJob says when the command stops following it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trainwright.api.phases import condition
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.runid import is_run_id
from trainwright.api.times import rfc3339
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.submission import Submission
from trainwright.client.errors import NotFound
from trainwright.runs import LOCAL, Record, RunsHome, State, files
from trainwright.runs.record import NOT_SUBMITTED
from trainwright.schema.jsonobject import Json
from trainwright.version import __version__


class Recording:
    """The records of the runs on one target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._home = RunsHome(target.directory.path)
        self._surroundings: tuple[str, Mapping[str, str] | None] = ("", None)

    def begin(self, prepared: Prepared, *, source: str) -> None:
        """Makes the run's home, before its TrainJob is created."""
        submission = prepared.submission
        spec = submission.job.get("spec") or {}
        trainer = spec.get("trainer") or {}
        connection = None if self._target.is_local else self._target.kubeconfig()
        record = Record(
            id=submission.run,
            name=submission.name,
            namespace=submission.namespace,
            context=connection.context if connection else LOCAL,
            server=connection.server if connection else "",
            source=source,
            workdir=prepared.workdir or str(Path.cwd()),
            python=prepared.python,
            runtime=str((spec.get("runtimeRef") or {}).get("name") or ""),
            nodes=trainer.get("numNodes"),
            procs=trainer.get("numProcPerNode"),
            created=rfc3339(time.time()),
            version=__version__,
            origin="run",
            pid=os.getpid(),
        )
        self._surroundings = prepared.python, prepared.environment
        self._target.directory.create()
        try:
            self._home.create(record, environment=prepared.environment)
        except OSError as error:
            raise Failure(
                f"the run cannot be recorded in {self._home.path}: {error.strerror}; make room, or choose another "
                "directory with --dir"
            ) from error

    def created(self, submission: Submission, job: Json) -> None:
        """The TrainJob exists; the local cluster's recorder sees that by itself. What was submitted is written now,
        when nobody waits for it.
        """
        from trainwright.cli.console.output import to_yaml
        from trainwright.runs.surroundings import Surroundings

        if not self._target.is_local:
            uid = job["metadata"]["uid"]
            self._home.update(
                submission.run, lambda record: msgspec.structs.replace(record, uid=uid, state=State.PENDING)
            )
        text = to_yaml([discreet(item) for item in submission.documents])
        run = self._home.of(submission.run)
        files.replace(run.trainjob, text.encode())
        Surroundings.of(*self._surroundings).write(run)

    def refused(self, run: str, why: str) -> None:
        """The TrainJob was not created. Where even its name was refused, no record was begun."""
        if not is_run_id(run):
            return
        now = rfc3339(time.time())
        self._home.update(run, lambda record: record.ended_as(State.FAILED, now, reason=NOT_SUBMITTED, message=why))
        self._home.forget_environment(run)

    def lost(self, run: str, why: str) -> None:
        """The API server did not answer, so that nobody here knows what became of the run. The local cluster's
        recorder finds out by itself.
        """
        if not self._target.is_local:
            now = rfc3339(time.time())
            self._home.update(run, lambda record: record.ended_as(State.LOST, now, message=why))

    async def end(self, run: str, name: str, namespace: str) -> None:
        """The command stops following a run."""
        if self._target.is_local:
            return
        async with self._target.client() as client:
            try:
                job = await client.get(TRAIN_JOBS, name, namespace)
            except NotFound:
                job = None
        now = rfc3339(time.time())
        self._home.update(run, lambda record: _as_seen(record, job, now))


def _as_seen(record: Record, job: Json | None, now: str) -> Record:
    """The record as the TrainJob says, or as deleted where there is none."""
    if job is None or job["metadata"]["uid"] != record.uid:
        return record.ended_as(State.DELETED, now)
    for state in (State.COMPLETE, State.FAILED):
        if found := condition(job, state):
            return record.ended_as(
                state,
                found.get("lastTransitionTime") or now,
                reason=found.get("reason", ""),
                message=(job.get("status") or {}).get("message") or found.get("message", ""),
                exit_code=0 if state == State.COMPLETE else None,
            )
    state = State.SUSPENDED if (job.get("spec") or {}).get("suspend") else State.RUNNING
    return msgspec.structs.replace(record, state=state, pid=None)


def discreet(item: Json) -> Json:
    """An object as it may be shown and kept: without the values of a Secret and the bytes of an archive."""
    fields = {"Secret": ("data", "stringData"), "ConfigMap": ("binaryData",)}.get(item["kind"], ())
    for field in fields:
        if values := item.get(field):
            hidden = {key: f"({len(value)} characters, not shown)" for key, value in values.items()}
            item = {**item, field: hidden}
    return item
