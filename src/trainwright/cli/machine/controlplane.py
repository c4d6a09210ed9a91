"""The local control plane, wired: an API server, and its clients: operator, workload controllers and node.

All of it lives in one process, yet operator, workload controllers and node meet only through the API server. Their
client sends its requests to the server in this process, where they pass the same checks as those that come over HTTPS:
only socket and TLS are left out. Each gets what an administrator of a cluster would install beside it:

    operator    a configuration file's content, a serving certificate, its two sockets
    node        a serving certificate, and the token that authenticates the API server when it asks for logs
    JobSet      a serving certificate and a socket for its admission webhooks
    API server  the addresses of these webhooks, in place of Services' cluster IPs

Sockets are bound and certificates issued first, so that every part has all of its configuration when it starts. The
process can be killed at any moment: pods keep running under their supervisors, and the next control plane of the same
directory adopts them. On SIGTERM and Ctrl-C it ends the pods as well.

`python -m trainwright.cli.machine.controlplane` is what `up --detach` starts.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # until everything is imported and started: nothing of that goes, and each look at it takes time

import argparse
import asyncio
import logging
import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from trainwright import reporting
from trainwright.api.configuration import (
    GANG_GATE,
    PROGRESS_GATE,
    CertManagementConfig,
    Configuration,
    StatusServerConfig,
    WebhookConfig,
    local,
)
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.machine import network, nodes, shipped
from trainwright.cli.machine.keptport import bind, bind_kept_port
from trainwright.cli.machine.rehearsal import rehearse
from trainwright.cli.machine.up import READY
from trainwright.cli.machine.upkeep import keep_up
from trainwright.client.client import Client
from trainwright.controlloop import Manager
from trainwright.embedded.apiserver import ApiServer, ControllerFailed, StoreError
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.inprocess import InProcessTransport
from trainwright.embedded.node.node import LocalNode, NodeConfig
from trainwright.embedded.recorder.recorder import Recorder
from trainwright.embedded.workloads import webhooks
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.embedded.workloads.jobset.admission import JobSetAdmission
from trainwright.http import server as http
from trainwright.http.limits import raise_descriptor_limit
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.runs import RunsHome
from trainwright.runs.limits import HANG_AFTER_SECONDS, SettingsInvalid, hang_after_of

LOOPBACK = "127.0.0.1"
_SERVICE = f"{shipped.OPERATOR_SERVICE}.{SYSTEM_NAMESPACE}.svc"
JOB_SET_NAMES = ("{1}.{0}.svc".format(*webhooks.SERVICE), LOOPBACK)
OPERATOR_NAMES = (_SERVICE, f"{_SERVICE}.cluster.local")
POLL_SECONDS = 0.005


class _Stopped(Exception):
    """The control plane was asked to end."""


def serve(
    cluster: ClusterDirectory,
    *,
    port: int,
    api_only: bool,
    ready: Callable[[], None],
    ui: bool = False,
    rehearsing: bool = True,
) -> None:
    """Runs the control plane of a directory until SIGTERM or SIGINT. `ready` is called when a TrainJob can be
    created; then a run is rehearsed, unless one comes at once.
    """
    raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            if api_only:
                runner.run(_serve_api(cluster, port, ready))
            else:
                runner.run(_serve(cluster, port, ready, ui=ui, rehearsing=rehearsing))
    except (StoreError, ControllerFailed) as error:
        raise Failure(str(error)) from error
    except StatusError as error:
        raise Failure(error.message) from error


async def _serve_api(cluster: ClusterDirectory, port: int, ready: Callable[[], None]) -> None:
    stopped = _stop_signal()
    async with ApiServer(cluster.path, port) as server:
        await shipped.install_crds(server)
        gc.enable()
        ready()
        await stopped.wait()


async def _serve(
    cluster: ClusterDirectory, port: int, ready: Callable[[], None], *, ui: bool, rehearsing: bool
) -> None:
    stopped = _stop_signal()
    directory = cluster.path / "operator"
    directory.mkdir(mode=0o700, exist_ok=True)
    with (
        bind() as webhook,
        bind() as job_sets,
        bind_kept_port(directory / "progress-port", "progress reports") as progress,
    ):
        addresses = {
            (SYSTEM_NAMESPACE, shipped.OPERATOR_SERVICE): webhook.getsockname(),
            webhooks.SERVICE: job_sets.getsockname(),
        }
        resolve = partial(_address_of_service, addresses)
        async with ApiServer(cluster.path, port, resolve_service=resolve) as server:
            await shipped.install(server)
            async with Client(InProcessTransport(server.server)) as client:
                configuration = _operator_configuration(server, directory, progress.getsockname()[1])
                listeners = {"webhook": webhook, "progress": progress}
                operator = Operator(client, Settings(configuration=configuration, local_runs=True), listeners=listeners)
                node = LocalNode(client, _node_configuration(server, cluster.path, progress.getsockname()[1]))
                workloads = Manager(client, workload_controllers(client))
                admission = http.Server(
                    webhooks.application(JobSetAdmission(client)), job_sets, _tls(server, "jobset", JOB_SET_NAMES)
                )
                recorder = Recorder(client, RunsHome(cluster.path))
                beside = [asyncio.create_task(keep_up(cluster, client), name="upkeep")]

                def announce() -> None:
                    ready()
                    if rehearsing:
                        beside.append(asyncio.create_task(rehearse(client), name="rehearsal"))

                async with admission, _page(cluster) if ui else nullcontext():
                    try:
                        await _run(operator, workloads, node, recorder, announce, stopped)
                    finally:
                        for task in beside:
                            task.cancel()
                    await recorder.finish()
                    await node.end_pods()


def _page(cluster: ClusterDirectory) -> AbstractAsyncContextManager[object]:
    """The live page, as a client of the API server like any other."""
    from trainwright.cli.clusters.target import Target
    from trainwright.cli.machine.ui import listening, page_of

    return page_of(Target(cluster, flag=cluster.flag()), listening(cluster, 0), may_change=True)


def _stop_signal() -> asyncio.Event:
    """Set when the process is asked to end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped


def _address_of_service(
    addresses: Mapping[tuple[str, str], tuple[str, int]], namespace: str, name: str, port: int
) -> tuple[str, int] | None:
    """The address of a Service on this machine. There is no proxy; only the webhooks' Services are called."""
    return addresses.get((namespace, name))


def _tls(server: ApiServer, name: str, hosts: Sequence[str]) -> ssl.SSLContext:
    certificate = server.issue_certificate(name, list(hosts))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.cert, certificate.key)
    return tls


async def _run(
    operator: Operator,
    workloads: Manager,
    node: LocalNode,
    recorder: Recorder,
    ready: Callable[[], None],
    stopped: asyncio.Event,
) -> None:
    """Runs the API server's clients until `stopped`. `ready` is called when all of them are ready for a TrainJob."""
    node_ready = asyncio.Event()

    async def stop() -> None:
        await stopped.wait()
        raise _Stopped

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(stop(), name="stop")
            group.create_task(operator.run(), name="operator")
            group.create_task(workloads.run(), name="workloads")
            group.create_task(node.run(ready=node_ready.set), name="node")
            group.create_task(recorder.run(), name="recorder")
            await node_ready.wait()
            while not (operator.is_ready and workloads.is_synced):  # noqa: ASYNC110 - many parts, one look
                await asyncio.sleep(POLL_SECONDS)
            # Schemas and modules stay as long as the process. A full collection that walks them stops everything for
            # 150 ms, so the collector is told to leave them alone.
            gc.freeze()
            gc.enable()
            ready()
    except* _Stopped:
        pass


def _node_configuration(server: ApiServer, directory: Path, progress_port: int) -> NodeConfig:
    return NodeConfig(
        directory,
        token=server.kubelet_token,
        tls=_tls(server, "node", [LOOPBACK, "localhost"]),
        tier=network.isolated() if network.is_isolated(directory) else None,
        hosts=dict.fromkeys(OPERATOR_NAMES, LOOPBACK),
        reachable=(progress_port,),
        runs=RunsHome(directory),
        hidden=directory.resolve(),
        shapes=nodes.kept(directory),
        python=_python_path(directory),
        hang_after=_hang_after(directory),
        environ={**os.environ, "PATH": _path_with_our_programs()},
    )


def _hang_after(directory: Path) -> float:
    try:
        return hang_after_of(directory)
    except SettingsInvalid as error:
        logging.getLogger(__name__).warning("a run is said to hang after %g s: %s", HANG_AFTER_SECONDS, error)
        return HANG_AFTER_SECONDS


def _python_path(directory: Path) -> Path:
    """A directory whose only module lets training code report its progress, whatever Python runs it."""
    path = directory / "python"
    path.mkdir(mode=0o700, exist_ok=True)
    new = path / ".trainwright.py"
    new.write_bytes(Path(reporting.__file__).read_bytes())
    new.replace(path / "trainwright.py")  # whole at every moment: pods of an earlier start import it too
    return path


def _path_with_our_programs() -> str:
    """The user's PATH with the directory of our own Python first: pods run the programs installed beside us."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _operator_configuration(server: ApiServer, directory: Path, progress_port: int) -> Configuration:
    """The operator's configuration as in a cluster, on loopback, with a certificate by the cluster's CA.

    Progress reporting is on, and so are gangs by Kubernetes' own PodGroups, which the local scheduler knows. Pods reach
    the progress server by its Service's name, or by its address where they have no names.
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
        feature_gates={PROGRESS_GATE: True, GANG_GATE: True},
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="trainwright.cli.machine.controlplane")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-only", action="store_true")
    parser.add_argument("--ui", action="store_true")
    parser.add_argument("--for-a-run", action="store_true", help="one comes at once: do not rehearse it")
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
            serve(
                cluster,
                port=flags.port,
                api_only=flags.api_only,
                ready=lambda: tell(READY),
                ui=flags.ui,
                rehearsing=not flags.for_a_run,
            )
    except Failure as failure:
        if answer.closed:
            raise
        tell(failure.message)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
