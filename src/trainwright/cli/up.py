"""`up`, `down` and `status`: start, stop and show the local control plane.

`up` serves in this process until it is told to stop. `up --detach` starts the same control plane as a process of its
own and waits on a pipe for one line: `ready`, or an error message. `down` asks the process to end and waits until its
lock is free, which is when everything it started has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure

READY = "ready"
START_SECONDS = 60.0
STOP_SECONDS = 60.0


def up(directory: Path, port: int, detach: bool, api_only: bool) -> int:
    cluster = ClusterDirectory(directory)
    if detach:
        pid = start(cluster, port=port, api_only=api_only)
        print(f"The local cluster is up (pid {pid}). Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n")
        return 0
    from trainwright.cli.controlplane import serve

    def announce() -> None:
        print(
            f"The local cluster is up; Ctrl-C ends it. Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n",
            flush=True,
        )

    cluster.create()
    with cluster.held():
        serve(cluster, port=port, api_only=api_only, ready=announce)
    return 0


def start(cluster: ClusterDirectory, *, port: int = 0, api_only: bool = False) -> int:
    """Starts a detached control plane and returns its pid when a TrainJob can be created."""
    cluster.create()
    running = cluster.running_pid()
    if running is not None:
        raise Failure(cluster.already_running(running))
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "trainwright.cli.controlplane", "--dir", str(cluster.path), "--port", str(port)]
    command += ["--ready-fd", str(writer), *(["--api-only"] if api_only else [])]
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
    with os.fdopen(reader) as pipe:
        answer = _read_line(pipe.fileno(), START_SECONDS)
    if answer == READY:
        return process.pid
    if answer is None:
        process.terminate()
        answer = f"it did not become ready within {START_SECONDS:.0f} s"
    raise Failure(f"the local cluster did not start: {answer or 'its process ended'}; its log is {cluster.log_file}")


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


def down(directory: Path) -> int:
    cluster = ClusterDirectory(directory)
    if cluster.running_pid() is None:
        print(f"No local cluster is running on {cluster.path}.")
        return 0
    stop(cluster)
    print("The local cluster is down.")
    return 0


def stop(cluster: ClusterDirectory) -> None:
    """Ends the control plane and waits until it has released the directory."""
    pid = cluster.running_pid()
    if pid is None:
        return
    if pid:  # otherwise it is ending already
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while cluster.running_pid() is not None:
        if time.monotonic() > deadline:
            raise Failure(
                f"the control plane (pid {pid}) has not ended after {STOP_SECONDS:.0f} s; see {cluster.log_file}"
            )
        time.sleep(0.02)


def status(directory: Path) -> int:
    cluster = ClusterDirectory(directory)
    pid = cluster.running_pid()
    if pid is None:
        print(f"No local cluster is running on {cluster.path}. Start one with: trainwright up --detach{cluster.flag()}")
        return 1
    print(f"The local cluster is up (pid {pid}). Use it with:\n\n  export KUBECONFIG={cluster.kubeconfig}\n")
    return 0
