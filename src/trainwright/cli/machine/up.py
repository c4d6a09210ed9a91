"""`up` and `status`: start and show the local control plane; and how `down` stops it.

`up` serves in this process until it is told to stop. `up --detach` starts the same control plane as a process of its
own and waits on a pipe for one line: `ready`, or an error message. `stop` asks the process to end and waits until its
lock is free, which is when everything it started has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from trainwright.cli.clusters.directory import ClusterDirectory, check_system
from trainwright.cli.clusters.diskspace import pressure
from trainwright.cli.failure import Failure

READY = "ready"
START_SECONDS = 60.0
STOP_SECONDS = 60.0


def up(
    directory: Path,
    port: int,
    detach: bool,
    api_only: bool,
    nodes: str | None = None,
    ui: bool = False,
    network: str | None = None,
) -> int:
    cluster = ClusterDirectory(directory)
    if nodes is not None:
        _show_as(cluster, nodes)
    if network is not None:
        _use_network(cluster, network)
    if detach:
        pid = start(cluster, port=port, api_only=api_only, ui=ui)
        print(f"The local cluster is up (pid {pid}). Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n")
        if ui:
            _say_where(cluster)
        return 0
    from trainwright.cli.machine.controlplane import serve

    def announce() -> None:
        print(
            f"The local cluster is up; Ctrl-C ends it. Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n",
            flush=True,
        )
        if ui:
            _say_where(cluster)

    check_system()
    cluster.create()
    with cluster.held():
        serve(cluster, port=port, api_only=api_only, ready=announce, ui=ui)
    return 0


def _say_where(cluster: ClusterDirectory) -> None:
    """Where the page is that the control plane serves."""
    from trainwright.cli.machine.ui import announcement, kept_port

    print(announcement(cluster, kept_port(cluster), until="`trainwright down`"), flush=True)


def _show_as(cluster: ClusterDirectory, nodes: str) -> None:
    """Keeps the choice of nodes for this start and later ones."""
    from trainwright.cli.machine.nodes import keep, wanted

    shapes = wanted(nodes)
    _create_stopped(cluster)
    keep(cluster.path, shapes)


def _use_network(cluster: ClusterDirectory, chosen: str) -> None:
    """Keeps the choice of the pods' network for this start and later ones."""
    from trainwright.cli.machine.network import ISOLATED, isolated, keep

    if chosen == ISOLATED:
        isolated()
    _create_stopped(cluster)
    keep(cluster.path, chosen)


def _create_stopped(cluster: ClusterDirectory) -> None:
    """Makes the directory, in which no cluster may run: what is chosen now is for the next start."""
    running = cluster.running_pid() if cluster.path.exists() else None
    if running is not None:
        raise Failure(cluster.already_running(running))
    check_system()
    cluster.create()


def start(cluster: ClusterDirectory, *, port: int = 0, api_only: bool = False, ui: bool = False) -> int:
    """Starts a detached control plane and returns its pid when a TrainJob can be created."""
    starting = begin(cluster, port=port, api_only=api_only, ui=ui)
    starting.wait()
    return starting.pid


def begin(
    cluster: ClusterDirectory, *, port: int = 0, api_only: bool = False, ui: bool = False, for_a_run: bool = False
) -> Starting:
    """Starts a detached control plane and returns at once. One `for_a_run` gets a TrainJob as soon as it is ready."""
    check_system()
    cluster.create()
    running = cluster.running_pid()
    if running is not None:
        raise Failure(cluster.already_running(running))
    reader, writer = os.pipe()
    command = [
        sys.executable,
        "-m",
        "trainwright.cli.machine.controlplane",
        "--dir",
        str(cluster.path),
        "--port",
        str(port),
    ]
    flags = {"--api-only": api_only, "--ui": ui, "--for-a-run": for_a_run}
    command += ["--ready-fd", str(writer), *(flag for flag, is_set in flags.items() if is_set)]
    cluster.rotate_log()
    with cluster.log_file.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writer,),
            start_new_session=True,
            cwd=Path.cwd(),
        )
    os.close(writer)
    return Starting(cluster, process, reader)


class Starting:
    """A control plane that starts. Either `wait` for it or `abandon` it."""

    def __init__(self, cluster: ClusterDirectory, process: subprocess.Popen[bytes], reader: int) -> None:
        self._cluster = cluster
        self._process = process
        self._reader = reader
        self.is_ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Returns when a TrainJob can be created."""
        with os.fdopen(self._reader) as pipe:
            answer = _read_line(pipe.fileno(), START_SECONDS)
        if answer == READY:
            self.is_ready = True
            return
        if answer is None:
            self._process.terminate()
            answer = f"it did not become ready within {START_SECONDS:.0f} s"
        log = self._cluster.log_file
        raise Failure(f"the local cluster did not start: {answer or 'its process ended'}; its log is {log}")

    def abandon(self) -> None:
        """Ends it, however far it has come."""
        self._process.terminate()
        self._process.wait(STOP_SECONDS)


def _read_line(descriptor: int, seconds: float) -> str | None:
    """One line from a pipe: empty when the writer died without writing one, None after the timeout."""
    import select

    deadline, text = time.monotonic() + seconds, b""
    while not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        chunk = os.read(descriptor, 4096)
        if not chunk:
            break
        text += chunk
    return text.decode(errors="replace").strip()


def stop(cluster: ClusterDirectory) -> None:
    """Ends the control plane and waits until it has released the directory."""
    pid = cluster.running_pid()
    if pid is None:
        return
    if pid:  # otherwise it is ending already
        if not cluster.holds(pid):
            raise Failure(
                f"{cluster.pid_file} names process {pid}, which does not hold {cluster.lock_file}: it is not signalled;"
                " end the process that does (lsof tells) and try again"
            )
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while cluster.running_pid() is not None:
        if time.monotonic() > deadline:
            raise Failure(
                f"the control plane (pid {pid}) has not ended after {STOP_SECONDS:.0f} s; see {cluster.log_file}"
            )
        time.sleep(0.02)


def status(directory: Path, output: str = "text") -> int:
    cluster = ClusterDirectory(directory)
    pid = cluster.running_pid()
    if output == "json":
        import json

        where = {
            "running": pid is not None,
            "pid": pid,
            "kubeconfig": str(cluster.kubeconfig),
            "dir": str(cluster.path),
            "diskPressure": pressure(cluster.path),
        }
        print(json.dumps(where, indent=2))
        return 0 if pid is not None else 1
    if reason := pressure(cluster.path):
        print(f"Warning: {reason}", file=sys.stderr)
    if pid is None:
        print(f"No local cluster is running on {cluster.path}. Start one with: trainwright up --detach{cluster.flag()}")
        return 1
    print(f"The local cluster is up (pid {pid}). Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n")
    return 0
