"""When a probe is tried, and what its outcomes mean, in time that the test passes in."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.node.pods.record import ProbeToRun
from trainwright.embedded.node.podspec.environment import Unresolved
from trainwright.embedded.node.podspec.handlers import hook, probes
from trainwright.embedded.node.supervision.probes import Kind, Probe


def probe(kind: Kind, **changes: Any) -> Probe:
    spec: dict[str, Any] = {
        "handler": {"exec": ["true"]},
        "initialDelaySeconds": 0,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    typed: ProbeToRun = {**spec, **changes}  # type: ignore[typeddict-item]
    made = Probe(kind, typed)
    made.begin(100.0)
    return made


def test_a_container_is_not_ready_before_its_probe_succeeds_and_alive_before_it_fails() -> None:
    assert not probe("readiness").passes
    assert not probe("startup").passes
    assert probe("liveness").passes


def test_the_first_attempt_waits_for_the_initial_delay_and_the_next_for_the_period() -> None:
    slow = probe("liveness", initialDelaySeconds=30)
    assert not slow.is_due(129.0)
    assert slow.is_due(130.0)
    slow.tried(True, 130.0)
    assert slow.next_at == 140.0


def test_liveness_fails_after_as_many_failures_in_a_row_as_the_threshold() -> None:
    alive = probe("liveness")
    for outcome, at in [(False, 100), (False, 110), (True, 120), (False, 130), (False, 140)]:
        alive.tried(outcome, float(at))
    assert alive.passes
    alive.tried(False, 150.0)
    assert alive.has_failed
    assert not alive.is_due(1000.0), "until the container runs anew"
    alive.begin(200.0)
    assert alive.passes
    assert not alive.has_failed


def test_readiness_comes_and_goes() -> None:
    ready = probe("readiness", successThreshold=2, failureThreshold=2)
    seen = []
    for outcome, at in [(True, 100), (True, 110), (False, 120), (True, 130), (False, 140), (False, 150), (True, 160)]:
        ready.tried(outcome, float(at))
        seen.append(ready.passes)
    assert seen == [False, True, True, True, True, False, False]
    assert not ready.has_failed


def test_a_server_that_listens_late_is_found_before_the_next_period() -> None:
    ready = probe("readiness", handler={"tcp": {"host": "h", "port": 1}})
    assert ready.tried(False, 100.0), "counts"
    times = []
    while ready.next_at < 110.0:
        times.append(ready.next_at)
        assert not ready.tried(False, ready.next_at), "does not count"
    assert times[:4] == pytest.approx([100.2, 100.6, 101.4, 102.4])
    assert ready.tried(False, 110.0), "counts"
    ready.tried(True, 110.2)
    assert ready.passes
    assert ready.next_at == 120.0


def test_early_attempts_do_not_use_up_a_startup_probes_failures() -> None:
    start = probe("startup", handler={"tcp": {"host": "h", "port": 1}}, failureThreshold=2)
    while start.next_at < 110.0:
        start.tried(False, start.next_at)
    assert not start.has_failed
    start.tried(False, 110.0)
    assert start.has_failed


def test_a_probe_is_resolved_to_the_pods_address_and_the_jobs_ports() -> None:
    container = {
        "name": "c",
        "ports": [{"name": "web", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"port": "web", "path": "/healthz"}, "periodSeconds": None},
        "livenessProbe": {"tcpSocket": {"port": 29500, "host": None}, "terminationGracePeriodSeconds": 0},
    }
    found = probes(container, "127.64.0.7", lambda port: {29500: 40001}.get(port, port))
    assert found["readiness"]["handler"] == {
        "http": {"host": "127.64.0.7", "port": 8080, "path": "/healthz", "scheme": "HTTP", "headers": []}
    }
    assert (found["readiness"]["periodSeconds"], found["readiness"]["failureThreshold"]) == (10, 3)
    assert found["liveness"]["handler"] == {"tcp": {"host": "127.64.0.7", "port": 40001}}
    assert found["liveness"]["terminationGracePeriodSeconds"] == 0
    assert hook({"name": "c", "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}, "preStop", "", int) == {"sleep": 3}
    with pytest.raises(Unresolved, match="container c has no port named nope"):
        probes({"name": "c", "readinessProbe": {"tcpSocket": {"port": "nope"}}}, "127.64.0.7", int)
