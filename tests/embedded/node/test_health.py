"""Probes, hooks, restarts and sidecars with real supervisors and processes."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from embedded.node.machine import Machine, isolations, terminated
from trainwright.embedded.node.pods.record import ContainerRecord, Isolation, PodDirectory

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if os.path.exists(sys.argv[2] + self.path) else 200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def probe(handler: Any, **changes: Any) -> Any:
    defaults = {"initialDelaySeconds": 0, "periodSeconds": 0.2, "timeoutSeconds": 1, "successThreshold": 1}
    return {"handler": handler, "failureThreshold": 1, **defaults, **changes}


def http(port: int, path: str) -> Any:
    return {"http": {"host": "127.0.0.1", "port": port, "path": path, "scheme": "HTTP", "headers": []}}


def container(directory: PodDirectory, name: str = "c0") -> ContainerRecord:
    record = directory.record()
    assert record is not None
    return {**record["initContainers"], **record["containers"]}[name]


def told(directory: PodDirectory) -> dict[str, str]:
    record = directory.record()
    assert record is not None
    return {happening["message"]: happening["reason"] for happening in record.get("happenings", [])}


async def test_a_container_is_ready_while_its_probe_succeeds(machine: Machine, tmp_path: Path, port: int) -> None:
    extra = {"c0": {"probes": {"readiness": probe(http(port, "/sick"))}}}
    command = [sys.executable, "-S", "-c", SERVER, str(port), str(tmp_path)]
    directory = await machine.start(command, extra=extra)
    assert not container(directory)["ready"]
    await machine.until(lambda: container(directory)["ready"])
    (tmp_path / "sick").touch()
    await machine.until(lambda: not container(directory)["ready"])
    assert container(directory)["started"] is True
    assert told(directory)["Readiness probe failed: HTTP probe failed with statuscode: 500"] == "Unhealthy"
    (tmp_path / "sick").unlink()
    await machine.until(lambda: container(directory)["ready"])
    assert "running" in container(directory)["state"], "readiness ends nothing"


async def test_a_container_that_is_not_alive_is_restarted(machine: Machine, tmp_path: Path, port: int) -> None:
    extra = {"c0": {"probes": {"liveness": probe(http(port, "/sick"), initialDelaySeconds=0.5, periodSeconds=0.5)}}}
    command = [sys.executable, "-S", "-c", SERVER, str(port), str(tmp_path)]
    directory = await machine.start(command, extra=extra, policy="Always")
    await machine.until(lambda: container(directory)["ready"])
    (tmp_path / "sick").touch()
    await machine.until(lambda: container(directory)["restartCount"] == 1)
    (tmp_path / "sick").unlink()
    assert container(directory)["lastState"]["terminated"]["exitCode"] == 143
    assert told(directory)["Container c0 failed liveness probe, will be restarted"] == "Killing"


async def test_a_liveness_probe_waits_for_the_startup_probe_whose_failure_ends_the_container(
    machine: Machine, port: int
) -> None:
    tcp = {"tcp": {"host": "127.0.0.1", "port": port}}
    probes = {"startup": probe(tcp, failureThreshold=3, terminationGracePeriodSeconds=0), "liveness": probe(tcp)}
    directory = await machine.start(["sh", "-c", "trap '' TERM; sleep 600"], extra={"c0": {"probes": probes}})
    assert not container(directory)["started"]
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 137, "the probe's own grace period"
    messages = told(directory)
    refused = f"Startup probe failed: dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert set(messages) == {refused, "Container c0 failed startup probe, will be restarted"}


async def test_a_probe_that_takes_too_long_has_failed(machine: Machine) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        handler = http(silent.getsockname()[1], "/")
        extra = {"c0": {"probes": {"liveness": probe(handler, timeoutSeconds=0.3)}}}
        record = await machine.done(await machine.start(["sleep", "600"], extra=extra))
    assert terminated(record)["exitCode"] == 143
    assert any("context deadline exceeded" in happening["message"] for happening in record["happenings"])


async def test_a_sidecar_runs_beside_the_containers_and_ends_after_them(machine: Machine) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    directory = await machine.start(
        ["sh", "-c", "sleep 0.3; exit 3"],
        init=[["sh", "-c", script], ["sh", "-c", "echo after"]],
        extra={"init0": {"restartPolicy": "Always"}},
    )
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 3
    assert await machine.output(directory, "init0") == b"up\nbye\n"
    assert await machine.output(directory, "init1") == b"after\n"
    assert record["initContainers"]["init0"]["state"]["terminated"]["exitCode"] == 0


async def test_containers_wait_for_a_sidecars_startup_probe(machine: Machine, tmp_path: Path, port: int) -> None:
    tcp = {"tcp": {"host": "127.0.0.1", "port": port}}
    sidecar = {"restartPolicy": "Always", "probes": {"startup": probe(tcp, failureThreshold=100)}}
    late = ["sh", "-c", f"sleep 0.5; exec {sys.executable} -S -c '{SERVER}' {port} {tmp_path}"]
    connect = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('met')"
    directory = await machine.start([sys.executable, "-S", "-c", connect], init=[late], extra={"init0": sidecar})
    await machine.done(directory)
    assert await machine.output(directory) == b"met\n"


async def test_a_sidecar_that_ends_is_started_again_and_its_exit_code_does_not_count(machine: Machine) -> None:
    directory = await machine.start(
        ["sh", "-c", "while [ ! -e ../again ]; do sleep 0.05; done"],
        init=[["sh", "-c", "mkdir ../once && exit 1; touch ../again; sleep 600"]],
        extra={"init0": {"restartPolicy": "Always"}},
    )
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 0
    assert record["initContainers"]["init0"]["restartCount"] == 1


async def test_an_init_container_that_fails_takes_the_sidecars_with_it(machine: Machine) -> None:
    directory = await machine.start(
        ["true"],
        init=[["sleep", "600"], ["sh", "-c", "exit 5"]],
        extra={"init0": {"restartPolicy": "Always"}},
    )
    record = await machine.done(directory)
    assert record["initContainers"]["init1"]["state"]["terminated"]["exitCode"] == 5
    assert "waiting" in record["containers"]["c0"]["state"]


async def test_one_container_is_restarted_by_a_rule_of_its_own(machine: Machine) -> None:
    rules = {"restartPolicy": "Never", "restartOnExitCodes": [("In", [42])]}
    directory = await machine.start(["sh", "-c", "mkdir once && exit 42; exit 7"], extra={"c0": rules})
    record = await machine.done(directory)
    assert (terminated(record)["exitCode"], record["containers"]["c0"]["restartCount"]) == (7, 1)


@pytest.mark.parametrize("isolation", isolations()[-1:])
async def test_a_hook_before_the_end_comes_before_sigterm(
    machine: Machine, isolation: Isolation, tmp_path: Path, port: int
) -> None:
    program = SERVER.replace("self.send_response(", "print(self.path, flush=True); self.send_response(")
    command = [sys.executable, "-S", "-c", program, str(port), str(tmp_path)]
    hooks = {"postStart": {"sleep": 0.3}, "preStop": http(port, "/drain")}
    directory = await machine.start(command, extra={"c0": hooks}, isolation=isolation)
    assert not container(directory)["started"], "the postStart hook is not done"
    await machine.until(lambda: container(directory)["ready"])
    await machine.until(lambda: _listens(port))
    await machine.directories.terminate(directory, 20)
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 143
    assert b"/drain\n" in await machine.output(directory)


async def test_a_hook_that_never_ends_ends_with_the_grace_period(machine: Machine) -> None:
    directory = await machine.start(["sleep", "600"], extra={"c0": {"preStop": {"sleep": 600}}})
    await machine.until(lambda: "running" in container(directory)["state"])
    await machine.directories.terminate(directory, 0.5)
    record = await machine.done(directory)
    assert terminated(record)["exitCode"] == 143, "SIGTERM still comes"
    assert any(happening["reason"] == "FailedPreStopHook" for happening in record["happenings"])


async def test_a_container_whose_hook_after_the_start_fails_is_ended(machine: Machine, port: int) -> None:
    extra = {"c0": {"postStart": http(port, "/")}}
    record = await machine.done(await machine.start(["sleep", "600"], extra=extra))
    assert terminated(record)["exitCode"] == 143
    assert "FailedPostStartHook" in {happening["reason"] for happening in record["happenings"]}


@pytest.mark.parametrize("isolation", isolations())
async def test_commands_of_probes_and_hooks_run_inside_the_container(machine: Machine, isolation: Isolation) -> None:
    spec = {
        "probes": {"readiness": probe({"exec": ["sh", "-c", "test -e ../started || { echo no; exit 1; }"]})},
        "postStart": {"exec": ["sh", "-c", "hostname > hook; sleep 0.3"]},
        "preStop": {"exec": ["sh", "-c", "touch drained"]},
    }
    script = "trap 'test -e drained && exit 5' TERM; while :; do sleep 0.02; done"
    directory = await machine.start(["sh", "-c", script], extra={"c0": spec}, isolation=isolation)
    await machine.until(lambda: "Readiness probe failed: no" in told(directory))
    assert not container(directory)["ready"]
    (directory.path / "started").touch()
    await machine.until(lambda: container(directory)["ready"])
    here = "pod-0" if isolation["mount"] else os.uname().nodename
    assert (directory.work / "hook").read_text().strip() == here
    await machine.directories.terminate(directory, 20)
    assert terminated(await machine.done(directory))["exitCode"] == 5


async def test_a_command_of_a_probe_that_takes_too_long_is_killed(machine: Machine) -> None:
    slow = probe({"exec": ["sh", "-c", "sleep 600"]}, timeoutSeconds=0.3)
    record = await machine.done(await machine.start(["sleep", "600"], extra={"c0": {"probes": {"liveness": slow}}}))
    assert terminated(record)["exitCode"] == 143
    assert any("timed out after 0.3s" in happening["message"] for happening in record["happenings"])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
