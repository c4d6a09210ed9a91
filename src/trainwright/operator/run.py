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

from trainwright.api.configuration import Configuration, ConfigurationError
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.client import Client, ClientError, Connection, HttpTransport, Transport
from trainwright.client import kubeconfig as kubeconfigs
from trainwright.controlloop.election import LostLease
from trainwright.operator.certificates import Policy
from trainwright.operator.configfile import parse
from trainwright.operator.manager import Operator
from trainwright.operator.metrics import Counted, OperatorMetrics
from trainwright.operator.settings import Settings
from trainwright.pipeline import PipelineError

log = logging.getLogger(__name__)

STOP_SECONDS = 10.0
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run_operator(
    *,
    config: Path | None = None,
    kubeconfig: Path | None = None,
    feature_gates: str = "",
    namespace: str | None = None,
    identity: str | None = None,
    environment: Mapping[str, str] = os.environ,
    policy: Policy | None = None,
) -> int:
    """Runs the operator in this process; the exit code."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)  # unless whoever calls has done so
    try:
        configuration = read_configuration(config, feature_gates)
        connection = find_connection(kubeconfig, environment)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(_run(configuration, connection, namespace, identity, policy))
    except (ConfigurationError, ClientError, PipelineError) as error:
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


def find_connection(kubeconfig: Path | None, environment: Mapping[str, str]) -> Connection:
    """The named kubeconfig; else the cluster we run in; else $KUBECONFIG; else ~/.kube/config."""
    if kubeconfig is not None:
        return kubeconfigs.load(kubeconfig)
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if host and port and kubeconfigs.SERVICE_ACCOUNT.exists():
        return kubeconfigs.in_cluster(host=host, port=port)
    listed = environment.get("KUBECONFIG")
    paths = [Path(part) for part in listed.split(os.pathsep) if part] if listed else [Path.home() / ".kube" / "config"]
    return kubeconfigs.load_merged(paths)


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
) -> int:
    metrics = OperatorMetrics()
    transport: Transport = Counted(HttpTransport(connection), metrics, connection.server.partition("://")[2])
    async with Client(transport) as client:
        settings = Settings(
            configuration=configuration,
            namespace=namespace or operator_namespace(),
            identity=identity or f"{socket.gethostname()}_{os.getpid()}",
            certificates=policy,
        )
        operator = Operator(client, settings, metrics=metrics)
        return await _until_signal(operator)


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
    try:
        await running
    except asyncio.CancelledError:
        return 0 if asked_to_stop else 1
    except BaseExceptionGroup as group:
        for error in _leaves(group):
            known = isinstance(error, (LostLease, ConfigurationError, ClientError))
            log.error("%s", error, exc_info=None if known else error)
    return 1


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
