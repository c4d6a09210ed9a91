"""The next step that the kubelets of a plane without machines take with a pod."""

from __future__ import annotations

import pytest

from trainwright.schema.jsonobject import Json
from trainwright.testing.kubelets import next_step, outcome_of, status_after
from trainwright.testing.nodes import OUTCOME_ANNOTATION, OUTCOME_VARIABLE


def pod(phase: str = "Pending", *, bound: bool = True, outcome: str = "", **metadata: object) -> Json:
    env = [{"name": OUTCOME_VARIABLE, "value": outcome}] if outcome else []
    spec: Json = {"containers": [{"name": "node", "image": "none", "env": env}]}
    return {
        "metadata": {"name": "p", **metadata},
        "spec": {**spec, "nodeName": "node-0"} if bound else spec,
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("given", "step"),
    [
        (pod(bound=False), None),
        (pod(), "run"),
        (pod(outcome="pending"), None),
        (pod("Running"), "complete"),
        (pod("Running", outcome="fail"), "fail"),
        (pod("Running", outcome="hang"), None),
        (pod("Running", outcome="hang", deletionTimestamp="2026-01-01T00:00:00Z"), "delete"),
        (pod("Succeeded"), None),
        (pod("Failed", outcome="fail"), None),
    ],
)
def test_a_pod_goes_the_way_it_asks_for(given: Json, step: str | None) -> None:
    assert next_step(given) == step


def test_an_annotation_counts_more_than_a_variable() -> None:
    assert outcome_of(pod(outcome="fail", annotations={OUTCOME_ANNOTATION: "hang"})) == "hang"


@pytest.mark.parametrize(("step", "phase", "code"), [("complete", "Succeeded", 0), ("fail", "Failed", 1)])
def test_a_pod_ends_with_its_exit_code(step: str, phase: str, code: int) -> None:
    status = status_after(pod("Running"), step)
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


def test_a_running_pod_is_ready() -> None:
    status = status_after(pod(), "run")
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"
    assert status["containerStatuses"][0]["ready"] is True
