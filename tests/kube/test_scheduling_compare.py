"""Our scheduler's decision beside kube-scheduler's, on the same objects: who is placed, and why others wait.

The real scheduler works on the real server; our decision is asked about what is stored there. A pod that it places must
have gone to a node that we accept. `TRAINWRIGHT_SITUATIONS` sets how many seeded situations there are, and hypothesis
makes a tenth more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kube.conftest import BuiltPrograms
from kube.situations import Situation, situation
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.embedded.workloads.scheduler import fit, placing
from trainwright.embedded.workloads.scheduler.cluster import Cluster, requests
from trainwright.embedded.workloads.scheduler.decision import decide
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.rest import Rest

COUNT = int(os.environ.get("TRAINWRIGHT_SITUATIONS", "30"))
PODS = "/api/v1/namespaces/default/pods"
SECONDS = 20.0

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def scheduler(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    without = ("ServiceAccount", "TaintNodesByCondition")
    directory = tmp_path_factory.mktemp("scheduler")
    with RealControlPlane(programs, directory, with_parts=("kube-scheduler",), without_admission=without) as plane:
        yield plane.admin


def test_situations_end_as_with_kube_scheduler(scheduler: Rest) -> None:
    differ = {}
    for seed in range(COUNT):
        answer = play(scheduler, situation(seed))
        if answer is not None:
            differ[seed] = answer
    assert differ == {}


@settings(
    max_examples=max(COUNT // 10, 1),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(st.integers(10_000, 2**31))
def test_so_do_situations_that_nobody_thought_of(scheduler: Rest, seed: int) -> None:
    assert play(scheduler, situation(seed)) is None


def play(rest: Rest, given: Situation) -> tuple[str, str] | None:
    """(ours, theirs) where they differ in the end."""
    for node in given.nodes:
        status = {**node["status"], "capacity": node["status"]["allocatable"], "conditions": [READY]}
        rest.create("/api/v1/nodes", {"metadata": node["metadata"], "spec": node["spec"]})
        rest.patch(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": status})
    for pod in [*given.there, given.pod]:
        rest.create(PODS, pod)
    try:
        return compare(rest, given.pod["metadata"]["name"])
    finally:
        for pod in [*given.there, given.pod]:
            rest.raw("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        for node in given.nodes:
            rest.delete(f"/api/v1/nodes/{node['metadata']['name']}")


READY = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}


def compare(rest: Rest, name: str) -> tuple[str, str] | None:
    end = time.monotonic() + SECONDS
    while True:
        answer = look(rest, name)
        if answer is None or time.monotonic() > end:
            return answer
        time.sleep(0.1)


def look(rest: Rest, name: str) -> tuple[str, str] | None:
    nodes = [read(item) for item in rest.items("/api/v1/nodes")]
    pods = [read(item) for item in rest.items(PODS)]
    subject = next(pod for pod in pods if pod.name == name)
    there = [(pod.spec["nodeName"], pod) for pod in pods if pod is not subject and pod.spec.get("nodeName")]
    placed = subject.spec.get("nodeName")
    if placed:
        state = Cluster.of(nodes, there)
        against = fit.against(subject, requests(subject), state.nodes[placed])
        around = placing.neighbourhood(subject, state)
        reason = around.reason_against(state.nodes[placed]) if around is not None else None
        return (f"{against} {reason}", f"placed on {placed}") if against or reason else None
    told = find_condition(subject.status.get("conditions") or (), "PodScheduled") or {}
    theirs = f"{told.get('reason')}: {told.get('message')}"
    plan = decide([subject], Cluster.of(nodes, there))
    if plan.bind:
        return f"placed on {plan.bind[0][1]}", theirs
    ours = f"{plan.waiting[0].reason}: {plan.waiting[0].message}"
    return (ours, theirs) if ours != theirs else None


def read(item: Json) -> ApiObject:
    return msgspec.convert(item, ApiObject)
