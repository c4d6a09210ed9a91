"""TrainJobs in the queues of a real Kueue: admitted in order, told why they wait, preempted and queued again.

By default it is 0.15.2, which speaks Trainer v2.1; `TRAINWRIGHT_KUEUE=0.19` meets 0.19.0, which writes runtimePatches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cluster import kueue
from cluster.gangs import check_privileges, until_said
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, USER, Installation
from kube.stories import TORCH, base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane, documents

VERSION = os.environ.get("TRAINWRIGHT_KUEUE", "0.15")
KUEUES_PATCH = "kueue.x-k8s.io/manager"
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
        for item in component():
            running.admin.create(f"{RBAC}/{item['kind'].lower()}s", item)
        with Installation(running, overlay="manager"):
            process = kueue.start(running, directory, VERSION)
            try:
                yield running
            finally:
                process.stop(grace=0)


def component() -> list[Json]:
    """What the component `kueue` grants beside the shipped role."""
    return list(documents((MANIFESTS / "components/kueue/cluster_role.yaml").read_text()))


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
    until_said(plane, here, 'Kueue\'s queue "main"', "quota", name="second")
    until_state(plane.admin, here, "Suspended", "second")
    assert pods_of(plane, here, "second") == []

    plane.admin.delete(f"{base(here)}/trainjobs/first")
    done = until_state(plane.admin, here, "Complete", "second")
    managers = [patch.get("manager") for patch in done["spec"]["runtimePatches"]]
    assert "example.com/user" in managers  # Kueue 0.15 would have dropped it (C2)
    assert (KUEUES_PATCH in managers) == (VERSION != "0.15"), "how Kueue places the pods"
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
    until_said(plane, here, "Kueue took its quota back (Preempted)", name="patient")
    plane.admin.until(
        f"/api/v1/namespaces/{here}/pods",
        lambda it: len((it or {})["items"]) == 2,
        what="only the pods of the urgent one",
        seconds=60,
    )

    plane.admin.delete(f"{base(here)}/trainjobs/urgent")
    until_state(plane.admin, here, "Running", "patient")
    assert plane.admin.get(f"{jobsets(here)}/patient")["metadata"]["uid"] == uid


def test_a_job_with_a_volume_of_its_own_is_evicted_and_comes_back_with_it(plane: RealControlPlane, here: str) -> None:
    """JobSet's claims made such a job impossible to suspend, and its resume deleted JobSet and claim (C1)."""
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
    before = uids(plane, here)
    queue = f"{kueue.API}/namespaces/{here}/localqueues/main"
    plane.admin.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    until_state(plane.admin, here, "Suspended", "holder")
    assert plane.admin.get(f"{jobsets(here)}/holder")["spec"]["suspend"] is True
    assert uids(plane, here) == before

    plane.admin.patch(queue, {"spec": {"stopPolicy": "None"}})
    plane.admin.until(
        f"{jobsets(here)}/holder", lambda it: it and not it["spec"].get("suspend"), what="admitted again", seconds=90
    )
    assert uids(plane, here) == before, "the same JobSet and the same volume"


def uids(plane: RealControlPlane, here: str) -> dict[str, str]:
    """The uids of JobSets and claims."""
    claims = plane.admin.items(f"/api/v1/namespaces/{here}/persistentvolumeclaims")
    found = {item["metadata"]["name"]: item["metadata"]["uid"] for item in (*plane.admin.items(jobsets(here)), *claims)}
    assert len(found) > 1
    return found


def test_a_queue_that_does_not_exist_is_named(plane: RealControlPlane, here: str) -> None:
    job = queued("lost", "complete")
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "nowhere"
    create(plane.admin, here, job)
    until_said(plane, here, 'Kueue\'s queue "nowhere" does not admit it', "kubectl get localqueues", name="lost")
    plane.admin.delete(f"{base(here)}/trainjobs/lost")


def test_a_job_that_multikueue_manages_is_left_alone(plane: RealControlPlane, here: str) -> None:
    """Kueue's MultiKueue sends it to another cluster; here nobody may build or report anything for it."""
    away = f"{base(here)}/trainjobs/away"
    create(plane.admin, here, queued("away", "complete", managedBy="kueue.x-k8s.io/multikueue"))
    plane.admin.until(away, lambda it: it and it["spec"]["suspend"] is False, what="admitted by Kueue", seconds=90)
    create(plane.admin, here, trainjob("mine", "it", "complete"))  # in no queue: when it is done, we have seen both
    until_state(plane.admin, here, "Complete", "mine")
    assert [item["metadata"]["name"] for item in plane.admin.items(jobsets(here))] == ["mine"]
    found = plane.admin.get(away)
    assert not found.get("status")
    assert "trainer" not in {entry["manager"] for entry in found["metadata"]["managedFields"]}
    plane.admin.delete(away)


def test_zz_nothing_was_forbidden_and_no_grant_of_the_component_is_unused(plane: RealControlPlane) -> None:
    check_privileges(plane, [item for item in component() if item["kind"] == "ClusterRole"])
