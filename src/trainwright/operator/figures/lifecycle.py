"""Figures about TrainJobs themselves: how many are in which state, how many ended how, how soon they ran.

Follows the store's changes. What was there before this process began is in the gauges, never in the counters: a
restart must not look like a thousand new jobs.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainwright.api.times import seconds_of
from trainwright.api.trainjob import COMPLETE, TrainJob
from trainwright.controlloop import Delta, Source, key_of
from trainwright.operator.stores.kinds import Kinds
from trainwright.pipeline import PipelineError, Watch

STATES = ("Pending", "Running", "Suspended", "Complete", "Failed")
JOB_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


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
        self._created = Counter(
            "trainwright_trainjobs_created_total", "TrainJobs created, by runtime", ("runtime",), registry=registry
        )
        self._finished = Counter(
            "trainwright_trainjobs_finished_total",
            "TrainJobs that ended, by runtime and result",
            ("runtime", "result"),
            registry=registry,
        )
        self._restarts = Counter(
            "trainwright_trainjob_restarts_total", "Restarts of workloads, by runtime", ("runtime",), registry=registry
        )
        self._to_running = Histogram(
            "trainwright_trainjob_time_to_running_seconds",
            "From the creation of a TrainJob until its first pods are ready",
            ("runtime",),
            registry=registry,
            buckets=JOB_SECONDS,
        )
        registry.register(_States(jobs, leads))
        jobs.listen(self._job_changed)
        kinds.attach(self._follow)

    def _job_changed(self, delta: Delta[TrainJob]) -> None:
        old, new = delta.old, delta.new
        if not self._jobs.is_synced or new is None or not self._leads():
            return
        runtime = _runtime(new)
        if old is None:
            self._created.labels(runtime).inc()
            return
        if new.is_finished and not old.is_finished:
            end = new.condition(COMPLETE)
            self._finished.labels(runtime, "Complete" if end is not None and end.is_true else "Failed").inc()
        if _state(new) == "Running" and _state(old) not in ("Running", "Suspended"):
            created = new.metadata.creation_timestamp
            if created:
                self._to_running.labels(runtime).observe(max(0.0, self._now() - seconds_of(created)))

    def _follow(self, watch: Watch, source: Source[Any]) -> None:
        if watch.workload:
            source.listen(lambda delta: self._workload_changed(watch, delta))

    def _workload_changed(self, watch: Watch, delta: Delta[Any]) -> None:
        if delta.old is None or delta.new is None or not self._leads():
            return
        job = self._jobs.store.get(key_of(delta.new))
        if job is not None:
            more = self._restarts_of(job, watch, delta.new) - self._restarts_of(job, watch, delta.old)
            if more > 0:
                self._restarts.labels(_runtime(job)).inc(more)

    def _restarts_of(self, job: TrainJob, watch: Watch, thing: Any) -> int:
        try:
            workload = self._kinds.workload_in(job, watch, thing)
        except PipelineError:
            return 0  # the reconciler says what is wrong
        return workload.status.restarts if workload is not None else 0


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


def _runtime(job: TrainJob) -> str:
    return job.spec.runtime_ref.name if job.spec else ""


def _state(job: TrainJob) -> str | None:
    return job.status.state if job.status else None
