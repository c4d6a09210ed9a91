"""The API server cannot be reached for a minute: refused connections, or a name that is not resolved (F5).

For the client both are `Unreachable`. Meanwhile the operator tries at most once a second or so in all, and it goes on
within five seconds of the server's return, with whatever was done meanwhile. In virtual time, from ten seconds to ten
minutes; and, with `TRAINWRIGHT_OUTAGE_SECONDS` (60 in `make test-long`), with a real server, connection and name.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver_process import ApiServerProcess
from trainwright.api.resources import JOB_SETS, NAMESPACES, TRAIN_JOBS
from trainwright.client.requests import Request
from trainwright.testing.faults import NoServer, Respond, Rule
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.plans.stage import Stage
from trainwright.testing.plans.workloads import Player, cluster_runtime, train_job
from trainwright.testing.rest import Rest
from waiting import eventually

SECONDS = float(os.environ.get("TRAINWRIGHT_OUTAGE_SECONDS", "0"))
RECOVERED_WITHIN = 5.0
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"


class Away(Rule):
    """Nobody is there while `is_away`."""

    def __init__(self) -> None:
        super().__init__(NoServer())
        self.is_away = False

    def hits(self, request: Request) -> bool:
        self.seen += self.is_away
        return self.is_away


class Unread(Rule):
    """A kube-apiserver that has just started forbids everything until it has read its roles."""

    def __init__(self) -> None:
        super().__init__(Respond(403, "cannot watch"))
        self.is_on = False

    def hits(self, request: Request) -> bool:
        return self.is_on


@pytest.mark.parametrize("seconds", [10.0, 60.0, 600.0])
@pytest.mark.parametrize("unread_seconds", [0.0, 1.5])
async def test_the_operator_goes_on_within_seconds_of_the_servers_return(seconds: float, unread_seconds: float) -> None:
    away, unread = Away(), Unread()
    stage = Stage()
    await stage.begin((), [away, unread])
    async with stage:
        player = Player(stage)
        await player.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        await stage.start_operators()
        await player.start("hang-first", cluster_runtime(torch={}))
        await player.until_state("Running", "hang-first")
        away.is_away = True
        stage.replicas[0].view.break_streams(expired=False)
        await player.create(TRAIN_JOBS, train_job("meanwhile"))
        await stage.wait(seconds)
        assert player.find(JOB_SETS, "meanwhile") is None
        tried = away.seen
        away.is_away, unread.is_on = False, bool(unread_seconds)
        await stage.wait(unread_seconds)
        unread.is_on = False
        returned = stage.clock.now()
        await stage.until("the job's JobSet", lambda: player.find(JOB_SETS, "meanwhile") is not None)
        took = stage.clock.now() - returned
        print(f"{seconds:.0f} s away: {tried} attempts, at work {took:.1f} s after its return")
        assert took <= RECOVERED_WITHIN
        assert tried <= 20 + seconds  # each kind notices once, then it is one a second at most
        await player.until_state("Complete", "meanwhile")


class Names:
    """Resolves names as long as `is_up`."""

    def __init__(self) -> None:
        self.is_up = True
        self.failures = 0
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, *others: Any, **options: Any) -> Any:
        if host == "localhost" and not self.is_up:
            self.failures += 1
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._real(host, *others, **options)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    return made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerProcess]:
    process = ApiServerProcess(tmp_path / "state")
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.skipif(not SECONDS, reason="a count of make test-long")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["refused", "unknown name"])
def test_a_real_server_comes_back(server: ApiServerProcess, names: Names, tmp_path: Path, how: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text((server.directory / "kubeconfig").read_text().replace("127.0.0.1", "localhost"))
    rest = Rest.from_kubeconfig(server.directory / "kubeconfig", tmp_path / "scratch")
    runtime = {**cluster_runtime(torch={}), "apiVersion": TRAINER[6:], "kind": "ClusterTrainingRuntime"}
    rest.create(f"{TRAINER}/clustertrainingruntimes", runtime)
    with OperatorInThread(kubeconfig) as operator:
        made(rest, "before")
        names.is_up = how == "refused"
        server.kill()  # the connections that there are need no name
        if how == "unknown name":
            server.start()
        begun = len(operator.transport.asked)
        time.sleep(SECONDS)
        tried = len(operator.transport.asked) - begun
        if how == "refused":
            server.start()
        assert names.is_up or names.failures
        names.is_up = True
        returned = time.monotonic()
        made(rest, "after")
        took = time.monotonic() - returned
        print(f"{how} for {SECONDS:.0f} s: {tried} attempts, at work {took:.1f} s after its return")
        assert tried <= 20 + SECONDS


def made(rest: Rest, name: str) -> None:
    """Create a TrainJob, and wait for its JobSet."""
    job = {**train_job(name, suspend=True), "apiVersion": TRAINER[6:], "kind": "TrainJob"}
    eventually(
        "the server takes it", lambda: rest.raw("POST", f"{TRAINER}/namespaces/default/trainjobs", job)[0] == 201
    )
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/{name}"
    eventually("its JobSet", lambda: rest.find(path), 60)
