"""Counters, gauges and histograms that cost next to nothing to count, for what happens many times for each TrainJob.

The library's own series take a lock and check themselves at every call; these are numbers in dicts, on one event loop,
turned into the library's families when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


class Counts(Collector):
    """A counter."""

    def __init__(self, name: str, help: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name, self._help, self._labels = name, help, labels
        self._values: defaultdict[Labels, float] = defaultdict(int)
        registry.register(self)

    def add(self, *labels: str, amount: float = 1) -> None:
        self._values[labels] += amount

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class Levels(Collector):
    """A gauge."""

    def __init__(self, name: str, help: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name, self._help, self._labels = name, help, labels
        self._values: dict[Labels, float] = {}
        registry.register(self)

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._help, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class Durations(Collector):
    """A histogram of seconds; `bounds` are the upper ends of its buckets."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str], registry: CollectorRegistry, bounds: Sequence[float]
    ) -> None:
        self._name, self._help, self._labels, self._bounds = name, help, labels, bounds
        self._counts: defaultdict[Labels, list[int]] = defaultdict(lambda: [0] * (len(bounds) + 1))
        self._sums: defaultdict[Labels, float] = defaultdict(float)
        registry.register(self)

    def observe(self, seconds: float, *labels: str) -> None:
        self._counts[labels][bisect_left(self._bounds, seconds)] += 1
        self._sums[labels] += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._help, labels=self._labels)
        names = [floatToGoString(bound) for bound in (*self._bounds, float("inf"))]  # type: ignore[no-untyped-call]
        for labels, counts in self._counts.items():
            so_far, buckets = 0, []
            for name, count in zip(names, counts, strict=True):
                so_far += count
                buckets.append((name, so_far))
            family.add_metric(labels, buckets, self._sums[labels])
        yield family
