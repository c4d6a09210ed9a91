"""The local control plane, wired: an API server, and its clients: operator, workload controllers and node.

All of it lives in one process and one TaskGroup, yet every part knows only the kubeconfig: between them is HTTP and
nothing else. The process can be killed at any moment; pods run on under their supervisors, and the next control plane
of the same directory adopts them. Asked to stop in order (SIGTERM, Ctrl-C) it ends the pods as well.

`python -m trainwright.cli.controlplane` is what `up --detach` starts.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from trainwright.api.configuration import (
    PROGRESS_GATE,
    CertManagementConfig,
    Configuration,
    StatusServerConfig,
    WebhookConfig,
    local,
)
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.cli import shipped
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.keptport import bind_kept_port
from trainwright.cli.up import READY
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.controlloop import Manager
from trainwright.embedded import manifests
from trainwright.embedded.apiserver import ApiServer, ControllerFailed, StoreError
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.node.node import LocalNode, NodeConfig
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.operator.manager import Operator

LOOPBACK = "127.0.0.1"
_SERVICE = f"{shipped.OPERATOR_SERVICE}.{SYSTEM_NAMESPACE}.svc"
OPERATOR_NAMES = (_SERVICE, f"{_SERVICE}.cluster.local")
POLL_SECONDS = 0.02


def serve(cluster: ClusterDirectory, *, port: int, api_only: bool, ready: Callable[[], None]) -> None:
    """Be the control plane of a directory until SIGTERM or SIGINT. `ready` is called when a TrainJob can be created."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(cluster, port, api_only, ready))
    except (StoreError, ControllerFailed) as error:
        raise Failure(str(error)) from error
    except StatusError as error:
        raise Failure(error.message) from error


async def _serve(cluster: ClusterDirectory, port: int, api_only: bool, ready: Callable[[], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    services: dict[tuple[str, str], int] = {}
    async with ApiServer(cluster.path, port, resolve_service=partial(_address_of, services)) as server:
        await server.install(manifests.crds())
        if api_only:
            ready()
            await stopped.wait()
            return
        await server.install(shipped.system(server.ca_file.read_bytes()))
        await server.install(shipped.runtimes())
        async with Client.to(kubeconfig.load(server.kubeconfig)) as client:
            controllers = _Controllers(client, server, cluster, services)
            await _until(stopped, controllers.run(ready))
            await controllers.end_pods()


def _address_of(services: dict[tuple[str, str], int], namespace: str, name: str, port: int) -> tuple[str, int] | None:
    """Where a service is on this machine: there is no proxy, so the API server asks for the few that it calls."""
    found = services.get((namespace, name))
    return (LOOPBACK, found) if found else None


class _Controllers:
    """Everything that acts through the API: it would run as well against any other server."""

    def __init__(
        self, client: Client, server: ApiServer, cluster: ClusterDirectory, services: dict[tuple[str, str], int]
    ) -> None:
        self._services = services
        directory = cluster.path / "operator"
        directory.mkdir(mode=0o700, exist_ok=True)
        listener = bind_kept_port(directory / "progress-port", "progress reports")
        configuration = _operator_configuration(server, directory, listener.getsockname()[1])
        self._operator = Operator(client, configuration, progress_listener=listener)
        self._workloads = Manager(client, workload_controllers(client))
        certificate = server.issue_certificate("node", [LOOPBACK, "localhost"])
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate.cert, certificate.key)
        environment = {**os.environ, "PATH": _path_with_our_programs()}
        self._node = LocalNode(
            client,
            NodeConfig(
                cluster.path,
                token=server.kubelet_token,
                tls=tls,
                hosts=dict.fromkeys(OPERATOR_NAMES, LOOPBACK),
                environ=environment,
            ),
        )

    async def run(self, ready: Callable[[], None]) -> None:
        """Until cancelled. `ready` is called when a TrainJob would be taken all the way to its pods."""
        node_ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._operator.run(), name="operator")
            group.create_task(self._workloads.run(), name="workloads")
            group.create_task(self._node.run(ready=node_ready.set), name="node")
            await node_ready.wait()
            while not (self._operator.is_ready and self._workloads.is_synced):  # noqa: ASYNC110 - many parts, one look
                await asyncio.sleep(POLL_SECONDS)
            self._services[(SYSTEM_NAMESPACE, shipped.OPERATOR_SERVICE)] = self._operator.ports["webhook"]
            # Schemas and modules stay as long as the process. A full collection that walks them stops everything for
            # 150 ms, so the collector is told to leave them alone.
            gc.freeze()
            ready()

    async def end_pods(self) -> None:
        await self._node.end_pods()


async def _until(stopped: asyncio.Event, work: Awaitable[None]) -> None:
    """Do the work until it ends or somebody asks to stop."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise


def _path_with_our_programs() -> str:
    """The user's PATH with the directory of our own Python first: what is installed beside us is what pods run."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _operator_configuration(server: ApiServer, directory: Path, progress_port: int) -> Configuration:
    """The operator as in a cluster, on loopback, with a certificate by the cluster's CA in place of cert-manager's.

    Progress reporting is on (D27). Pods reach it by its service's name, or by its address where they have no names.
    """
    issued = server.issue_certificate("operator", [*OPERATOR_NAMES, LOOPBACK])
    for source, target in ((issued.cert, "tls.crt"), (issued.key, "tls.key"), (server.ca_file, "ca.crt")):
        (directory / target).write_bytes(Path(source).read_bytes())
        (directory / target).chmod(0o600)
    return msgspec.structs.replace(
        local(),
        webhook=WebhookConfig(host=LOOPBACK, port=0),
        cert_management=CertManagementConfig(enable=False, cert_dir=str(directory)),
        status_server=StatusServerConfig(host=LOOPBACK, port=progress_port, qps=0.0),
        feature_gates={PROGRESS_GATE: True},
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="trainwright.cli.controlplane")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-only", action="store_true")
    parser.add_argument("--ready-fd", type=int, required=True)
    flags = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    answer = os.fdopen(flags.ready_fd, "w")

    def tell(line: str) -> None:
        answer.write(f"{line}\n")
        answer.close()

    cluster = ClusterDirectory(flags.dir)
    try:
        with cluster.held():
            serve(cluster, port=flags.port, api_only=flags.api_only, ready=lambda: tell(READY))
    except Failure as failure:
        if answer.closed:
            raise
        tell(failure.message)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
