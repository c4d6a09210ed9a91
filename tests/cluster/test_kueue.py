"""TrainJobs in the queues of a real Kueue 0.15.2: admitted in order, told why they wait, preempted and queued again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster import kueue
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, USER, Installation
from kube.stories import TORCH, base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane, documents

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATCH = {
    "manager": "example.com/user",
    "trainingRuntimeSpec": {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {"spec": {"template": {"metadata": {"annotations": {"example.com/mine": "yes"}}}}},
                    }
                ]
            }
        }
    },
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    directory = tmp_path_factory.mktemp("kueue")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane")) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        running.admin.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {"pool": "training"}}})
        for item in documents((MANIFESTS / "components/kueue/cluster_role.yaml").read_text()):
            running.admin.create(f"{RBAC}/{item['kind'].lower()}s", item)
        with Installation(running, overlay="manager"):
            process = kueue.start(running, directory)
            try:
                yield running
            finally:
                process.stop(grace=0)


@pytest.fixture
def here(plane: RealControlPlane) -> Iterator[str]:
    """A namespace with a queue of two CPUs. Afterwards: nothing that our operator asked for was forbidden."""
    begin = plane.audit_position()
    namespace = plane.namespace()
    kueue.queue(plane, namespace, cpus=2)
    create(plane.admin, namespace, one_cpu_each())
    yield namespace
    mine = requests(plane.audit_events(begin), user=USER)
    assert mine
    assert [str(request) for request in mine if request.code in (401, 403)] == []


def one_cpu_each() -> Json:
    made = runtime("it", {**TORCH, "numNodes": 2})
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


def queued(name: str, outcome: str, *, priority: str = "", **spec: object) -> Json:
    job = trainjob(name, "it", outcome, **spec)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    if priority:
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority
    return job


def message_with(plane: RealControlPlane, here: str, name: str, words: str) -> Json:
    def says(job: Json | None) -> bool:
        return words in ((job or {}).get("status") or {}).get("message", "")

    found = plane.admin.until(f"{base(here)}/trainjobs/{name}", says, what=f"a message with {words!r}", seconds=90)
    assert found is not None
    return found


def pods_of(plane: RealControlPlane, here: str, name: str) -> list[Json]:
    label = f"jobset.sigs.k8s.io/jobset-name={name}"
    return plane.admin.items(f"/api/v1/namespaces/{here}/pods", labelSelector=label)


def test_one_runs_and_the_next_waits_and_says_why(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, queued("first", "hang"))
    until_state(plane.admin, here, "Running", "first")
    for pod in pods_of(plane, here, "first"):
        assert pod["spec"]["nodeSelector"] == {"pool": "training"}  # the flavor's
        assert pod["spec"]["nodeName"] == "node-0"

    create(plane.admin, here, queued("second", "complete", runtimePatches=[PATCH]))
    waiting = message_with(plane, here, "second", "quota")
    assert waiting["status"]["state"] == "Suspended"
    assert pods_of(plane, here, "second") == []

    plane.admin.delete(f"{base(here)}/trainjobs/first")
    done = until_state(plane.admin, here, "Complete", "second")
    managers = [patch.get("manager") for patch in done["spec"]["runtimePatches"]]
    assert "example.com/user" in managers  # Kueue 0.15 would have dropped it
    jobset = plane.admin.get(f"{jobsets(here)}/second")
    (node,) = jobset["spec"]["replicatedJobs"]
    template = node["template"]["spec"]["template"]
    assert template["metadata"]["annotations"]["example.com/mine"] == "yes"
    assert template["spec"]["nodeSelector"] == {"pool": "training"}


def test_a_job_of_higher_priority_takes_its_place_and_it_comes_back(plane: RealControlPlane, here: str) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        body = {"kind": "WorkloadPriorityClass", "apiVersion": "kueue.x-k8s.io/v1beta1", "value": value}
        plane.admin.create(f"{kueue.API}/workloadpriorityclasses", {**body, "metadata": {"name": name}})
    create(plane.admin, here, queued("patient", "hang", priority="low"))
    until_state(plane.admin, here, "Running", "patient")
    uid = plane.admin.get(f"{jobsets(here)}/patient")["metadata"]["uid"]

    create(plane.admin, here, queued("urgent", "hang", priority="high"))
    until_state(plane.admin, here, "Running", "urgent")
    until_state(plane.admin, here, "Suspended", "patient")
    plane.admin.until(
        f"/api/v1/namespaces/{here}/pods",
        lambda it: len((it or {})["items"]) == 2,
        what="only the pods of the urgent one",
        seconds=60,
    )

    plane.admin.delete(f"{base(here)}/trainjobs/urgent")
    until_state(plane.admin, here, "Running", "patient")
    assert plane.admin.get(f"{jobsets(here)}/patient")["metadata"]["uid"] == uid


def test_a_job_with_a_volume_of_its_own_is_preempted_too(plane: RealControlPlane, here: str) -> None:
    """JobSet's claims made such a job impossible to suspend."""
    with_claim = one_cpu_each()
    with_claim["metadata"]["name"] = "claims"
    spec = with_claim["spec"]["template"]["spec"]
    claim = {
        "metadata": {"name": "scratch"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }
    spec["volumeClaimPolicies"] = [{"templates": [claim]}]
    (container,) = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    create(plane.admin, here, with_claim)
    job = queued("holder", "pending")
    job["spec"]["runtimeRef"]["name"] = "claims"
    create(plane.admin, here, job)
    plane.admin.until(
        f"{jobsets(here)}/holder", lambda it: it and not it["spec"].get("suspend"), what="admitted", seconds=60
    )
    uid = plane.admin.get(f"{jobsets(here)}/holder")["metadata"]["uid"]
    plane.admin.patch(f"{kueue.API}/namespaces/{here}/localqueues/main", {"spec": {"stopPolicy": "HoldAndDrain"}})
    until_state(plane.admin, here, "Suspended", "holder")
    jobset = plane.admin.get(f"{jobsets(here)}/holder")
    assert (jobset["metadata"]["uid"], jobset["spec"]["suspend"]) == (uid, True)
