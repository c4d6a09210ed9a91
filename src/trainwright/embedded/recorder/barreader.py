"""Reads the progress bars of running jobs and writes what they say into `status.trainerStatus`.

In: the pods of first nodes, and their logs in the runs' directories. Out: the same status that training code writes
when it reports by itself. Code that does so has the word: its TrainJobs are left alone.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB, RUN
from trainwright.client import Client
from trainwright.client.errors import ClientError
from trainwright.clock import happens_within
from trainwright.controlloop import Clock, Delta, Key, Source
from trainwright.embedded.recorder.bars import Bars, Seen
from trainwright.embedded.recorder.objects import Pod, SubmittedJob
from trainwright.runs import RunsHome
from trainwright.schema.jsonobject import Json

LOOK_SECONDS = 0.5
WRITE_SECONDS = 1.0
"""Between two writes for one TrainJob."""

BLOCK = 256 * 1024
"""Bytes that are read at once; a log that has grown by more is read from its end only."""

REPORTER = "trainer-status"
"""The field manager of reports that training code makes."""

FIELD_MANAGER = "trainwright-bars"
LONGEST_VALUE = 64


class BarReader:
    """`run()` it beside the recorder, with the recorder's own sources."""

    def __init__(
        self, client: Client, home: RunsHome, jobs: Source[SubmittedJob], pods: Source[Pod], clock: Clock
    ) -> None:
        self._client = client
        self._home = home
        self._jobs = jobs
        self._pods = pods
        self._clock = clock
        self._logs: dict[str, FirstLog] = {}
        """By the uid of the pod."""
        self._ended: asyncio.Future[None] | None = None
        """Done when a pod has ended since the last look."""
        pods.listen(self._pod_changed)

    async def run(self) -> None:
        for source in (self._jobs, self._pods):
            await source.wait_synced()
        while True:
            self._ended = asyncio.get_running_loop().create_future()
            await self.look()
            await happens_within(self._clock, LOOK_SECONDS, self._ended)

    def _pod_changed(self, delta: Delta[Pod]) -> None:
        """Looks at once when a pod has ended: soon its job has, and then the last word would come too late."""
        if delta.new is not None and delta.new.is_over and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def look(self) -> None:
        """Reads what the logs of the first nodes have more, and writes what is new in it."""
        present: dict[str, FirstLog] = {}
        for pod in list(self._pods.store):
            job = self._job_of(pod)
            if job is None or self._reports_itself(job) or not pod.started_at:
                continue
            log = self._logs.get(pod.metadata.uid)
            if job.is_finished and (log is None or log.is_read):
                continue
            log = present[pod.metadata.uid] = log or FirstLog()
            log.is_read = job.is_finished or pod.is_over
            path = self._path(pod)
            if path is not None and (seen := await asyncio.to_thread(log.read, path)) is not None:
                await self._write(job, log, seen)
        self._logs = present

    def _job_of(self, pod: Pod) -> SubmittedJob | None:
        """The TrainJob of a pod that is its first node."""
        if pod.metadata.label(COMPLETION_INDEX) != "0" or pod.metadata.label(REPLICATED_JOB) != "node":
            return None
        name, uid = pod.trainjob
        job = self._jobs.store.get(Key(pod.metadata.namespace, name)) if name and uid else None
        return job if job is not None and job.metadata.uid == uid else None

    def _reports_itself(self, job: SubmittedJob) -> bool:
        return any(entry.manager == REPORTER for entry in job.metadata.managed_fields or ())

    def _path(self, pod: Pod) -> Path | None:
        """The log of the pod's first container, in its present start."""
        containers = (pod.status or {}).get("containerStatuses") or []
        if not containers:
            return None
        try:
            logs = self._home.of(pod.metadata.annotation(RUN) or "").logs_of(pod.metadata.name, pod.metadata.uid)
        except ValueError:  # an id that is none: such a pod has no run
            return None
        return logs / str(containers[0].get("name")) / f"{containers[0].get('restartCount') or 0}.log"

    async def _write(self, job: SubmittedJob, log: FirstLog, seen: Seen) -> None:
        if seen == log.written or (self._clock.now() < log.next_write and not log.is_read):
            return
        log.next_write = self._clock.now() + WRITE_SECONDS
        body = {"metadata": {"uid": job.metadata.uid}, "status": {"trainerStatus": self._status(seen)}}
        try:
            await self._client.patch(
                TRAIN_JOBS,
                body,
                name=job.metadata.name,
                namespace=job.metadata.namespace,
                subresource="status",
                field_manager=FIELD_MANAGER,
                decode=bytes,
            )
        except ClientError:
            return  # the next look tries again
        log.written = seen

    def _status(self, seen: Seen) -> Json:
        values = {**seen.metrics, "step": seen.step, "total": seen.total}
        return {
            "progressPercentage": None if seen.percent is None else min(100, seen.percent),
            "estimatedRemainingSeconds": seen.remaining_seconds,
            "metrics": [
                {"name": name[:LONGEST_VALUE], "value": str(value)[:LONGEST_VALUE]}
                for name, value in values.items()
                if value is not None
            ],
            "lastUpdatedTime": rfc3339(self._clock.wall()),
        }


class FirstLog:
    """The log of a first node: how far it has been read, and what its bars say."""

    def __init__(self) -> None:
        self.written: Seen | None = None
        self.is_read = False
        """Whether nothing more comes."""
        self.next_write = float("-inf")
        self._bars = Bars()
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._rest = b""

    def read(self, path: Path) -> Seen | None:
        """Reads on, and returns what the bars say by now. A log that begins anew after a rotation is read anew."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._bars.seen
        try:
            found = os.fstat(handle)
            if self._file != (found.st_dev, found.st_ino):
                self._file, self._offset, self._rest = (found.st_dev, found.st_ino), 0, b""
            if found.st_size - self._offset > BLOCK:
                self._offset, self._rest = found.st_size - BLOCK, b""
            data = os.pread(handle, BLOCK, self._offset)
        finally:
            os.close(handle)
        self._offset += len(data)
        *records, self._rest = (self._rest + data).split(b"\n")
        for record in records:
            parts = record.split(b" ", 3)
            if len(parts) == 4:  # the first one may be cut off at its beginning
                self._bars.read(parts[3].decode(errors="replace") + ("" if parts[2] == b"P" else "\n"))
        return self._bars.seen
