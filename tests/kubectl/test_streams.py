"""kubectl exec, cp, port-forward and attach into a rank of the local cluster."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from commandline import CommandLine, plain_job
from kubectl.kubectl import Kubectl
from pseudoterminal import on_terminal
from waiting import eventually

SIZE = 50_000_000
RANK = """
    import http.server, os, sys, threading, time

    class Rank(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = ("I am rank " + os.environ["JOB_COMPLETION_INDEX"]).encode() * (1 + int(self.path.strip("/") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def log_message(self, *_):
            print("asked", flush=True)

    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Rank)
    print("listens on", server.server_address[1], flush=True)
    server.serve_forever()
"""
OVER_SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
"""What kubectl did before version 1.31."""


@pytest.fixture(scope="module")
def pod(kubectl: Kubectl) -> str:
    assert kubectl("apply", "-f", "-", stdin=plain_job("serving", RANK, nodes=1)).code == 0
    eventually("the pod to run", lambda: kubectl("wait", "pod", "--all", "--for=condition=Ready").code == 0)
    return kubectl("get", "pods", "-o", "jsonpath={.items[0].metadata.name}").out


@pytest.fixture(scope="module")
def port(kubectl: Kubectl, pod: str) -> str:
    eventually("the rank to listen", lambda: "listens on" in kubectl("logs", pod).out)
    return kubectl("logs", pod).out.split()[-1]


def piped(kubectl: Kubectl, data: bytes, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    done = subprocess.run(
        [kubectl.program, *arguments],
        input=data,
        stdout=subprocess.PIPE,
        env={**kubectl.environment(), **(env or {})},
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_command_runs_with_the_ranks_own_variables_and_its_exit_code_is_kubectls(kubectl: Kubectl, pod: str) -> None:
    done = kubectl("exec", pod, "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX; echo oh >&2; exit 3")
    assert (done.code, done.out) == (3, "0\n")
    assert done.err == "oh\ncommand terminated with exit code 3\n"


def test_what_cannot_be_run_is_said_in_one_line(kubectl: Kubectl, pod: str) -> None:
    missing = kubectl("exec", pod, "--", "no-such-program")
    assert missing.code == 1
    assert missing.err.endswith('exec: "no-such-program": executable file not found in $PATH\n')
    assert kubectl("exec", "nobody", "--", "true").err == 'Error from server (NotFound): pods "nobody" not found\n'
    assert "container nope is not valid for pod" in kubectl("exec", pod, "-c", "nope", "--", "true").err


@pytest.mark.parametrize("env", [{}, OVER_SPDY], ids=["websocket", "spdy"])
def test_fifty_megabytes_go_in_and_come_back(kubectl: Kubectl, pod: str, env: dict[str, str]) -> None:
    data = os.urandom(SIZE)
    assert piped(kubectl, data, "exec", "-i", pod, "--", "cat", env=env) == (0, data)


def test_a_command_that_stops_reading_ends_though_more_is_sent(kubectl: Kubectl, pod: str) -> None:
    code, out = piped(kubectl, os.urandom(SIZE), "exec", "-i", pod, "--", "sh", "-c", "head -c 5 >/dev/null; exit 7")
    assert (code, out) == (7, b"")


def test_a_terminal_has_a_size_and_takes_what_is_typed(kubectl: Kubectl, pod: str) -> None:
    command = [
        str(kubectl.program),
        "exec",
        "-it",
        pod,
        "--",
        "sh",
        "-c",
        "tty; stty size; read x; echo got $x; exit 5",
    ]
    with on_terminal(command, **kubectl.environment()) as terminal:
        terminal.wait_for("dev/pts")
        terminal.type("hello\n")
        terminal.wait_for("got hello")
        assert terminal.wait() == 5
    assert "50 160" in terminal.screen


def test_nothing_stays_of_a_command_whose_kubectl_was_killed(kubectl: Kubectl, pod: str) -> None:
    sleeping = "sh -c 'grep -alz ^12345$ /proc/[0-9]*/cmdline'"  # -z: the words of a command end with NUL
    process = subprocess.Popen(
        [kubectl.program, "exec", pod, "--", "sh", "-c", "echo up; sleep 12345; true"],
        stdout=subprocess.PIPE,
        env=kubectl.environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    eventually("the command to sleep", lambda: kubectl("exec", pod, "--", "sh", "-c", sleeping).out)
    process.kill()
    process.wait()
    process.stdout.close()
    eventually("the command to end", lambda: not kubectl("exec", pod, "--", "sh", "-c", sleeping).out)


def test_files_and_directories_are_copied_both_ways(kubectl: Kubectl, pod: str, tmp_path: Path) -> None:
    data = os.urandom(SIZE)
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "deep" / "file").write_bytes(data)
    there = tmp_path / "there"  # a pod has the machine's files
    assert kubectl("cp", str(tmp_path / "out"), f"{pod}:{there}").code == 0
    assert (there / "deep" / "file").read_bytes() == data
    assert kubectl("cp", f"{pod}:{there}/deep/file", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back").read_bytes() == data
    shutil.rmtree(there)


@pytest.fixture(params=[{}, OVER_SPDY], ids=["websocket", "spdy"])
def forwarded(request: pytest.FixtureRequest, kubectl: Kubectl, pod: str, port: str) -> Iterator[str]:
    """The address at which the rank's server is to be found."""
    process = subprocess.Popen(
        [kubectl.program, "port-forward", pod, f":{port}"],
        stdout=subprocess.PIPE,
        text=True,
        env={**kubectl.environment(), **request.param},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"127\.0\.0\.1:\d+", line)
    assert found is not None, line
    drain = threading.Thread(target=process.stdout.read)
    drain.start()
    yield found.group()
    process.terminate()
    process.wait()
    drain.join()
    process.stdout.close()


def ask_for(address: str, times: int) -> bytes:
    connection = HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", f"/{times}")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_server_in_a_rank_is_reached_by_many_at_once(forwarded: str) -> None:
    answers: list[bytes] = []

    def ask(times: int) -> None:
        answers.append(ask_for(forwarded, times))

    askers = [threading.Thread(target=ask, args=(size,)) for size in (0, 1, 10, 1000, 500_000, 500_000)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert sorted(len(answer) // len(b"I am rank 0") for answer in answers) == [1, 2, 11, 1001, 500_001, 500_001]
    assert all(set(answer.split(b"I am rank 0")) == {b""} for answer in answers)


def test_attach_shows_what_the_rank_writes_from_now_on(kubectl: Kubectl, pod: str, forwarded: str) -> None:
    asking = threading.Timer(1.0, ask_for, (forwarded, 0))
    asking.start()
    seen = kubectl.until(["attach", pod], "asked", seconds=20)
    asking.join()
    assert seen.code == 0, seen.text
    assert "listens on" not in seen.text


def test_a_port_where_nobody_listens_is_an_error_and_not_a_hang(kubectl: Kubectl, pod: str) -> None:
    process = subprocess.Popen(
        [kubectl.program, "port-forward", pod, ":1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=kubectl.environment(),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"127\.0\.0\.1:\d+", line)
    assert found is not None, line
    with pytest.raises((ConnectionError, HTTPException)):
        ask_for(found.group(), 0)
    said = process.communicate(timeout=20)[0]
    assert "error forwarding port 1 to pod" in said
    assert "Connection refused" in said


def test_who_may_only_get_pods_runs_nothing_in_them(kubectl: Kubectl, cluster: CommandLine, pod: str) -> None:
    role = ["create", "role", "reader", "--verb=get,list", "--resource=pods,pods/exec,pods/portforward"]
    assert kubectl(*role).code == 0
    assert kubectl("create", "rolebinding", "reader", "--role=reader", "--user=eve").code == 0
    refused = kubectl("--as=eve", "exec", pod, "--", "true")
    assert refused.code == 1
    assert 'User "eve" cannot create resource "pods/exec"' in refused.err
    assert kubectl("--as=eve", "get", "pod", pod).code == 0
