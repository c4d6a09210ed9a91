"""Spans of reconciles, at a collector that speaks OTLP; and what an operator without tracing costs: nothing.

OpenTelemetry is an extra (`make test-tracing`): what needs it is skipped where it is not installed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trainwright.api.configuration import ConfigurationError, TracingConfig
from trainwright.api.resources import TRAIN_JOBS
from trainwright.controlloop import Controller
from trainwright.operator import tracing
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from unit.operator.world import World, train_job


class Collector(ThreadingHTTPServer):
    """Takes spans as a collector does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        server.bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


async def test_a_reconcile_is_a_span_and_its_requests_are_below_it(collector: Collector) -> None:
    pytest.importorskip("opentelemetry.sdk")
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    traces = tracing.start(TracingConfig(collector.url, 1_000_000))
    assert traces is not None
    async with World(start=False) as world:
        operator = Operator(
            world.server.client, Settings(configuration=world.configuration), clock=world.clock, tracing=traces
        )
        running = asyncio.create_task(operator.run())
        await world.settle(0.5)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await asyncio.to_thread(traces.close)
    spans = []
    for path, body in collector.bodies:
        assert path == "/v1/traces"
        for resource in service.ExportTraceServiceRequest.FromString(body).resource_spans:
            [name] = [it.value.string_value for it in resource.resource.attributes if it.key == "service.name"]
            assert name == "trainwright-operator"
            spans += [span for scope in resource.scope_spans for span in scope.spans]
    reconciles = [span for span in spans if span.name == "reconcile trainjob_controller"]
    about = {item.key: item.value.string_value for item in reconciles[0].attributes}
    assert about["k8s.object.name"] == "job"
    assert about["k8s.namespace.name"] == "ns"
    assert about["result"] in ("done", "again later")
    [applied] = [span for span in spans if span.name == "PATCH jobsets"]
    assert applied.parent_span_id in {span.span_id for span in reconciles}
    assert {item.key: item.value.int_value for item in applied.attributes}["http.response.status_code"] == 201
    assert not [span for span in spans if span.name.startswith("GET ") and not span.parent_span_id], "no list"


async def test_none_is_sent_when_none_is_sampled(collector: Collector) -> None:
    pytest.importorskip("opentelemetry.sdk")
    traces = tracing.start(TracingConfig(collector.url, 0))
    assert traces is not None
    async with World(start=False) as world:
        operator = Operator(
            world.server.client, Settings(configuration=world.configuration), clock=world.clock, tracing=traces
        )
        running = asyncio.create_task(operator.run())
        await world.settle(0.5)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert world.job_set()
    await asyncio.to_thread(traces.close)
    assert collector.bodies == []


def test_an_endpoint_without_the_package_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigurationError, match=r"install trainwright\[tracing\]"):
        tracing.start(TracingConfig("http://127.0.0.1:4318"))


def test_without_an_endpoint_nothing_is_imported_and_nothing_is_wrapped() -> None:
    code = (
        "import sys; from trainwright.operator import run, tracing; from trainwright.api.configuration import *;"
        "assert tracing.start(TracingConfig()) is None;"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_without_tracing_a_reconcile_is_called_as_it_is() -> None:
    async with World() as world:
        controllers: list[Controller] = world.operator._controllers.all
        names = [getattr(each._reconcile, "__qualname__", "") for each in controllers]
        assert names[0] == "TrainJobReconciler.reconcile"
        assert not [name for name in names if "traced" in name]
        assert world.operator._make_writer().transport is world.server.client.transport
