"""The operator's HTTP servers: probes, metrics, webhooks and progress reports, each where the configuration says.

Probes, and metrics without TLS, answer from the start; the others as soon as there is a certificate.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from trainwright.client import Client
from trainwright.client.ratelimit import RateLimited
from trainwright.clock import Clock
from trainwright.http.application import Application
from trainwright.operator.admission import webhooks
from trainwright.operator.admission.decisions import Admission
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.operator.progress.server import ProgressServer, ProgressWriter
from trainwright.operator.serving.endpoints import health_application, metrics_application
from trainwright.operator.serving.listening import Server, ServingTLS
from trainwright.operator.serving.reviewing import Reviewing
from trainwright.operator.serving.tokens import Tokens
from trainwright.operator.settings import Settings
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.stores.views import Views


class Servers:
    """`listeners` are sockets bound already, by the server's name, in place of the configured addresses."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        views: Views,
        kinds: Kinds,
        *,
        tls: ServingTLS,
        clock: Clock,
        metrics: OperatorMetrics,
        listeners: Mapping[str, socket.socket],
    ) -> None:
        self.ports: dict[str, int] = {}
        """Of each server, by name, once it listens."""
        self._client = client
        self._settings = settings
        self._config = settings.configuration
        self._views = views
        self._kinds = kinds
        self._tls = tls
        self._clock = clock
        self._metrics = metrics
        self._listeners = listeners
        self._reviewing = Reviewing(clock)

    @property
    def why_not_ready(self) -> str:
        if self._config.webhook.enable and "webhook" not in self.ports:
            return "the webhook server does not listen yet"
        if self._config.reports_progress and "progress" not in self.ports:
            return "the progress server does not listen yet"
        return ""

    async def run(self, why_not_ready: Callable[[], str]) -> None:
        """Serves until cancelled. `why_not_ready` is what the readiness probe tells."""
        config = self._config
        async with AsyncExitStack() as servers:
            if config.health.health_probe_bind_address != "0":
                probes = health_application(why_not_ready)
                await self._listen(servers, "health", probes, config.health.health_probe_bind_address)
            reviewer = self._client if config.metrics.auth.enabled else None
            figures = metrics_application(self._metrics.registry, reviewer, self._reviewing)
            if config.metrics.bind_address != "0" and not config.metrics.secure_serving:
                await self._listen(servers, "metrics", figures, config.metrics.bind_address)
            if self._settings.needs_certificates:
                await self._tls.wait_ready()
            if config.webhook.enable:
                where = self._listeners.get("webhook", f"{config.webhook.host}:{config.webhook.port}")
                await self._listen(servers, "webhook", self._webhooks(), where, self._tls)
            if self._settings.metrics_over_tls:
                await self._listen(servers, "metrics", figures, config.metrics.bind_address, self._tls)
            if config.reports_progress:
                where = self._listeners.get("progress", f"{config.status_server.host}:{config.status_server.port}")
                await self._listen(servers, "progress", self._progress(), where, self._tls)
            await asyncio.Event().wait()

    def _webhooks(self) -> Application:
        return webhooks.application(Admission(self._client, self._views, self._kinds), self._metrics)

    def _progress(self) -> Application:
        config = self._config.status_server
        transport = self._client.transport
        limited = RateLimited(transport, qps=config.qps, burst=config.burst) if config.qps else transport
        tokens = Tokens(self._client, self._clock, self._kinds.workload_resources, self._reviewing)
        return ProgressServer(tokens, ProgressWriter(Client(limited), self._clock)).application()

    async def _listen(
        self,
        servers: AsyncExitStack,
        name: str,
        app: Application,
        address: str | socket.socket,
        tls: ServingTLS | None = None,
    ) -> None:
        server = await servers.enter_async_context(Server(app, address, tls))
        self.ports[name] = server.port
