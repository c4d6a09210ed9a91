"""The operator as a whole: sources, controllers and servers, wired together and run as one TaskGroup.

    async with Client.to(kubeconfig.load(path)) as client:
        await Operator(client, configuration.local()).run()       # until cancelled

The embedded cluster runs it exactly so, with a client of its own kubeconfig; the operator cannot tell the difference.
Reconcilers run where the Lease is held; webhooks, progress server, certificates, metrics and probes run in every
replica.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from trainwright.api.configuration import Configuration, local, seconds
from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.client import Client
from trainwright.client.ratelimit import RateLimited
from trainwright.controlloop import (
    Clock,
    Controller,
    Key,
    Manager,
    Reconcile,
    Source,
    SystemClock,
    Watches,
    controlled_by,
    itself,
    key_of,
)
from trainwright.controlloop.election import Election, ElectionConfig, Fence
from trainwright.controlloop.source import KeysOf
from trainwright.operator import pruner, rotation, trainjob, webhooks
from trainwright.operator.admission import Admission
from trainwright.operator.certificates import Policy
from trainwright.operator.endpoints import health_application, metrics_application
from trainwright.operator.guard import RuntimeGuard
from trainwright.operator.keys import GeneratedKeys
from trainwright.operator.kinds import Kinds
from trainwright.operator.lifecycle import Lifecycle
from trainwright.operator.metrics import OperatorMetrics
from trainwright.operator.progress import ProgressServer, ProgressWriter
from trainwright.operator.pruner import RevisionPruner
from trainwright.operator.reloading import Reloading
from trainwright.operator.rotation import CertificateFiles, Rotation
from trainwright.operator.serving import Server, ServingTLS
from trainwright.operator.tokens import Tokens
from trainwright.operator.trainjob import TrainJobReconciler
from trainwright.operator.views import BY_RUNTIME, Views
from trainwright.pipeline import Framework, KeyMaterial, Watch
from trainwright.plugins import Registry

READY_POLL_SECONDS = 0.2


class Operator:
    """Everything that runs in a cluster, for one API server.

    `client` is what reconcilers use and may be limited to so many requests a second; `direct` is for what cannot wait.
    `listeners` are sockets bound already, by the server's name (`webhook`, `progress`), in place of the configured
    addresses: for callers that must know a port before the operator runs.
    """

    def __init__(
        self,
        client: Client,
        configuration: Configuration | None = None,
        *,
        direct: Client | None = None,
        namespace: str = SYSTEM_NAMESPACE,
        identity: str = "trainwright",
        framework: Framework | None = None,
        keys: KeyMaterial | None = None,
        clock: Clock | None = None,
        metrics: OperatorMetrics | None = None,
        policy: Policy | None = None,
        listeners: Mapping[str, socket.socket] | None = None,
        unused_revision_seconds: float = pruner.UNUSED_SECONDS,
    ) -> None:
        self.configuration = configuration or local()
        self.metrics = metrics or OperatorMetrics()
        self.views = Views()
        self.ports: dict[str, int] = {}  # of the servers, by name, once they listen
        self._client = direct or client  # admissions, leases and certificates must not queue behind reconciles
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._listeners = listeners or {}
        self._election = self._make_election(identity)
        config = self.configuration
        service = f"{config.cert_management.webhook_service_name}.{namespace}.svc"
        self._policy = policy or Policy(service)
        self._tls = ServingTLS(config.tls)
        self._reloading: Reloading | None = None
        if framework is None:
            self._reloading = Reloading(self._make_registry(service), self.metrics, self._clock)
            framework = self._reloading.load()
        self.kinds = Kinds(framework)
        self._certificates = self._make_certificates()
        writer = client if self._election is None else Client(Fence(client.transport, self._leads))
        self.train_jobs = self._train_job_controller(writer, keys or GeneratedKeys())
        self._manager = Manager(
            writer,
            [self.train_jobs, *self._other_controllers(writer, unused_revision_seconds)],
            tasks=[lambda: self.kinds.run(writer, self._clock)],
            lead=self._election.lead if self._election else None,
            clock=self._clock,
        )
        Lifecycle(
            self.metrics.registry,
            self.views.jobs,
            self.kinds,
            now=self._client.server_time.now,
            leads=self._leads,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing outlives `run`: all its tasks and servers end with it."""

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
            group.create_task(self._serve(), name="servers")

    @property
    def is_ready(self) -> bool:
        return not self.why_not_ready()

    def why_not_ready(self) -> str:
        if self._certificates is not None and not self._certificates.is_ready:
            return "certificates are not ready"
        if self.configuration.webhook.enable and "webhook" not in self.ports:
            return "the webhook server does not listen yet"
        if self.configuration.reports_progress and "progress" not in self.ports:
            return "the progress server does not listen yet"
        if not self._manager.is_synced:
            waiting = [str(source.resource.plural) for source in self._manager.sources if not source.is_synced]
            return f"waiting for the first list of: {', '.join(waiting)}"
        if self.kinds.unanswered:
            return f"waiting for the first answer about: {', '.join(self.kinds.unanswered)}"
        return ""

    # Plugins

    def _make_registry(self, service: str) -> Registry:
        config = self.configuration
        return Registry(
            enabled=config.plugins.enabled_plugins,
            disabled=config.plugins.disabled_plugins,
            directory=config.plugins.directory,
            progress_server=f"https://{service}:{config.status_server.port}" if config.reports_progress else "",
        )

    def use(self, framework: Framework) -> None:
        """From now on these are the plugins: for the next build, the next status, the next admission."""
        self.kinds.use(framework)
        self._look_at_all_jobs()

    # Controllers

    def _train_job_controller(self, client: Client, keys: KeyMaterial) -> Controller:
        views = self.views
        reconciler = TrainJobReconciler(client, views, self.kinds, keys, ca_certificate=self._ca_certificate)
        controller = self._controller(
            trainjob.CONTROLLER,
            reconciler.reconcile,
            [
                Watches(views.jobs),
                Watches(views.runtimes, self._unfinished_jobs_of("TrainingRuntime")),
                Watches(views.cluster_runtimes, self._unfinished_jobs_of("ClusterTrainingRuntime")),
            ],
            kind="TrainJob.trainer.kubeflow.org",
        )

        def attach(watch: Watch, source: Source[Any]) -> None:
            controller.listen_to(Watches(source, _train_jobs_of))
            source.listen_answers(self._look_at_all_jobs)

        self.kinds.attach(attach)
        return controller

    def _other_controllers(self, client: Client, unused_revision_seconds: float) -> Iterable[Controller]:
        views = self.views
        prune = RevisionPruner(client, views, self._clock, unused_seconds=unused_revision_seconds)
        yield self._controller(
            pruner.CONTROLLER,
            prune.reconcile,
            [Watches(views.revisions), Watches(views.jobs, prune.revisions_of)],
        )
        for source in (views.runtimes, views.cluster_runtimes):
            guard = RuntimeGuard(client, views, source, enabled=self.configuration.runtime_guard.enable)
            yield self._controller(
                guard.name,
                guard.reconcile,
                [Watches(source), Watches(views.jobs, guard.runtimes_of)],
                kind=f"{guard.resource.kind}.{guard.resource.group}",
            )

    def _controller(self, name: str, reconcile: Reconcile, watches: list[Watches], *, kind: str = "") -> Controller:
        return Controller(
            name,
            reconcile,
            watches,
            workers=self.configuration.workers(kind),
            clock=self._clock,
            metrics=self.metrics,
        )

    def _unfinished_jobs_of(self, kind: str) -> KeysOf:
        def keys_of(runtime: PartialObjectMetadata) -> Iterable[Key]:
            name = f"{kind}/{runtime.metadata.namespace}/{runtime.metadata.name}"
            return [key_of(job) for job in self.views.jobs.store.by(BY_RUNTIME, name) if not job.is_finished]

        return keys_of

    def _look_at_all_jobs(self) -> None:
        """What all jobs may depend on has changed: a kind came or went, the CA was renewed."""
        for job in self.views.jobs.store:
            if not job.is_finished:
                self.train_jobs.add(key_of(job))

    # Leadership and certificates

    def _make_election(self, identity: str) -> Election | None:
        config = self.configuration.leader_election
        if config is None or not config.leader_elect:
            return None
        election = ElectionConfig(
            namespace=config.resource_namespace or self._namespace,
            name=config.resource_name,
            identity=identity,
            lease_duration=seconds(config.lease_duration),
            renew_deadline=seconds(config.renew_deadline),
            retry_period=seconds(config.retry_period),
        )
        return Election(self._client, election, self._clock, metrics=self.metrics)

    def _leads(self) -> bool:
        return self._election is None or self._election.is_leading

    def _make_certificates(self) -> Rotation | CertificateFiles | None:
        config = self.configuration
        if not (config.webhook.enable or config.reports_progress or _is_on_with_tls(config)):
            return None
        if not config.cert_management.enable:
            directory = Path(config.cert_management.cert_dir)
            return CertificateFiles(self._tls, directory, self._clock, on_change=self._look_at_all_jobs)
        return Rotation(
            self._client,
            self._tls,
            namespace=self._namespace,
            secret=config.cert_management.webhook_secret_name,
            policy=self._policy,
            clock=self._clock,
            on_change=self._look_at_all_jobs,  # pods mount the CA to report their progress
        )

    def _ca_certificate(self) -> str:
        return self._certificates.ca_certificate if self._certificates is not None else ""

    async def _rotate(self, certificates: Rotation) -> None:
        controller = self._controller(rotation.CONTROLLER, certificates.reconcile, certificates.watches)
        controller.add(certificates.key)  # there may be nothing to watch yet
        await Manager(self._client, [controller], clock=self._clock).run()

    # Servers

    async def _serve(self) -> None:
        config = self.configuration
        async with AsyncExitStack() as servers:
            if config.health.health_probe_bind_address != "0":
                probes = health_application(self.why_not_ready)
                await self._listen(servers, "health", probes, config.health.health_probe_bind_address)
            reviewer = self._client if config.metrics.auth.enabled else None
            figures = metrics_application(self.metrics.registry, reviewer)
            if config.metrics.bind_address != "0" and not config.metrics.secure_serving:
                await self._listen(servers, "metrics", figures, config.metrics.bind_address)
            if self._certificates is not None:
                while not self._tls.is_ready:
                    await self._clock.sleep(READY_POLL_SECONDS)
            if config.webhook.enable:
                admission = webhooks.application(Admission(self._client, lambda: self.kinds.framework), self.metrics)
                where = self._listeners.get("webhook", f"{config.webhook.host}:{config.webhook.port}")
                await self._listen(servers, "webhook", admission, where, self._tls)
            if _is_on_with_tls(config):
                await self._listen(servers, "metrics", figures, config.metrics.bind_address, self._tls)
            if config.reports_progress:
                where = self._listeners.get("progress", f"{config.status_server.host}:{config.status_server.port}")
                await self._listen(servers, "progress", self._progress_application(), where, self._tls)
            await asyncio.Event().wait()

    def _progress_application(self) -> web.Application:
        config = self.configuration.status_server
        transport = self._client.transport
        limited = RateLimited(transport, qps=config.qps, burst=config.burst) if config.qps else transport
        writer = ProgressWriter(Client(limited), self._clock)
        return ProgressServer(Tokens(self._client, self._clock, self.kinds.workload_resources), writer).application()

    async def _listen(
        self,
        servers: AsyncExitStack,
        name: str,
        app: web.Application,
        address: str | socket.socket,
        tls: ServingTLS | None = None,
    ) -> None:
        server = await servers.enter_async_context(Server(app, address, tls))
        self.ports[name] = server.port


def _train_jobs_of(thing: Any) -> Iterable[Key]:
    """The TrainJob that controls an object, and the one whose name it has: that one may wait for the name."""
    return {*_owner(thing), *itself(thing)}


_owner = controlled_by("TrainJob")


def _is_on_with_tls(config: Configuration) -> bool:
    return config.metrics.bind_address != "0" and config.metrics.secure_serving
