"""Figures for Prometheus, under the names that dashboards for controller-runtime already read.

`OperatorMetrics` is what the control loop, the transport and the webhooks report to; `endpoints.py` serves its
registry. Process, garbage collector and interpreter are measured when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from trainwright.client.errors import ClientError
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.operator.figures.tallies import Counts, Durations, Levels

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
QUEUE_SECONDS = (1e-06, 1e-05, 1e-04, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

# The library would add a `_created` series to every counter and histogram; nobody reads those.
disable_created_metrics()  # type: ignore[no-untyped-call]


class OperatorMetrics:
    """What the engine (`controlloop.Metrics`), the client and the webhooks report."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.passes = 0
        """Reconciles of all controllers."""
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        counts, levels = partial(Counts, registry=registry), partial(Levels, registry=registry)
        seconds = partial(Durations, registry=registry, bounds=SECONDS)
        queue_seconds = partial(Durations, registry=registry, bounds=QUEUE_SECONDS)
        by_controller, by_queue, by_webhook = ("controller",), ("name", "controller"), ("webhook",)
        self._reconciles = counts(
            "controller_runtime_reconcile_total", "Reconciliations by result", ("controller", "result")
        )
        self._errors = counts("controller_runtime_reconcile_errors_total", "Failed reconciliations", by_controller)
        self._seconds = seconds("controller_runtime_reconcile_time_seconds", "Time of a reconciliation", by_controller)
        self._most = levels("controller_runtime_max_concurrent_reconciles", "Workers", by_controller)
        self._active = levels("controller_runtime_active_workers", "Busy workers", by_controller)
        self._depth = levels("workqueue_depth", "Waiting keys", by_queue)
        self._adds = counts("workqueue_adds_total", "Keys added", by_queue)
        self._waits = queue_seconds("workqueue_queue_duration_seconds", "Time a key waits", by_queue)
        self._works = queue_seconds("workqueue_work_duration_seconds", "Time of work on a key", by_queue)
        self._retries = counts("workqueue_retries_total", "Keys added again after a failure", by_queue)
        self._leading = levels("leader_election_master_status", "1 while this replica leads", ("name",))
        self._requests = counts("rest_client_requests_total", "Requests to the API server", ("code", "method", "host"))
        self._webhooks = counts("controller_runtime_webhook_requests_total", "Admission reviews", ("webhook", "code"))
        self._reviews = seconds("controller_runtime_webhook_latency_seconds", "Time of an admission review", by_webhook)
        self._plugins = Gauge("trainwright_plugins", "Plugins that run", registry=registry)
        self._broken = Gauge(
            "trainwright_plugins_broken", "1 for each plugin file that cannot be used", ("file",), registry=registry
        )

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self._reconciles.add(controller, result)
        self._seconds.observe(seconds, controller)
        if result == "error":
            self._errors.add(controller)

    def queue_added(self, queue: str) -> None:
        self._adds.add(queue, queue)

    def queue_depth(self, queue: str, depth: int) -> None:
        self._depth.set(depth, queue, queue)

    def queue_taken(self, queue: str, depth: int, waited: float) -> None:
        self._depth.set(depth, queue, queue)
        self._waits.observe(waited, queue, queue)

    def queue_retried(self, queue: str) -> None:
        self._retries.add(queue, queue)

    def worked(self, queue: str, seconds: float) -> None:
        self.passes += 1
        self._works.observe(seconds, queue, queue)

    def workers(self, controller: str, busy: int, most: int) -> None:
        self._active.set(busy, controller)
        self._most.set(most, controller)
        if busy == 0:
            self._errors.add(
                controller, amount=0
            )  # there from the start: a rate needs to see the step from none to one

    def leading(self, lease: str, is_leader: bool) -> None:
        self._leading.set(1 if is_leader else 0, lease)

    def requested(self, method: str, code: str, host: str) -> None:
        self._requests.add(code, method, host)

    def admitted(self, webhook: str, code: int, seconds: float) -> None:
        self._webhooks.add(webhook, str(code))
        self._reviews.observe(seconds, webhook)

    def plugins(self, running: int, broken: Iterable[str]) -> None:
        self._plugins.set(running)
        self._broken.clear()
        for file in broken:
            self._broken.labels(file).set(1)


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
