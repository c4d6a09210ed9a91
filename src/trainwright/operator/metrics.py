"""Figures for Prometheus in its text format, under the names that dashboards for controller-runtime already read.

`Registry` holds counters, gauges and histograms; `OperatorMetrics` is what the control loop, the transport and the
webhooks report to. Nothing here is asked for unless somebody scrapes.
"""

from __future__ import annotations

import resource
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from trainwright.client.errors import ClientError
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
QUEUE_SECONDS = (1e-06, 1e-05, 1e-04, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
JOB_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

Labels = tuple[str, ...]


class Counter:
    """A figure that only grows, for each combination of label values."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self.values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1.0) -> None:
        self.values[labels] = self.values.get(labels, 0.0) + by

    def lines(self) -> Iterable[str]:
        for labels, value in sorted(self.values.items()):
            yield f"{self.name}{_text(self.labels, labels)} {_number(value)}"


class Gauge(Counter):
    """A figure that goes up and down."""

    kind = "gauge"

    def set(self, *labels: str, to: float) -> None:
        self.values[labels] = to


class Measured(Gauge):
    """A gauge that is measured when somebody looks."""

    def __init__(
        self, name: str, help: str, measure: Callable[[], dict[Labels, float]], labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, help, labels)
        self._measure = measure

    def lines(self) -> Iterable[str]:
        self.values = self._measure()
        return super().lines()


class Histogram:
    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, *labels: str, value: float) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(self._buckets) + 1))
        counts[bisect_left(self._buckets, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterable[str]:
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(_number, self._buckets), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_text((*self.labels, 'le'), (*labels, bound))} {total}"
            yield f"{self.name}_sum{_text(self.labels, labels)} {_number(self._sums[labels])}"
            yield f"{self.name}_count{_text(self.labels, labels)} {total}"


class Registry:
    def __init__(self) -> None:
        self._metrics: list[Counter | Histogram] = []

    def add(self, *metrics: Counter | Histogram) -> None:
        self._metrics.extend(metrics)

    def text(self) -> str:
        lines: list[str] = []
        for metric in self._metrics:
            samples = list(metric.lines())
            if samples:
                lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *samples]
        return "\n".join(lines) + "\n"


class OperatorMetrics:
    """What the engine (`controlloop.Metrics`), the client and the webhooks tell."""

    def __init__(self) -> None:
        self.registry = Registry()
        controller, name = ("controller",), ("name", "controller")
        self._reconciles = Counter(
            "controller_runtime_reconcile_total", "Reconciliations by result", ("controller", "result")
        )
        self._errors = Counter("controller_runtime_reconcile_errors_total", "Reconciliations that failed", controller)
        self._seconds = Histogram("controller_runtime_reconcile_time_seconds", "Time of a reconciliation", controller)
        self._most = Gauge("controller_runtime_max_concurrent_reconciles", "Workers", controller)
        self._active = Gauge("controller_runtime_active_workers", "Workers with something to do", controller)
        self._depth = Gauge("workqueue_depth", "Keys that wait", name)
        self._adds = Counter("workqueue_adds_total", "Keys added", name)
        self._waits = Histogram("workqueue_queue_duration_seconds", "Time a key waits", name, QUEUE_SECONDS)
        self._works = Histogram("workqueue_work_duration_seconds", "Time a key is worked on", name, QUEUE_SECONDS)
        self._retries = Counter("workqueue_retries_total", "Keys that came back after a failure", name)
        self._leading = Gauge("leader_election_master_status", "1 while this replica leads", ("name",))
        self._requests = Counter("rest_client_requests_total", "Requests to the API server", ("code", "method", "host"))
        self._webhooks = Counter("controller_runtime_webhook_requests_total", "Admission requests", ("webhook", "code"))
        self._webhook_seconds = Histogram(
            "controller_runtime_webhook_latency_seconds", "Time of an admission", ("webhook",)
        )
        self.registry.add(
            *(self._reconciles, self._errors, self._seconds, self._most, self._active),
            *(self._depth, self._adds, self._waits, self._works, self._retries),
            *(self._leading, self._requests, self._webhooks, self._webhook_seconds),
            Measured("process_cpu_seconds_total", "CPU time of this process", _cpu_seconds),
            Measured("process_resident_memory_bytes", "Memory of this process", _resident_bytes),
            Measured("process_start_time_seconds", "When this process began", lambda: {(): _STARTED}),
        )

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self._reconciles.add(controller, result)
        self._seconds.observe(controller, value=seconds)
        if result == "error":
            self._errors.add(controller)

    def queue_added(self, queue: str) -> None:
        self._adds.add(queue, queue)

    def queue_depth(self, queue: str, depth: int) -> None:
        self._depth.set(queue, queue, to=depth)

    def queue_taken(self, queue: str, depth: int, waited: float) -> None:
        self._depth.set(queue, queue, to=depth)
        self._waits.observe(queue, queue, value=waited)

    def queue_retried(self, queue: str) -> None:
        self._retries.add(queue, queue)

    def worked(self, queue: str, seconds: float) -> None:
        self._works.observe(queue, queue, value=seconds)

    def workers(self, controller: str, busy: int, most: int) -> None:
        self._active.set(controller, to=busy)
        self._most.set(controller, to=most)

    def leading(self, lease: str, is_leader: bool) -> None:
        self._leading.set(lease, to=1 if is_leader else 0)

    def requested(self, method: str, code: str, host: str) -> None:
        self._requests.add(code, method, host)

    def admitted(self, webhook: str, code: int, seconds: float) -> None:
        self._webhooks.add(webhook, str(code))
        self._webhook_seconds.observe(webhook, value=seconds)


class Counted:
    """A transport that counts what passes through it."""

    def __init__(self, transport: Transport, metrics: OperatorMetrics, host: str) -> None:
        self._transport = transport
        self._metrics = metrics
        self._host = host

    async def send(self, request: Request, *, deadline: float) -> Answer:
        try:
            answer = await self._transport.send(request, deadline=deadline)
        except ClientError:
            self._metrics.requested(request.method, "<error>", self._host)
            raise
        self._metrics.requested(request.method, str(answer.status), self._host)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        async with self._transport.stream(request, deadline=deadline, idle=idle) as stream:
            self._metrics.requested(request.method, str(stream.status), self._host)
            yield stream

    async def open(self) -> None:
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()


_STARTED = time.time()


def _cpu_seconds() -> dict[Labels, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {(): usage.ru_utime + usage.ru_stime}


def _resident_bytes() -> dict[Labels, float]:
    try:
        with open("/proc/self/statm") as file:
            return {(): float(int(file.read().split()[1]) * resource.getpagesize())}
    except OSError:  # no /proc: not Linux
        return {}


def _text(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
