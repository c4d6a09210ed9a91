"""The recorder's controller: follows TrainJobs and writes what their runs' records say.

In: TrainJobs, JobSets, pods and events by watch. Out: the homes of runs. Files are read and written in threads, because
the recorder shares its event loop with the API server. A reconcile of one TrainJob:

    records of deleted predecessors of the name → claim its run → its events and reports → its record → if it ended:
    remove the caller's environment, and delete old runs by the limits
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

import msgspec

from trainwright.api.resources import EVENTS, JOB_SETS, PODS, TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import RUN
from trainwright.client import Client, ClientError, NotFound
from trainwright.controlloop import (
    Clock,
    Controller,
    Delta,
    Done,
    Key,
    Manager,
    Outcome,
    Source,
    SystemClock,
    Watches,
    controlled_by,
    key_of,
)
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.recorder import judgement
from trainwright.embedded.recorder.barreader import BarReader
from trainwright.embedded.recorder.chronicle import Chronicle, trainjob_of
from trainwright.embedded.recorder.judgement import STOPPED, Failure
from trainwright.embedded.recorder.objects import Event, JobSet, Pod, SubmittedJob, keys_of_pod
from trainwright.runs import Asked, BrokenRecord, Deletion, Progress, Record, RunsHome, State, files
from trainwright.runs.limits import SettingsInvalid, limits_of
from trainwright.runs.outbox import Outbox
from trainwright.runs.pods import adopt_logs
from trainwright.runs.record import NOT_SUBMITTED
from trainwright.version import __version__

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often runs without a TrainJob are looked at: their `run` may have died before it created one."""
SUBMIT_SECONDS = 120.0
"""A process that has a run's pid so long after the run began is another one."""


class Recorder:
    """`run()` it beside the other clients of the API; call `finish()` after an orderly stop, before the pods end."""

    def __init__(self, client: Client, home: RunsHome, *, clock: Clock | None = None) -> None:
        self._client = client
        self._home = home
        self._clock = clock or SystemClock()
        self._events = EventRecorder(client, "trainwright-recorder", self._clock)
        self._jobs = Source(TRAIN_JOBS, SubmittedJob)
        self._job_sets = Source(JOB_SETS, JobSet)
        self._pods = Source(PODS, Pod, indexes={"trainjob": lambda pod: [str(key) for key in keys_of_pod(pod)]})
        self._happened = Source(EVENTS, Event)
        watches = [
            Watches(self._jobs),
            Watches(self._job_sets, controlled_by(TRAIN_JOBS.kind)),
            Watches(self._pods, keys_of_pod),
            Watches(self._happened, self._keys_of_event),
        ]
        self._controller = Controller("recorder", self._reconcile, watches, clock=self._clock)
        self._bars = BarReader(client, home, self._jobs, self._pods, self._clock)
        self._jobs.listen(self._job_changed)
        self._pods.listen(self._pod_changed)
        self._happened.listen(self._event_came)
        self._gone: dict[Key, list[TrainJob]] = defaultdict(list)
        self._reports: dict[str, list[Progress]] = defaultdict(list)
        self._failures: dict[str, set[Failure]] = defaultdict(set)
        self._news: dict[Key, list[Event]] = defaultdict(list)
        self._chronicles: dict[str, Chronicle] = {}
        self._adopted: set[str] = set()
        self._over: set[str] = set()
        """Runs that have ended, by id: nothing is left to do for them."""

    @property
    def is_synced(self) -> bool:
        return all(watch.source.is_synced for watch in self._controller.watches)

    async def run(self) -> None:
        """Records until cancelled."""
        tasks = [self._look_after_others, self._bars.run]
        await Manager(self._client, [self._controller], tasks=tasks, clock=self._clock).run()

    async def finish(self) -> None:
        """Records the last state of every TrainJob, read from the API: no watch may have shown it yet."""
        await self._try(self._finish())

    async def _finish(self) -> None:
        for key in list(self._gone):
            await self._reconcile(key)
        jobs = (await self._client.list(TRAIN_JOBS, decode=SubmittedJob)).items or []
        pods = (await self._client.list(PODS, decode=Pod)).items or []
        for job in jobs:
            mine = [pod for pod in pods if key_of(job) in keys_of_pod(pod) and pod.is_of(job.metadata.uid)]
            record = await self._record(job, mine)
            if record is not None and not record.is_finished and any(pod.is_running for pod in mine):
                await asyncio.to_thread(self._home.ask, record.id, Asked(by=STOPPED, time=self._now()))
        for record in await asyncio.to_thread(self._unfinished):
            if record.uid and not any(job.metadata.uid == record.uid for job in jobs):
                await self._settle_vanished(record)

    # What the watches show

    def _job_changed(self, delta: Delta[TrainJob]) -> None:
        if delta.old is not None and (delta.new is None or delta.new.metadata.uid != delta.old.metadata.uid):
            self._gone[key_of(delta.old)].append(delta.old)
        if delta.new is not None and (report := judgement.progress_of(delta.new)) is not None:
            reports = self._reports[delta.new.metadata.uid]
            if not reports or reports[-1] != report:
                reports.append(report)

    def _pod_changed(self, delta: Delta[Pod]) -> None:
        for pod in (delta.old, delta.new):
            if pod is not None and pod.trainjob[1]:
                self._failures[pod.trainjob[1]].update(judgement.failures_of(pod))

    def _event_came(self, delta: Delta[Event]) -> None:
        if delta.new is not None and (key := trainjob_of(delta.new, self._is_trainjob)) is not None:
            self._news[key].append(delta.new)

    def _is_trainjob(self, key: Key) -> bool:
        return self._jobs.store.get(key) is not None

    def _keys_of_event(self, event: Event) -> list[Key]:
        key = trainjob_of(event, self._is_trainjob)
        return [key] if key is not None else []

    # One TrainJob

    async def _reconcile(self, key: Key) -> Outcome:
        while gone := self._gone.get(key):
            await self._record_deletion(gone[0])
            gone.pop(0)
        self._gone.pop(key, None)
        job = self._jobs.store.get(key)
        if job is None:
            self._news.pop(key, None)
            return Done()
        await self._record(job, self._pods.store.by("trainjob", str(key)))
        return Done()

    async def _record(self, job: TrainJob, named: list[Pod]) -> Record | None:
        """Brings the record of a TrainJob's run up to date. None when the user has deleted the run.

        `named` are the pods of all TrainJobs that have had this name.
        """
        uid = job.metadata.uid
        pods = [pod for pod in named if pod.is_of(uid)]
        wanted = judgement.first_record(job, __version__)
        found = await asyncio.to_thread(self._home.claim, wanted, job.metadata.annotation(RUN))
        if found is None:
            return None
        for pod in pods:
            if pod.is_of_older_version and pod.is_over and pod.metadata.uid not in self._adopted:
                await self._adopt_logs(found, pod)
        await asyncio.to_thread(self._write_trainjob, found, job)
        await self._write_lines(job, found)
        if found.is_finished and found.id in self._over:
            return found
        job_set = self._job_sets.store.get(key_of(job))
        restarts = job_set.restarts if job_set is not None else 0
        record = await self._update(
            found.id, lambda run: judgement.judged(run, job, restarts, pods, self._failures.get(uid, ()))
        )
        if record is not None and record.is_finished:
            await self._ended(record, job)
        return record

    def _write_trainjob(self, run: Record, job: TrainJob) -> None:
        """Writes what was submitted, where `run` has not: it does so itself, unless it died. JSON is YAML too."""
        path = self._home.of(run.id).trainjob
        over = job.is_finished or job.is_being_deleted
        if not path.exists() and (over or run.origin != "run") and path.parent.is_dir():
            files.replace(path, msgspec.json.format(msgspec.json.encode(judgement.submitted(job))))

    async def _adopt_logs(self, run: Record, pod: Pod) -> None:
        """Brings the logs of a pod of an older version into the run's directory, before they go with the pod."""
        try:
            whole = await self._client.get(PODS, pod.metadata.name, pod.metadata.namespace)
        except NotFound:
            return
        self._adopted.add(pod.metadata.uid)
        logs = self._home.state / "pods" / pod.metadata.uid / "logs"
        await asyncio.to_thread(adopt_logs, self._home.of(run.id), whole, logs)

    async def _record_deletion(self, last: TrainJob) -> None:
        wanted = judgement.first_record(last, __version__)
        found = await asyncio.to_thread(self._home.claim, wanted, last.metadata.annotation(RUN))
        if found is None:
            return
        await asyncio.to_thread(self._write_trainjob, found, last)
        await self._write_lines(last, found)
        failures = self._failures.get(last.metadata.uid, ())
        record = await self._update(found.id, lambda run: judgement.deleted(run, last, failures, self._now()))
        if record is not None:
            await self._ended(record, None)

    async def _update(self, id: str, change: Any) -> Record | None:
        """Changes a record, and writes the phase that it has entered into its events."""
        states: list[str] = []

        def changed(run: Record) -> Record:
            after: Record = change(run)
            if after.state != run.state:
                states.append(after.state)
            return after

        record: Record | None = await asyncio.to_thread(self._home.update, id, changed)
        if record is not None and states:
            phase = {
                "time": record.ended or self._now(),
                "type": "Phase",
                "reason": record.state,
                "object": f"{TRAIN_JOBS.kind}/{record.name}",
                "message": record.message,
            }
            await asyncio.to_thread(self._home.of(id).append_event, phase)
        return record

    async def _write_lines(self, job: TrainJob, run: Record) -> None:
        """Writes the events and progress reports that have come since the last time."""
        events, reports = self._news.pop(key_of(job), []), self._reports.pop(job.metadata.uid, [])  # no await before
        since = job.metadata.creation_timestamp or ""
        mine = [event for event in events if event.time >= since]  # a predecessor of the same name has its own
        new = [report for report in reports if run.progress is None or report.time != run.progress.time]
        if mine or new:
            await asyncio.to_thread(self._append, run.id, mine, new)

    def _append(self, id: str, events: list[Event], reports: list[Progress]) -> None:
        directory = self._home.of(id)
        if not directory.path.is_dir():
            return
        chronicle = self._chronicles.get(id) or self._chronicles.setdefault(id, Chronicle(directory))
        chronicle.write(events)
        for report in reports:
            directory.append_metrics(msgspec.to_builtins(report))

    async def _ended(self, record: Record, job: TrainJob | None) -> None:
        await asyncio.to_thread(self._home.forget_environment, record.id)
        self._over.add(record.id)
        self._failures.pop(record.uid, None)
        if job is None:
            self._chronicles.pop(record.id, None)
        await self._prune(job)

    # Runs without a TrainJob, and old ones

    async def _look_after_others(self) -> None:
        """Settles runs whose TrainJobs are gone or were never created: at the start, and then now and then."""
        for source in (self._jobs, self._pods):
            await source.wait_synced()
        await self._try(self._prune(None))
        while True:
            await self._try(self._settle())
            await self._clock.sleep(LOOK_SECONDS)

    async def _try(self, work: Coroutine[Any, Any, None]) -> None:
        """A full disk or a server that does not answer ends neither the recorder nor the control plane."""
        try:
            await work
        except (OSError, ClientError, BrokenRecord) as error:
            log.warning("records of runs: %s", error)

    async def _settle(self) -> None:
        for record in await asyncio.to_thread(self._unfinished):
            await self._try(self._settle_one(record))

    async def _settle_one(self, record: Record) -> None:
        key = Key(record.namespace, record.name)
        job = self._jobs.store.get(key)
        if job is not None and (record.uid == job.metadata.uid or record.id == job.metadata.annotation(RUN)):
            return  # its TrainJob's reconcile writes it
        if any(last.metadata.uid == record.uid for last in self._gone.get(key, ())):
            return
        if record.uid:
            await self._settle_vanished(record)
        elif not await asyncio.to_thread(self._is_submitting, record):
            await self._update(record.id, lambda run: _never_submitted(run, self._now()))
            await asyncio.to_thread(self._home.forget_environment, record.id)

    async def _settle_vanished(self, record: Record) -> None:
        """A run whose TrainJob is not in the store. Ask the API, since the store may lag behind."""
        listed = await self._client.list(
            TRAIN_JOBS, record.namespace, field_selector=f"metadata.name={record.name}", decode=SubmittedJob
        )
        if any(job.metadata.uid == record.uid for job in listed.items or ()):
            return
        ended = await self._update(record.id, lambda run: judgement.deleted(run, None, (), self._now()))
        if ended is not None:
            await self._ended(ended, None)

    def _unfinished(self) -> list[Record]:
        """The local runs that are not over. A run that is over is not read again."""
        found = []
        for id in self._home.ids():
            if id in self._over:
                continue
            try:
                record = self._home.read(id)
            except BrokenRecord:
                continue
            if record is None:
                continue
            if record.is_finished or not record.is_local:
                self._over.add(id)
                self._home.forget_environment(id)
            else:
                found.append(record)
        return found

    def _is_submitting(self, record: Record) -> bool:
        """Whether its `run` lives and may still create the TrainJob, or the outbox holds it."""
        if self._home.of(record.id).is_followed or Outbox(self._home.state).holds(record.id):
            return True
        age = self._clock.wall() - (record.created_seconds or 0.0)
        return record.pid is not None and age < SUBMIT_SECONDS and _is_alive(record.pid)

    async def _prune(self, job: TrainJob | None) -> None:
        """Deletes old runs by the limits, and says so in the log and by an event about the run that ended."""
        try:
            limits = await asyncio.to_thread(limits_of, self._home.state)
        except SettingsInvalid as error:
            log.warning("no run is deleted by a limit: %s", error)
            return
        gone: list[Deletion] = await asyncio.to_thread(self._home.prune, limits.bytes, limits.days, self._clock.wall())
        for deletion in gone:
            said = f"run {deletion.id} deleted with its logs and outputs: {deletion.why}"
            log.warning("%s", said)
            if job is not None:
                await self._events.record(TRAIN_JOBS, job.metadata, "Normal", "RunDeleted", said)

    def _now(self) -> str:
        return rfc3339(self._clock.wall())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _never_submitted(run: Record, now: str) -> Record:
    if run.uid:
        return run
    message = "`trainwright run` ended before its TrainJob was created"
    return run.ended_as(State.FAILED, now, reason=NOT_SUBMITTED, message=message)
