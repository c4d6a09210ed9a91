"""`up --network isolated`: every pod has a network of its own; jobs use the same ports at once and never meet."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from commandline import CommandLine, command_line, plain_job, processes_of_pods
from trainwright.embedded.node.supervision import tiers
from waiting import eventually

UNPRIVILEGED = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Another user, with no capability, to whom the files of whoever runs the tests belong."""

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux" or not tiers.probe(networks=True).has_networks, reason="no namespaces"),
]

MEET = """
    import os, socket, struct, fcntl, sys, time
    from trainwright import progress

    job, me = "{job}", int(os.environ["JOB_COMPLETION_INDEX"])
    server = socket.create_server(("", 29500))  # every pod of every job
    interfaces = sorted(name for _, name in socket.if_nameindex())
    if me == 0:
        answered = 0
        while answered < 2:
            caller, _ = server.accept()
            said = caller.recv(100).decode()
            caller.sendall(f"welcome to {{job}}".encode())
            caller.close()
            answered += said.startswith("node")
            print("heard", said, flush=True)
    else:
        for name in ("{job}-node-0-0.{job}", "localhost"):
            for _ in range(200):
                try:
                    sock = socket.create_connection((name, 29500), 1)
                    break
                except OSError:
                    time.sleep(0.05)
            sock.sendall(f"node {{me}} of {job}".encode())
            if name != "localhost":
                print("answer:", sock.recv(100).decode(), flush=True)
        socket.create_connection(("{job}-node-0-0.{job}", 29500)).sendall(f"node {{me}} of {job}".encode())
    progress(step=1, total=1, loss=0.25)
    print("interfaces", *interfaces, flush=True)
    print("address", socket.gethostbyname(socket.gethostname()), flush=True)
    while not os.path.exists("{go}"):
        time.sleep(0.05)
"""


REACH = """
import socket
try:
    socket.create_connection(("{address}", 29500), 2)
    print("reached")
except OSError as error:
    print("not so:", error)
"""


@pytest.fixture(params=["as whoever runs the tests", "as a user without rights"])
def isolated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandLine]:
    with ExitStack() as stack:
        words = stack.enter_context(user_without_rights()) if "without rights" in request.param else ()
        line = stack.enter_context(command_line(tmp_path / "cluster", words))
        line("up", "--detach", "--network", "isolated")
        yield line


@contextmanager
def user_without_rights() -> Iterator[tuple[str, ...]]:
    """Words before a command that make it another user's, with no capability; each time in the same user namespace."""
    if any(shutil.which(program) is None for program in ("unshare", "nsenter")):
        pytest.skip("unshare and nsenter are needed, to take rights away")
    with subprocess.Popen([*UNPRIVILEGED, "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            if not holder.stdout.readline():
                pytest.skip("a user namespace is needed, to take rights away in it")
            words = ("nsenter", "--user", "--preserve-credentials", "--target", str(holder.pid))
            status = subprocess.run([*words, "cat", "/proc/self/status"], check=True, capture_output=True, text=True)
            assert "CapEff:\t0000000000000000" in status.stdout, "no right is left"
            yield words
        finally:
            holder.kill()


def test_two_jobs_on_the_same_port_never_meet(isolated: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    for job in ("one", "two"):
        (tmp_path / f"{job}.yaml").write_text(plain_job(job, MEET.format(job=job, go=go), nodes=2))
        isolated("run", str(tmp_path / f"{job}.yaml"), "--detach")

    def lines(job: str) -> str:
        return isolated("logs", job)

    def has_said_all(job: str) -> bool:
        return lines(job).count("address 10.") == 2

    def has_reported(job: str) -> bool:
        return "0.25" in isolated("describe", job)

    for job, other in (("one", "two"), ("two", "one")):
        eventually("both pods have said all", partial(has_said_all, job), 60)
        said = lines(job)
        assert f"answer: welcome to {job}" in said, said
        assert said.count(f"heard node 1 of {job}") == 2, said
        assert other not in said.replace("another", ""), "nothing of the other job came here"
        assert said.count("interfaces eth0 lo") == 2, "its own interfaces, and none of the machine's"
        eventually("its progress is reported", partial(has_reported, job), 30)

    addresses = {job: re.findall(r"address (10\.[\d.]+)", lines(job)) for job in ("one", "two")}
    for target, reached in ((addresses["one"][0], True), (addresses["two"][0], False)):
        output = isolated("exec", "one", "--rank", "1", "--", sys.executable, "-c", REACH.format(address=target))
        assert ("reached" in output) is reached, f"{target}: {output}"

    isolated.kill_control_plane()
    isolated("up", "--detach")  # isolated again: the choice is kept
    output = isolated(
        "exec", "one", "--rank", "1", "--", sys.executable, "-c", "import socket; print(socket.if_nameindex())"
    )
    assert "eth0" in output
    go.touch()
    for job in ("one", "two"):
        assert "Complete" in isolated("wait", job, "--timeout", "60s")
    eventually("nothing of them is left", lambda: not processes_of_pods(isolated.directory))


SERVE = """
    import socket
    with socket.create_server(("127.0.0.1", 8765)) as server:
        print("listens", flush=True)
        caller, _ = server.accept()
        caller.sendall(b"from inside")
"""


def test_a_port_of_a_pod_is_forwarded_into_its_network(isolated: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(plain_job("serve", SERVE))
    isolated("run", str(tmp_path / "job.yaml"), "--detach")
    eventually("it listens", lambda: "listens" in isolated("logs", "serve"), 30)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 8765), 1)
    with isolated.start("port-forward", "serve", "0:8765") as forwarding:
        try:
            assert forwarding.stdout is not None
            port = int(forwarding.stdout.readline().partition("127.0.0.1:")[2].split()[0])
            with socket.create_connection(("127.0.0.1", port), 10) as sock:
                assert sock.recv(100) == b"from inside"
        finally:
            forwarding.terminate()
    assert "Complete" in isolated("wait", "serve", "--timeout", "60s")


def test_what_cannot_be_isolated_is_refused(tmp_path: Path) -> None:
    """Without the right to make namespaces `up` says so, and leaves nothing behind."""
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    words = ("unshare", "--map-root-user", "sh", "-c", forbid, "sh")
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a user namespace is needed, to forbid namespaces in it")
    with command_line(tmp_path / "cluster", words) as line:
        output = line("up", "--detach", "--network", "isolated", code=1)
        assert "--network isolated: pods can have no network of their own here" in output
        assert "--network shared" in output
        assert not (tmp_path / "cluster").exists()
        assert "no network of their own" in line("doctor", code=None)
