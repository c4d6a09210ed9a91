"""GPU-seconds: which TrainJobs hold how many devices at this moment, and for how long they have.

In: the workloads as the watch shows them, with the devices that their build wrote on them. Out: two series. A part of a
workload holds its devices while it has pods and all of them are ready: when a pod is bound to its node and waits for
its image there is not known, since no pod is watched. Time in which nobody led is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from trainwright.api.trainjob import TrainJob
from trainwright.operator.figures.tallies import Labels
from trainwright.pipeline import Workload
from trainwright.pipeline.devices import DEVICES_ANNOTATION, Devices, parse_devices

LABELS = ("runtime", "namespace", "resource")


class _Held(NamedTuple):
    since: float
    counts: dict[Labels, int]


class DeviceSeconds(Collector):
    """`leads` says whether this replica is the one that counts."""

    def __init__(self, registry: CollectorRegistry, *, now: Callable[[], float], leads: Callable[[], bool]) -> None:
        self._now = now
        self._leads = leads
        self._held: dict[str, _Held] = {}
        self._seconds: dict[Labels, float] = {}
        registry.register(self)

    def seen(self, job: TrainJob, runtime: str, workload: Workload) -> None:
        """The workload is so from now on."""
        uid = workload.metadata.uid
        said = workload.metadata.annotation(DEVICES_ANNOTATION)
        if said is None and uid not in self._held:
            return
        counts: dict[Labels, int] = {}
        for item in parse_devices(said):
            if count := _count(item, job, workload):
                labels = (runtime, job.metadata.namespace, item.resource)
                counts[labels] = counts.get(labels, 0) + count
        before = self._held.get(uid)
        if before is None or before.counts != counts:
            self.gone(uid)
            if counts:
                self._held[uid] = _Held(self._now(), counts)

    def gone(self, uid: str) -> None:
        """The workload holds nothing any more."""
        if held := self._held.pop(uid, None):
            self._add(held, self._now())

    def _add(self, held: _Held, until: float) -> None:
        if self._leads():
            for labels, count in held.counts.items():
                self._seconds[labels] = self._seconds.get(labels, 0.0) + count * max(0.0, until - held.since)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        now, levels = self._now(), dict.fromkeys(self._seconds, 0)
        for uid, held in self._held.items():
            self._add(held, now)
            self._held[uid] = held._replace(since=now)
            for labels, count in held.counts.items():
                levels[labels] = levels.get(labels, 0) + count
        seconds = CounterMetricFamily(
            "trainwright_gpu_seconds_total", "Devices that TrainJobs held, times the seconds", labels=LABELS
        )
        held_now = GaugeMetricFamily("trainwright_gpus", "Devices that TrainJobs hold", labels=LABELS)
        for labels, value in self._seconds.items():
            seconds.add_metric(labels, value)
        if self._leads():
            for labels, level in levels.items():
                held_now.add_metric(labels, level)
        yield seconds
        yield held_now


def _count(item: Devices, job: TrainJob, workload: Workload) -> int:
    """How many of them are in use; of an elastic part, by its nodes that are ready."""
    status = workload.status
    part = next((part for part in status.jobs if part.name == item.part), None)
    if part is None or not (part.active and part.ready) or status.is_suspended or status.is_finished:
        return 0
    if not item.each:
        return item.number
    elastic = job.status.elastic if job.status is not None else None
    return item.number * (elastic.ready_nodes or 0 if elastic is not None else 0)
