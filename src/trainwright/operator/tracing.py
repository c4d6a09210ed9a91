"""Traces of reconciles, by OpenTelemetry, where `tracing.endpoint` names a collector and the package is installed.

A span for each reconcile that is sampled, with its controller, object and result, and below it one for each request to
the API server. Without an endpoint nothing of OpenTelemetry is imported, and neither reconcile nor transport is
wrapped: the ordinary path is the same code as before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from trainwright.api.configuration import ConfigurationError, TracingConfig
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.controlloop import After, Key, NotYet, Outcome, Reconcile
from trainwright.version import __version__

MISSING = (
    "tracing.endpoint is set, and OpenTelemetry is not installed: install trainwright[tracing], or leave the field out"
)


class Tracing:
    """Made by `start`; `close` sends what is left."""

    def __init__(self, provider: Any, current_span: Callable[[], Any]) -> None:
        self._provider = provider
        self._current_span = current_span
        self._tracer = provider.get_tracer("trainwright.operator", __version__)

    def reconcile(self, controller: str, reconcile: Reconcile) -> Reconcile:
        """The same reconcile, in a span."""

        async def traced(key: Key) -> Outcome:
            about = {"controller": controller, "k8s.namespace.name": key.namespace, "k8s.object.name": key.name}
            with self._tracer.start_as_current_span(f"reconcile {controller}", attributes=about) as span:
                try:
                    outcome = await reconcile(key)
                except NotYet:
                    span.set_attribute("result", "not yet")
                    raise
                span.set_attribute("result", "again later" if isinstance(outcome, After) else "done")
                return outcome

        return traced

    def transport(self, transport: Transport) -> Transport:
        """The same transport: each request of a traced reconcile in a span."""
        return _Traced(transport, self._tracer, self._current_span)

    def close(self) -> None:
        self._provider.shutdown()


class _Traced:
    def __init__(self, transport: Transport, tracer: Any, current_span: Callable[[], Any]) -> None:
        self._transport = transport
        self._tracer = tracer
        self._current_span = current_span

    async def send(self, request: Request, *, deadline: float) -> Answer:
        if not self._current_span().is_recording():  # a list of an informer, or a reconcile that is not sampled
            return await self._transport.send(request, deadline=deadline)
        about = {"http.request.method": request.method, "url.path": request.path}
        with self._tracer.start_as_current_span(f"{request.method} {_kind(request.path)}", attributes=about) as span:
            answer = await self._transport.send(request, deadline=deadline)
            span.set_attribute("http.response.status_code", answer.status)
            return answer

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        async with self._transport.stream(request, deadline=deadline, idle=idle) as stream:
            yield stream  # a watch lasts for minutes and belongs to no reconcile

    async def open(self) -> None:
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()


def _kind(path: str) -> str:
    """The plural in a path, so that spans of one kind have one name: `jobsets`, `trainjobs/status`."""
    parts = path.split("/")
    where = parts.index("namespaces") + 2 if "namespaces" in parts[:-2] else 4 if path.startswith("/apis/") else 3
    return "/".join(part for number, part in enumerate(parts[where:]) if number != 1)


def start(config: TracingConfig) -> Tracing | None:
    """Tracing as configured; None where no endpoint is."""
    if not config.endpoint:
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise ConfigurationError(MISSING) from error
    ratio = config.sampling_rate_per_million / 1_000_000
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(ratio)),
        resource=Resource.create({"service.name": "trainwright-operator", "service.version": __version__}),
    )
    exporter = OTLPSpanExporter(endpoint=f"{config.endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider, trace.get_current_span)
