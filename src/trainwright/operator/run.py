"""`trainwright operator`: from flags to a running operator, and from its end to an exit code.

`run_operator` is all the command line calls. It reads the configuration, finds the API server, and runs until SIGTERM
or SIGINT (exit 0) or until something ends it (exit 1).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from trainwright.api.configuration import Configuration, ConfigurationError, MetricsAuth
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.client import Client, ClientError, Connection, HttpTransport, Transport
from trainwright.client import kubeconfig as kubeconfigs
from trainwright.clock import SystemClock
from trainwright.http.limits import raise_descriptor_limit
from trainwright.operator import logs, tracing
from trainwright.operator.certificates.material import Policy
from trainwright.operator.configfile import parse
from trainwright.operator.figures.metrics import Counted, OperatorMetrics
from trainwright.operator.incumbent import AnotherOperator, refuse_incumbent
from trainwright.operator.manager import Operator
from trainwright.operator.memory import Trimming, settle_collector
from trainwright.operator.serving.debugging import log_stacks
from trainwright.operator.settings import Settings
from trainwright.pipeline import PipelineError

log = logging.getLogger(__name__)

STOP_SECONDS = 10.0


def run_operator(
    *,
    config: Path | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    feature_gates: str = "",
    metrics_auth: bool = False,
    namespace: str | None = None,
    identity: str | None = None,
    environment: Mapping[str, str] = os.environ,
    policy: Policy | None = None,
    take_over: bool = False,
) -> int:
    """Runs the operator in this process; the exit code. It refuses a cluster that another operator serves, unless
    `take_over`.
    """
    logs.begin()
    raise_descriptor_limit()
    try:
        configuration = read_configuration(config, feature_gates)
        logs.configure(configuration.logging)
        if metrics_auth:
            metrics = msgspec.structs.replace(configuration.metrics, auth=MetricsAuth(enabled=True))
            configuration = msgspec.structs.replace(configuration, metrics=metrics)
        connection = find_connection(kubeconfig, environment, context)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(_run(configuration, connection, namespace, identity, policy, take_over))
    except (ConfigurationError, ClientError, PipelineError, AnotherOperator) as error:
        print(f"trainwright operator: {error}", file=sys.stderr)
        return 1


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one: TLS connections cost a third of the memory."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def read_configuration(path: Path | None, feature_gates: str = "") -> Configuration:
    if path is None:
        return parse("", feature_gates=feature_gates)
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigurationError(f"failed to read config file: {path}: {error.strerror}") from error
    return parse(text, feature_gates=feature_gates)


def find_connection(kubeconfig: Path | None, environment: Mapping[str, str], context: str | None = None) -> Connection:
    """The named kubeconfig; else, unless a context is named, the cluster we run in; else $KUBECONFIG; else
    ~/.kube/config.
    """
    if kubeconfig is not None:
        return kubeconfigs.load(kubeconfig, context=context)
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if context is None and host and port and kubeconfigs.SERVICE_ACCOUNT.exists():
        return kubeconfigs.in_cluster(host=host, port=port)
    listed = environment.get("KUBECONFIG")
    paths = [Path(part) for part in listed.split(os.pathsep) if part] if listed else [Path.home() / ".kube" / "config"]
    return kubeconfigs.load_merged(paths, context=context)


def operator_namespace() -> str:
    """Where we run, as the kubelet tells it; the reference's namespace outside a cluster."""
    file = kubeconfigs.SERVICE_ACCOUNT / "namespace"
    return file.read_text().strip() if file.exists() else SYSTEM_NAMESPACE


async def _run(
    configuration: Configuration,
    connection: Connection,
    namespace: str | None,
    identity: str | None,
    policy: Policy | None,
    take_over: bool,
) -> int:
    metrics = OperatorMetrics()
    traces = tracing.start(configuration.tracing)
    transport: Transport = Counted(HttpTransport(connection), metrics, connection.server.partition("://")[2])
    async with Client(transport) as client:
        settings = Settings(
            configuration=configuration,
            namespace=namespace or operator_namespace(),
            identity=identity or f"{socket.gethostname()}_{os.getpid()}",
            certificates=policy,
        )
        where = f"context {connection.context}" if connection.context else "the cluster of this pod"
        log.info("on %s at %s", where, connection.server)
        if not take_over:
            await refuse_incumbent(client, settings, in_cluster=not connection.context)
        operator = Operator(client, settings, metrics=metrics, tracing=traces)
        settle_collector()
        trimming = asyncio.ensure_future(Trimming(lambda: metrics.passes, SystemClock()).run())
        try:
            return await _until_signal(operator)
        finally:
            trimming.cancel()
            if traces is not None:
                await asyncio.to_thread(traces.close)


async def _until_signal(operator: Operator) -> int:
    running = asyncio.ensure_future(operator.run())
    asked_to_stop = False

    loop = asyncio.get_running_loop()

    def stop() -> None:
        """However often it is asked for, there is one orderly stop; a stop that hangs is cut short."""
        nonlocal asked_to_stop
        if not asked_to_stop:
            asked_to_stop = True
            running.cancel()
            loop.call_later(STOP_SECONDS, os._exit, 1)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGUSR1, log_stacks)
    try:
        await running
    except asyncio.CancelledError:
        return 0 if asked_to_stop else 1
    except BaseExceptionGroup as group:
        for error in _leaves(group):
            known = isinstance(error, (ConfigurationError, ClientError))
            log.error("%s", error, exc_info=None if known else error)
    return 1


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
