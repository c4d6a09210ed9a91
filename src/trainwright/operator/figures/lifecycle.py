"""Figures about TrainJobs themselves: how many are in which state, how many ended how, how soon they got where.

Follows the store's changes. What was there before this process began is in the gauges, never in the counters: a
restart must not look like a thousand new jobs. A time that began before is measured to its end all the same, by the
times that the TrainJob itself carries.

    created ──► (queued: suspended ──►) resumed ──► workload ──► first pod ──► running ──► ended
                 time in queue           └ all of these from creation, or from the last resume ┘
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainwright.api.times import seconds_of
from trainwright.api.trainjob import COMPLETE, SUSPENDED, TrainJob
from trainwright.controlloop import Delta, Source, key_of
from trainwright.operator.figures.devices import DeviceSeconds
from trainwright.operator.figures.tallies import Counts, Durations
from trainwright.operator.stores.kinds import Kinds
from trainwright.pipeline import PipelineError, Watch, Workload

STATES = ("Pending", "Running", "Suspended", "Complete", "Failed")
START_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
LONG_SECONDS = (10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0)
LABELS = ("runtime", "namespace")


class _Start(msgspec.Struct):
    """A TrainJob that is on its way to running."""

    began: float
    has_workload: bool
    has_pods: bool = False


class Lifecycle:
    """`leads` says whether this replica is the one that counts: the sum over all replicas must be the truth."""

    def __init__(
        self,
        registry: CollectorRegistry,
        jobs: Source[TrainJob],
        kinds: Kinds,
        *,
        now: Callable[[], float],
        leads: Callable[[], bool],
    ) -> None:
        self._jobs = jobs
        self._kinds = kinds
        self._now = now
        self._leads = leads
        self._starts: dict[str, _Start] = {}
        self._devices = DeviceSeconds(registry, now=now, leads=leads)
        counts = partial(Counts, registry=registry)
        starts = partial(Durations, labels=LABELS, registry=registry, bounds=START_SECONDS)
        long = partial(Durations, registry=registry, bounds=LONG_SECONDS)
        self._created = counts("trainwright_trainjobs_created_total", "TrainJobs created", LABELS)
        self._finished = counts("trainwright_trainjobs_finished_total", "TrainJobs that ended", (*LABELS, "result"))
        self._restarts = counts("trainwright_trainjob_restarts_total", "Restarts of workloads", LABELS)
        self._in_queue = long(
            "trainwright_trainjob_queue_seconds", "How long a TrainJob was suspended, as in a queue", labels=LABELS
        )
        self._to_workload = starts(
            "trainwright_trainjob_time_to_workload_seconds", "From a TrainJob's creation until its workload is there"
        )
        self._to_pod = starts(
            "trainwright_trainjob_time_to_first_pod_seconds", "From creation or resume until there is a first pod"
        )
        self._to_running = starts(
            "trainwright_trainjob_time_to_running_seconds", "From creation or resume until the first pods are ready"
        )
        self._lasted = long(
            "trainwright_trainjob_duration_seconds",
            "From creation or the last resume until the end",
            labels=(*LABELS, "result"),
        )
        registry.register(_States(jobs, leads))
        jobs.listen(self._job_changed)
        kinds.attach(self._follow)

    def _job_changed(self, delta: Delta[TrainJob]) -> None:
        old, new = delta.old, delta.new
        stopped = new is not None and new.is_suspended and old is not None and not old.is_suspended
        if new is None or new.is_finished or stopped:
            gone = new or old
            start = self._starts.pop(gone.metadata.uid, None) if gone is not None else None
        elif _state(new) != "Running" and (old is None or (old.is_suspended and not new.is_suspended)):
            began = _began(new) if old is None else self._now()
            found = _Start(began, new.status is not None and bool(new.status.workload_uid))
            start = self._starts[new.metadata.uid] = found
        else:
            start = self._starts.get(new.metadata.uid)
        if new is not None and self._jobs.is_synced and self._leads():
            self._count(old, new, start)
        if new is not None and _state(new) == "Running":
            self._starts.pop(new.metadata.uid, None)

    def _count(self, old: TrainJob | None, new: TrainJob, start: _Start | None) -> None:
        labels = _labels(new)
        if old is None:
            self._created.add(*labels)
            return
        if new.is_finished and not old.is_finished:
            end = new.condition(COMPLETE)
            result = "Complete" if end is not None and end.is_true else "Failed"
            self._finished.add(*labels, result)
            self._lasted.observe(self._since(_began(new)), *labels, result)
        if old.is_suspended and not new.is_suspended:
            self._in_queue.observe(self._since(_queued(old)), *labels)
        if start is not None and _state(new) == "Running":
            self._to_running.observe(self._since(start.began), *labels)

    def _follow(self, watch: Watch, source: Source[Any]) -> None:
        if watch.workload:
            source.listen(lambda delta: self._workload_changed(watch, delta))

    def _workload_changed(self, watch: Watch, delta: Delta[Any]) -> None:
        if delta.new is None:
            if delta.old is not None:
                self._devices.gone(delta.old.metadata.uid)
            return
        job = self._jobs.store.get(key_of(delta.new))
        if job is None:
            return
        new = self._workload(job, watch, delta.new)
        if new is None:
            return
        labels = _labels(job)
        self._devices.seen(job, labels[0], new)
        start = self._starts.get(job.metadata.uid)
        if start is not None:
            self._advance(start, new, labels)
        if delta.old is None or not self._leads():
            return
        old = self._workload(job, watch, delta.old)
        more = new.status.restarts - (old.status.restarts if old is not None else 0)
        if more > 0:
            self._restarts.add(*labels, amount=more)

    def _advance(self, start: _Start, workload: Workload, labels: tuple[str, str]) -> None:
        """A job that is starting has got further."""
        if not start.has_workload:
            start.has_workload = True
            if self._leads():
                self._to_workload.observe(self._since(start.began), *labels)
        if not start.has_pods and any(part.active or part.ready for part in workload.status.jobs):
            start.has_pods = True
            if self._leads():
                self._to_pod.observe(self._since(start.began), *labels)

    def _workload(self, job: TrainJob, watch: Watch, thing: Any) -> Workload | None:
        try:
            return self._kinds.workload_in(job, watch, thing)
        except PipelineError:
            return None  # the reconciler says what is wrong

    def _since(self, time: float) -> float:
        return max(0.0, self._now() - time)


class _States(Collector):
    """How many TrainJobs are in which state, counted when somebody scrapes. Only the leader tells."""

    def __init__(self, jobs: Source[TrainJob], leads: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._leads = leads

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("trainwright_trainjobs", "TrainJobs there are, by state", labels=["state"])
        if self._leads():
            tally = Tally((job.status.state if job.status else None) or "Pending" for job in self._jobs.store)
            for state in STATES:
                family.add_metric([state], tally[state])
        yield family


def _labels(job: TrainJob) -> tuple[str, str]:
    return job.spec.runtime_ref.name if job.spec else "", job.metadata.namespace or ""


def _began(job: TrainJob) -> float:
    """When it was last resumed; else when it was created."""
    resumed = job.condition(SUSPENDED)
    if resumed is not None and not resumed.is_true and resumed.last_transition_time:
        return seconds_of(resumed.last_transition_time)
    return seconds_of(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else 0.0


def _queued(job: TrainJob) -> float:
    """Since when it is suspended; else since when it is there."""
    suspended = job.condition(SUSPENDED)
    if suspended is not None and suspended.is_true and suspended.last_transition_time:
        return seconds_of(suspended.last_transition_time)
    return seconds_of(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else 0.0


def _state(job: TrainJob) -> str | None:
    return job.status.state if job.status else None
