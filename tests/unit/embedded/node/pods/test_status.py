"""From a supervisor's record to a pod's status."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.node.kubelet import is_stored
from trainwright.embedded.node.pods.record import PodRecord
from trainwright.embedded.node.pods.status import Reporter, qos_class

POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}


def ended(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}


def record(state: dict[str, Any], *, done: bool = False, last: dict[str, Any] | None = None) -> PodRecord:
    container = {"state": state, "lastState": last or {}, "restartCount": 1 if last else 0, "ready": "running" in state}
    return {
        "uid": "u",
        "supervisor": [1, "1", "b"],
        "startedAt": "2026-01-01T00:00:00Z",
        "initContainers": {},
        "containers": {"c": container},  # type: ignore[dict-item]
        "done": done,
    }


def status(of: PodRecord, pod: dict[str, Any] = POD, now: str = "T1", *, lost: bool = False) -> dict[str, Any]:
    return Reporter("127.0.0.1").of_record(pod, of, "127.64.0.1", now, lost=lost)


def conditions(of: dict[str, Any]) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in of["conditions"]}


@pytest.mark.parametrize(
    ("of", "phase", "ready"),
    [
        (record(WAITING), "Pending", "False"),
        (record(RUNNING), "Running", "True"),
        (record(ended(0), done=True), "Succeeded", "False"),
        (record(ended(1), done=True), "Failed", "False"),
        (record(ended(1)), "Running", "False"),
        (record({"waiting": {"reason": "CrashLoopBackOff"}}, last=ended(1)), "Running", "False"),
        (record(WAITING, done=True), "Failed", "False"),
    ],
)
def test_phase_and_readiness_follow_from_the_record(of: PodRecord, phase: str, ready: str) -> None:
    made = status(of)
    assert (made["phase"], conditions(made)["Ready"], conditions(made)["ContainersReady"]) == (phase, ready, ready)
    assert (made["podIP"], made["hostIP"]) == ("127.64.0.1", "127.0.0.1")


def test_an_unchanged_pod_gives_an_unchanged_status() -> None:
    first = status(record(RUNNING), now="T1")
    assert status(record(RUNNING), {**POD, "status": first}, now="T2") == first


def test_what_a_server_adds_is_no_change_and_what_is_gone_is_one() -> None:
    wanted = {"conditions": [{"type": "Ready", "status": "True"}], "lastState": {}}
    stored = {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}], "lastState": {}, "other": 1}
    assert is_stored(wanted, stored)
    assert not is_stored(wanted, {**stored, "lastState": {"terminated": {"exitCode": 1}}})
    assert not is_stored({**wanted, "phase": "Running"}, stored)


def test_a_condition_that_turns_gets_a_new_time_and_others_keep_theirs() -> None:
    first = status(record(RUNNING), now="T1")
    later = status(record(ended(0), done=True), {**POD, "status": first}, now="T2")
    times = {condition["type"]: condition["lastTransitionTime"] for condition in later["conditions"]}
    assert (times["Ready"], times["Initialized"]) == ("T2", "T1")


def test_the_schedulers_condition_is_kept() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "T0"}
    assert scheduled in status(record(RUNNING), {**POD, "status": {"conditions": [scheduled]}})["conditions"]


def test_a_lost_supervisor_fails_the_pod_and_keeps_true_exit_codes() -> None:
    lost = status(record(RUNNING), lost=True, now="T9")
    terminated = lost["containerStatuses"][0]["state"]["terminated"]
    assert (lost["phase"], lost["reason"]) == ("Failed", "SupervisorLost")
    assert (terminated["exitCode"], terminated["reason"], terminated["finishedAt"]) == (
        137,
        "ContainerStatusUnknown",
        "T9",
    )
    known = status(record(ended(3)), lost=True)
    assert known["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}, "Burstable"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_follows_from_requests_and_limits(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"name": "c", "resources": resources}]}) == expected
