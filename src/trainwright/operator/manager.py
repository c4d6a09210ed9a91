"""The operator as a whole: plugins, certificates, controllers and servers, wired together and run as one TaskGroup.

    async with Client.to(kubeconfig.load(path)) as client:
        await Operator(client, Settings(configuration=local())).run()       # until cancelled

The embedded cluster runs it exactly so, with a client of its own kubeconfig; the operator cannot tell the difference.
Reconcilers run where the Lease is held; webhooks, progress server, certificates, metrics and probes run in every
replica.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path

from trainwright.client import Client
from trainwright.client.ratelimit import RateLimited
from trainwright.controlloop import Clock, Manager, SystemClock
from trainwright.controlloop.election import Election, Fence
from trainwright.operator.certificates import rotation
from trainwright.operator.certificates.rotation import CertificateFiles, Rotation
from trainwright.operator.controllers import Controllers
from trainwright.operator.figures.lifecycle import Lifecycle
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.operator.reloading import Reloading
from trainwright.operator.servers import Servers
from trainwright.operator.serving.listening import ServingTLS
from trainwright.operator.settings import Settings
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.stores.views import Views
from trainwright.operator.tracing import Tracing
from trainwright.pipeline import Framework
from trainwright.plugins import Registry


class Operator:
    """Everything that runs in a cluster, for one API server.

    Reconcilers use `client` within the configured limits and only while the Lease is held; admissions, leases and
    certificates do not queue behind them. `framework` takes the place of the plugins that the configuration names.
    `listeners` are sockets bound already, by the server's name (`webhook`, `progress`), in place of the configured
    addresses: for callers that must know a port before the operator runs.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings | None = None,
        *,
        framework: Framework | None = None,
        clock: Clock | None = None,
        metrics: OperatorMetrics | None = None,
        listeners: Mapping[str, socket.socket] | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self.settings = settings or Settings()
        self.metrics = metrics or OperatorMetrics()
        self._clock = clock or SystemClock()
        self._client = client
        self._election = self._make_election()
        reloading = Reloading(self._make_registry(), self.metrics, self._clock)
        self._reloading = reloading if framework is None else None
        self.kinds = Kinds(framework or reloading.load())
        self._tls = ServingTLS(self.settings.configuration.tls)
        self._certificates = self._make_certificates()
        self.views = views = Views()
        writer = self._make_writer()
        self._controllers = Controllers(
            writer,
            self.settings,
            views,
            self.kinds,
            ca_certificate=self._ca_certificate,
            clock=self._clock,
            metrics=self.metrics,
            tracing=tracing,
        )
        self._manager = Manager(
            writer,
            self._controllers.all,
            tasks=[lambda: self.kinds.run(writer, self._clock)],
            lead=self._election.lead if self._election else None,
            clock=self._clock,
        )
        self._servers = Servers(
            self._client,
            self.settings,
            views,
            self.kinds,
            tls=self._tls,
            clock=self._clock,
            metrics=self.metrics,
            listeners=listeners or {},
        )
        jobs, now = views.jobs, self._client.server_time.now
        Lifecycle(self.metrics.registry, jobs, self.kinds, now=now, leads=self._leads)

    async def run(self) -> None:
        """Until cancelled, or until a part fails or leadership is lost: then all of it ends and the error is raised."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._manager.run(), name="controllers")
            if isinstance(self._certificates, Rotation):
                group.create_task(self._rotate(self._certificates), name="certificates")
            elif self._certificates is not None:
                group.create_task(self._certificates.run(), name="certificates")
            if self._reloading is not None:
                group.create_task(self._reloading.run(self.use), name="plugins")
            group.create_task(self._servers.run(self.why_not_ready), name="servers")

    def use(self, framework: Framework) -> None:
        """From now on these are the plugins: for the next build, the next status, the next admission."""
        self.kinds.use(framework)
        self._controllers.look_at_all_jobs()

    @property
    def ports(self) -> dict[str, int]:
        """Of each server, by name, once it listens."""
        return self._servers.ports

    @property
    def is_ready(self) -> bool:
        return not self.why_not_ready()

    def why_not_ready(self) -> str:
        if self._certificates is not None and not self._certificates.is_ready:
            return "certificates are not ready"
        if self._servers.why_not_ready:
            return self._servers.why_not_ready
        if not self._manager.is_synced:
            waiting = [str(source.resource.plural) for source in self._manager.sources if not source.is_synced]
            return f"waiting for the first list of: {', '.join(waiting)}"
        if self.kinds.unanswered:
            return f"waiting for the first answer about: {', '.join(self.kinds.unanswered)}"
        return ""

    # Parts

    def _make_registry(self) -> Registry:
        chosen = self.settings.configuration.plugins
        return Registry(
            enabled=chosen.enabled_plugins,
            disabled=chosen.disabled_plugins,
            directory=chosen.directory,
            progress_server=self.settings.progress_server,
            kubernetes_gang=self.settings.configuration.gangs_by_kubernetes,
            local_runs=self.settings.local_runs,
        )

    def _make_election(self) -> Election | None:
        config = self.settings.election
        return Election(self._client, config, self._clock, metrics=self.metrics) if config is not None else None

    def _make_writer(self) -> Client:
        """The reconcilers' client. The fence is innermost: a write that waited for the limit is not sent any more when
        the Lease was lost meanwhile.
        """
        transport = self._client.transport
        if self._tracing is not None:
            transport = self._tracing.transport(transport)
        if self._election is not None:
            transport = Fence(transport, self._leads)
        limits = self.settings.configuration.client_connection
        if limits.qps > 0:
            transport = RateLimited(
                transport, qps=limits.qps, burst=limits.burst, now=self._clock.now, sleep=self._clock.sleep
            )
        writer = Client(transport)
        writer.server_time = self._client.server_time
        return writer

    def _make_certificates(self) -> Rotation | CertificateFiles | None:
        config = self.settings.configuration.cert_management
        if not self.settings.needs_certificates:
            return None
        if not config.enable:
            return CertificateFiles(self._tls, Path(config.cert_dir), self._clock, on_change=self._look_at_all_jobs)
        return Rotation(
            self._client,
            self._tls,
            namespace=self.settings.namespace,
            secret=config.webhook_secret_name,
            policy=self.settings.policy,
            clock=self._clock,
            on_change=self._look_at_all_jobs,  # pods mount the CA to report their progress
        )

    async def _rotate(self, certificates: Rotation) -> None:
        controller = self._controllers.controller(rotation.CONTROLLER, certificates.reconcile, certificates.watches)
        controller.add(certificates.key)  # there may be nothing to watch yet
        await Manager(self._client, [controller], clock=self._clock).run()

    def _leads(self) -> bool:
        return self._election is None or self._election.is_leading

    def _ca_certificate(self) -> str:
        return self._certificates.ca_certificate if self._certificates is not None else ""

    def _look_at_all_jobs(self) -> None:
        self._controllers.look_at_all_jobs()
