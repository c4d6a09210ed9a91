"""Elastic jobs on a real Kubernetes: kubectl and the autoscaler of Kubernetes change the nodes of a running job.

JobSet v0.12 is as it is shipped, with its gate ElasticJobSet off. What it does: its webhook refuses another number in
its template, and its controller leaves the Job alone that it made; so the operator scales that Job.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kube.conftest import BuiltPrograms
from kube.installation import Installation
from kube.stories import base, create, jobsets, runtime, trainjob, until_state
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.autoscaler.decision import Seen, decide
from trainwright.embedded.workloads.autoscaler.limits import Memory
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.embeddedplane import EmbeddedControlPlane
from trainwright.testing.processes import free_port
from waiting import eventually

SECONDS = 90.0
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
}


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane) as running:
        yield running


@pytest.fixture
def here(plane: RealControlPlane, installed: Installation) -> str:
    return plane.namespace("elastic")


def elastic(**policy: object) -> Json:
    return runtime("it", {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4, "maxRestarts": 2, **policy}}})


def pods(plane: RealControlPlane, namespace: str) -> dict[str, str]:
    """The uid of every live pod, by completion index."""
    return {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: pod["metadata"]["uid"]
        for pod in plane.admin.items(f"/api/v1/namespaces/{namespace}/pods")
        if not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") != "Failed"
    }


def elastic_status(plane: RealControlPlane, namespace: str) -> Json:
    status: Json = plane.admin.get(f"{base(namespace)}/trainjobs/job").get("status") or {}
    return status.get("elastic") or {}


def until_nodes(plane: RealControlPlane, namespace: str, nodes: int) -> dict[str, str]:
    def are_there() -> bool:
        elastic = elastic_status(plane, namespace)
        counts = {elastic.get(name) for name in ("wantedNodes", "nodes", "readyNodes")}
        return counts == {nodes} and len(pods(plane, namespace)) == nodes

    eventually(f"{nodes} nodes are ready", are_there, SECONDS)
    return pods(plane, namespace)


def until_healthy(plane: RealControlPlane, namespace: str) -> None:
    """JobSet sees one Job that runs, has restarted nothing and has no end."""

    def is_healthy() -> bool:
        status = plane.admin.get(f"{jobsets(namespace)}/job").get("status") or {}
        [entry] = status.get("replicatedJobsStatus") or [{}]
        ended = any(
            it["status"] == "True" for it in status.get("conditions") or () if it["type"] != "StartupPolicyCompleted"
        )
        return entry.get("ready") == 1 and not entry.get("failed") and not status.get("restarts") and not ended

    eventually("JobSet sees its Job ready", is_healthy, SECONDS)


def test_kubectl_scales_a_running_job(
    plane: RealControlPlane, programs: BuiltPrograms, here: str, tmp_path: Path
) -> None:
    def kubectl(*arguments: str, code: int = 0) -> str:
        command = [str(programs.program("kubectl")), "--kubeconfig", str(plane.admin_kubeconfig), "-n", here]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    body = elastic()
    (tmp_path / "runtime.json").write_text(json.dumps(body))
    assert "Warning" not in kubectl("create", "-f", str(tmp_path / "runtime.json"))
    job = trainjob("job", "it", "hang")
    del job["spec"]["trainer"]["numNodes"]
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert "Warning" not in kubectl("create", "-f", str(tmp_path / "job.json"))
    first = until_nodes(plane, here, 2)
    assert plane.admin.get(f"{base(here)}/trainjobs/job")["spec"]["trainer"]["numNodes"] == 2, "the fewest"
    kubectl("scale", "trainjob/job", "--replicas=4")
    grown = until_nodes(plane, here, 4)
    assert {index: grown[index] for index in first} == first, "nobody was restarted"
    until_healthy(plane, here)
    kubectl("scale", "trainjob/job", "--replicas=3", "--current-replicas=4")
    shrunk = until_nodes(plane, here, 3)
    assert shrunk == {index: grown[index] for index in ("0", "1", "2")}, "the last one left"
    until_healthy(plane, here)
    refused = kubectl("scale", "trainjob/job", "--replicas=1", code=1)
    assert "no fewer nodes than status.elastic.minNodes" in refused
    assert "field is immutable" in kubectl(
        "patch", "trainjob/job", "--type=merge", "-p", '{"spec":{"trainer":{"image":"other"}}}', code=1
    )
    template = plane.admin.get(f"{jobsets(here)}/job")["spec"]["replicatedJobs"][0]["template"]["spec"]
    if not isinstance(plane, EmbeddedControlPlane):
        assert template["parallelism"] == 2, "JobSet let nobody change its template"
    state = until_state(plane.admin, here, "Running")
    assert state["status"]["message"] == "training on 3 nodes (between 2 and 4)"


def test_a_lost_node_is_replaced_and_the_others_go_on(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, elastic(), trainjob("job", "it", "hang"))
    before = until_nodes(plane, here, 2)
    [name] = [
        pod["metadata"]["name"]
        for pod in plane.admin.items(f"/api/v1/namespaces/{here}/pods")
        if pod["metadata"]["uid"] == before["1"]
    ]
    failed = {"phase": "Failed", "containerStatuses": [], "conditions": []}
    plane.admin.patch(f"/api/v1/namespaces/{here}/pods/{name}/status", {"status": failed})
    eventually("another pod has its index", lambda: pods(plane, here).get("1") not in (None, before["1"]), SECONDS)
    eventually("both are ready", lambda: elastic_status(plane, here).get("readyNodes") == 2, SECONDS)
    assert pods(plane, here)["0"] == before["0"]
    until_healthy(plane, here)


METRICS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "pods.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a metrics API for tests"},
    },
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "pods", "kind": "PodMetrics", "singular": "podmetrics", "listKind": "PodMetricsList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""What metrics-server serves, filled by the test."""


@pytest.fixture
def autoscaler(plane: RealControlPlane) -> Iterator[None]:
    """kube-controller-manager's HorizontalPodAutoscaler controller, which looks every second."""
    if isinstance(plane, EmbeddedControlPlane):
        pytest.skip("the local autoscaler goes by what processes use, and these pods have none")
    plane.install_crds([METRICS])
    part = plane._part(
        "autoscaler",
        f"--kubeconfig={plane.admin_kubeconfig}",
        "--controllers=horizontal-pod-autoscaler-controller",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-downscale-stabilization=1s",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        program="kube-controller-manager",
    )
    try:
        yield
    finally:
        part.stop()
        plane.parts.pop("autoscaler", None)
        plane.admin.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pods.metrics.k8s.io")


def measure(plane: RealControlPlane, namespace: str, memory: str) -> None:
    """Every pod uses so much."""
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
    for pod in plane.admin.items(f"/api/v1/namespaces/{namespace}/pods"):
        name = pod["metadata"]["name"]
        body = {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {"name": name, "labels": pod["metadata"]["labels"]},
            "timestamp": rfc3339(time.time()),
            "window": "1s",
            "containers": [{"name": "node", "usage": {"memory": memory, "cpu": "100m"}}],
        }
        plane.admin.delete_if_there(f"{path}/{name}")
        plane.admin.create(path, body)


@pytest.mark.usefixtures("autoscaler")
def test_the_autoscaler_of_kubernetes_changes_the_nodes(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, elastic(metrics=[MEMORY]), trainjob("job", "it", "hang"))
    first = until_nodes(plane, here, 2)
    scaler = plane.admin.get(f"/apis/autoscaling/v2/namespaces/{here}/horizontalpodautoscalers/job")
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 4)
    measure(plane, here, "150Mi")
    grown = until_nodes(plane, here, 3)
    assert {index: grown[index] for index in first} == first
    measure(plane, here, "10Mi")
    assert until_nodes(plane, here, 2) == first
    until_healthy(plane, here)


def resource(name: str, **target: object) -> Json:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


SITUATIONS: list[tuple[Json, str | None]] = [
    (resource("memory", type="AverageValue", averageValue="100Mi"), None),
    (resource("memory", type="AverageValue", averageValue="100Mi"), "104Mi"),
    (resource("memory", type="AverageValue", averageValue="100M"), "95Mi"),
    (resource("memory", type="AverageValue", averageValue="100Mi"), "900Mi"),
    (resource("memory", type="AverageValue", averageValue="1Gi"), "1Mi"),
    (resource("cpu", type="Utilization", averageUtilization=50), "1Mi"),
    (resource("cpu", type="AverageValue", averageValue="95m"), "1Mi"),
]
"""A metric, and what each pod uses of memory; nobody measures where that is None. Each uses 100m of CPU."""


@pytest.mark.usefixtures("autoscaler")
def test_our_autoscaler_says_what_the_one_of_kubernetes_says(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, elastic(), trainjob("job", "it", "hang"))
    until_nodes(plane, here, 2)
    path = f"/apis/autoscaling/v2/namespaces/{here}/horizontalpodautoscalers"
    target = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job"}
    for number, (metric, memory) in enumerate(SITUATIONS):
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": [metric]}
        plane.admin.create(path, {"metadata": {"name": f"it-{number}"}, "spec": spec})
        rest = at_rest(plane, here, f"{path}/it-{number}", memory)
        assert rest["ours"] == rest["theirs"], f"{metric}, {memory}"
        plane.admin.delete(f"{path}/it-{number}")


def at_rest(plane: RealControlPlane, namespace: str, path: str, memory: str | None) -> dict[str, Json]:
    """What both say once the number of nodes has not changed for three looks."""
    quiet, before = 0, (0, "")
    end = time.monotonic() + SECONDS
    while quiet < 3:
        assert time.monotonic() < end, f"never at rest: {plane.admin.get(path)}"
        if memory is not None:
            measure(plane, namespace, memory)
        time.sleep(1.2)  # the real one looks every second
        scaler, scale = plane.admin.get(path), plane.admin.get(f"{base(namespace)}/trainjobs/job/scale")
        replicas, conditions = scale["spec"]["replicas"], scaler["status"].get("conditions") or []
        present = len(pods(plane, namespace)) == replicas == scale["status"]["replicas"]
        state = (replicas, json.dumps(shown(scaler["status"])))
        quiet = quiet + 1 if present and conditions and state == before else 0
        before = state
    listed = plane.admin.items(f"/api/v1/namespaces/{namespace}/pods")
    metrics = plane.admin.items(f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods") if memory else []
    seen = Seen(replicas, [msgspec.convert(pod, ApiObject) for pod in listed], metrics)
    # A fresh one, as after kube-controller-manager's second without a higher recommendation.
    fresh = msgspec.convert({**scaler, "status": {}}, ApiObject)
    now = time.time()
    begun = Memory().begun(1, now - 1000)
    return {"ours": shown(decide(fresh, seen, begun, now).status), "theirs": shown(scaler["status"])}


def shown(status: Json) -> Json:
    """What a status says, without times and in any order. Of several pods, which one a message names is chance."""
    conditions = {
        it["type"]: (it["status"], it["reason"], re.sub(r" of Pod \S+", " of Pod …", it["message"]))
        for it in status.get("conditions") or ()
    }
    counts = {name: status.get(name) or 0 for name in ("currentReplicas", "desiredReplicas")}
    return {**counts, "metrics": status.get("currentMetrics") or [], "conditions": conditions}
