"""Why a job waits or fails on a real cluster: `why` and the operator's status name the cause that only a cluster has.

Everything is said by the real programs (kube-scheduler, the Job controller's events, admission), but for what a
kubelet, Kueue or Volcano would write: there are none, so the test writes it in their place.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commandline import COMMAND
from kube.installation import Installation
from kube.stories import TORCH, base, create, runtime, trainjob
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.processes import free_port
from waiting import eventually

SECONDS = 90.0


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane) as running:
        yield running


class Here:
    """A namespace, and `trainwright why` in it."""

    def __init__(self, plane: RealControlPlane, records: Path, labels: dict[str, str] | None = None) -> None:
        self.plane = plane
        self.namespace = plane.namespace("why", labels)
        self._records = records

    def start(self, job: Json, **pod: Any) -> None:
        """Creates a TrainJob whose pods have these fields in their spec."""
        body = runtime("it", TORCH)
        spec = body["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        spec.update(pod)
        create(self.plane.admin, self.namespace, body, job)

    def why(self, name: str = "job") -> Json:
        where = ["--kubeconfig", str(self.plane.admin_kubeconfig), "--dir", str(self._records), "-n", self.namespace]
        done = subprocess.run(
            [*COMMAND, "why", name, *where, "-o", "json"],
            env={**os.environ, "KUBECONFIG": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        told: Json = json.loads(done.stdout)
        return told

    def until(self, code: str) -> Json:
        """What `why` says, once it has found this cause."""
        seen: list[str] = []

        def look() -> Json | None:
            told = self.why()
            seen.append(f"{told['code']}: {told['headline']}")
            return told if told["code"] == code else None

        try:
            return eventually(f"why finds {code}", look, SECONDS)
        except AssertionError:
            raise AssertionError(f"{code} is not found; last seen: {seen[-1]}") from None

    def message(self) -> str:
        job = self.plane.admin.get(f"{base(self.namespace)}/trainjobs/job")
        return str((job.get("status") or {}).get("message") or "")

    def until_said(self, told: Json) -> None:
        """Until the operator has said the same in the job's status."""
        sentence = f"{told['headline']}. {told['mend']}"
        eventually(f"status.message is {sentence}", lambda: self.message() == sentence, SECONDS)

    def pods(self, count: int = 2) -> list[Json]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return eventually(
            "the pods are there",
            lambda: found if len(found := self.plane.admin.items(path)) == count else None,
            SECONDS,
        )

    def set_status(self, pod: Json, status: Json) -> None:
        name = pod["metadata"]["name"]
        self.plane.admin.patch(f"/api/v1/namespaces/{self.namespace}/pods/{name}/status", {"status": status})


@pytest.fixture
def here(plane: RealControlPlane, installed: Installation, tmp_path: Path) -> Here:
    return Here(plane, tmp_path)


def asking(**requests: str) -> Json:
    job = trainjob("job", "it", "hang")
    job["spec"]["trainer"]["resourcesPerNode"] = {"requests": requests}
    return job


def test_too_little_cpu_in_the_schedulers_words(here: Here) -> None:
    here.start(asking(cpu="99999"))
    told = here.until("TooLittleCpu")
    assert "Insufficient cpu" in told["headline"]
    assert "for 99999 cpu" in told["headline"]
    here.until_said(told)


def test_a_gpu_that_no_node_has(here: Here) -> None:
    job = asking()
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"amd.com/gpu": "1"}}
    here.start(job)
    told = here.until("NoGpu")
    here.until_said(told)


def test_no_node_with_the_labels(here: Here) -> None:
    here.start(asking(), nodeSelector={"zone": "nowhere"})
    here.until_said(here.until("NoMatchingNode"))


def test_a_claim_that_is_missing_then_unbound(here: Here) -> None:
    here.start(asking(), volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    told = here.until("ClaimMissing")
    assert told["chain"][-1] == {
        "kind": "PersistentVolumeClaim",
        "name": "data",
        "says": told["headline"],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "nobody",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    here.plane.admin.create(f"/api/v1/namespaces/{here.namespace}/persistentvolumeclaims", claim)
    here.until_said(here.until("ClaimUnbound"))


def test_an_image_that_cannot_be_pulled(here: Here) -> None:
    here.start(trainjob("job", "it", "pending"))
    pods = here.pods()
    eventually("they have nodes", lambda: all(_node(here, pod) for pod in pods), SECONDS)
    for pod in pods:
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "none"'}
        state = {"name": "node", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
        here.set_status(pod, {"containerStatuses": [{**state, "state": {"waiting": waiting}}]})
    told = here.until("ImagePull")
    assert "image none cannot be pulled" in told["headline"]
    here.until_said(told)


def _node(here: Here, pod: Json) -> str:
    path = f"/api/v1/namespaces/{here.namespace}/pods/{pod['metadata']['name']}"
    return str(here.plane.admin.get(path)["spec"].get("nodeName") or "")


def test_a_node_that_was_lost(here: Here) -> None:
    here.start(trainjob("job", "it", "hang"))
    pods = here.pods()
    eventually("it runs", lambda: _phase(here, pods[0]) == "Running", SECONDS)
    gone = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    here.set_status(pods[0], {"phase": "Failed", "conditions": [gone]})
    told = here.until("NodeLost")
    assert "was taken away from node" in told["headline"]
    here.until_said(told)


def _phase(here: Here, pod: Json) -> str:
    path = f"/api/v1/namespaces/{here.namespace}/pods/{pod['metadata']['name']}"
    return str(here.plane.admin.get(path)["status"].get("phase") or "")


def test_a_limit_range_refuses_the_pods(here: Here) -> None:
    limits = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
    here.plane.admin.create(f"/api/v1/namespaces/{here.namespace}/limitranges", limits)
    job = trainjob("job", "it", "hang")
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"cpu": "4"}}
    here.start(job)
    told = here.until("LimitRangeRefused")
    assert [link["kind"] for link in told["chain"]][-1] == "Job"


def test_a_quota_that_is_used_up(here: Here) -> None:
    path = f"/api/v1/namespaces/{here.namespace}/resourcequotas"
    here.plane.admin.create(path, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    status = {"hard": {"pods": "0"}, "used": {"pods": "0"}}  # as the quota controller writes it
    here.plane.admin.patch(f"{path}/none/status", {"status": status})
    here.start(trainjob("job", "it", "hang"))
    assert "exceeded quota: none" in here.until("QuotaExceeded")["headline"]
    eventually("the operator says where to look", lambda: "trainwright why job" in here.message(), SECONDS)


def test_a_namespace_that_refuses_privileged_pods(
    plane: RealControlPlane, installed: Installation, tmp_path: Path
) -> None:
    strict = Here(plane, tmp_path, {"pod-security.kubernetes.io/enforce": "restricted"})
    strict.start(trainjob("job", "it", "hang"))
    strict.until("PodSecurityRefused")


def test_a_webhook_that_is_away(here: Here) -> None:
    name = f"away-{here.namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "away.example.com",
        "rules": [rule],
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}},
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    here.plane.admin.create(hooks, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        here.start(trainjob("job", "it", "hang"))
        assert "away.example.com" in here.until("WebhookAway")["headline"]
    finally:
        here.plane.admin.delete(f"{hooks}/{name}")


def test_a_gang_that_volcano_holds_back(here: Here) -> None:
    body = runtime("it", TORCH, podGroupPolicy={"volcano": {}})
    create(here.plane.admin, here.namespace, body, trainjob("job", "it", "pending"))
    group = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{here.namespace}/podgroups/job"
    eventually("its PodGroup is there", lambda: here.plane.admin.find(group), SECONDS)
    unfit = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable",
        "transitionID": "1",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    here.plane.admin.patch(group, {"status": {"phase": "Inqueue", "conditions": [unfit]}})
    assert "2/2 tasks in gang unschedulable" in here.until("GangWaits")["headline"]


KUEUE = "kueue.x-k8s.io"


@pytest.fixture
def kueue(plane: RealControlPlane) -> Iterator[None]:
    """Kueue's Workloads, without Kueue."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "workloads", "singular": "workload", "kind": "Workload"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"workloads.{KUEUE}"},
        "spec": {"group": KUEUE, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    plane.install_crds([crd])
    yield
    plane.admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workloads.{KUEUE}")


def test_a_job_that_kueue_holds_back(here: Here, kueue: None) -> None:
    job = trainjob("job", "it", "hang", suspend=True)
    job["metadata"]["labels"] = {f"{KUEUE}/queue-name": "team"}
    here.start(job)
    uid = here.plane.admin.get(f"{base(here.namespace)}/trainjobs/job")["metadata"]["uid"]
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "job", "uid": uid}
    short = "couldn't assign flavors to pod set node: insufficient unused quota for cpu, 2 more needed"
    reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": short}
    workload = {
        "apiVersion": f"{KUEUE}/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "trainjob-job", "ownerReferences": [owner]},
        "spec": {"queueName": "team"},
        "status": {"conditions": [reserved]},
    }
    here.plane.admin.create(f"/apis/{KUEUE}/v1beta1/namespaces/{here.namespace}/workloads", workload)
    assert short in here.until("KueueQuota")["headline"]
