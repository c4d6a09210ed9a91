"""Taking a cluster over from a real Kubeflow Trainer, and giving it back, with the documented commands.

Jobs run, wait, have ended and have failed while the operators change. No JobSet is created anew and no pod restarted:
the uid and the generation of everything that a TrainJob owns are compared. `make test-cluster` meets v2.3.0;
TRAINWRIGHT_REFERENCES=2.1,2.2 (`make test-long`) meets the older ones.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.reference import Reference
from cluster.test_release import WEBHOOKS, trainwright
from kube.conftest import BuiltPrograms
from kube.installation import ACCOUNT, NAMESPACE, USER, Installation
from kube.stories import TORCH, base, jobsets, runtime, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import CRDS, RealControlPlane
from trainwright.testing.nodes import OUTCOME_ANNOTATION, OUTCOME_VARIABLE
from trainwright.testing.oracle import conditions, has_condition
from waiting import eventually

VERSIONS = os.environ.get("TRAINWRIGHT_REFERENCES", "2.3").split(",")
SECONDS = 120.0
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
SELECTOR = {"kubernetes.io/hostname": "node-1"}

Children = dict[str, tuple[str, Any]]


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def plane(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp(f"takeover-{version}")) as running:
        yield running


class Ours(Installation):
    """Installed and uninstalled by the command; then its webhooks are called by URL."""

    def __init__(self, plane: RealControlPlane) -> None:
        super().__init__(plane, overlay="manager", lease_seconds=10)

    def install(self) -> None:
        trainwright(self.plane, "install", "--take-over", "--yes")
        for collection in (WEBHOOKS.rpartition("/")[0], WEBHOOKS.rpartition("/")[0].replace("mutating", "validating")):
            for hook in self.plane.admin.items(collection):
                if not hook["metadata"]["name"].endswith(".trainer.kubeflow.org"):
                    continue
                for webhook in hook["webhooks"]:
                    path = webhook["clientConfig"].pop("service")["path"]
                    webhook["clientConfig"]["url"] = f"https://127.0.0.1:{self.webhook_port}{path}"
                self.plane.admin.replace(f"{collection}/{hook['metadata']['name']}", hook)
        self.kubeconfig = self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    def uninstall(self) -> None:
        said = trainwright(self.plane, "uninstall", "--yes")
        assert "stay, and so do the CRDs" in said


def mpi_runtime() -> Json:
    """A launcher and nodes that stay until they are deleted."""
    hang = {"annotations": {OUTCOME_ANNOTATION: "hang"}}
    pod = {"metadata": hang, "spec": {"containers": [{"name": "node", "image": "none"}]}}
    parts = [
        {"name": "launcher", "template": {"metadata": {"labels": STEP}, "spec": {"template": pod}}},
        {"name": "node", "template": {"spec": {"template": pod}}},
    ]
    policy = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", "numProcPerNode": 1}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "mpi"},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": parts}}},
    }


def job(name: str, outcome: str = "hang", *, from_: str = "torch-distributed", **spec: object) -> Json:
    kind = "ClusterTrainingRuntime" if from_ == "torch-distributed" else "TrainingRuntime"
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": from_, "kind": kind},
            "trainer": {"numNodes": 2, "env": [{"name": OUTCOME_VARIABLE, "value": outcome}]},
            **spec,
        },
    }


def on_one_node(version: str) -> Json:
    """The same wish in the words of that version: its pods go to node-1."""
    if version == "2.1":
        return {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": SELECTOR}}]}
    node = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": SELECTOR}}}}}
    patch = {"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}}}
    return {"runtimePatches": [patch]}


def is_suspended(item: Json) -> bool:
    return bool((item.get("spec") or {}).get("suspend"))


def without_our_annotations(value: Any) -> Any:
    if isinstance(value, list):
        return [without_our_annotations(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_our_annotations(each) for key, each in value.items() if not key.startswith("trainwright.dev/")}
    if not kept.get("annotations", True):
        del kept["annotations"]
    return kept


class Cluster:
    """What people see and do in one namespace, whoever operates it."""

    def __init__(self, plane: RealControlPlane) -> None:
        self.plane, self.admin, self.here = plane, plane.admin, plane.namespace("users")

    def create(self, item: Json) -> None:
        plural = "trainjobs" if item["kind"] == "TrainJob" else "trainingruntimes"
        self.admin.create(f"{base(self.here)}/{plural}", item)

    def job(self, name: str) -> Json:
        return self.admin.get(f"{base(self.here)}/trainjobs/{name}")

    def pods(self, name: str) -> list[Json]:
        labels = f"jobset.sigs.k8s.io/jobset-name={name}"
        return self.admin.items(f"/api/v1/namespaces/{self.here}/pods", labelSelector=labels)

    def until_running(self, name: str, pods: int = 2) -> None:
        def running() -> bool:
            return [pod["status"]["phase"] for pod in self.pods(name)] == ["Running"] * pods

        eventually(f"{pods} pods of {name} run", running, SECONDS)

    def until_has(self, name: str, condition: str) -> None:
        eventually(f"{name} is {condition}", lambda: has_condition(self.job(name), condition), SECONDS)

    def suspend(self, name: str, value: bool = True) -> None:
        self.admin.patch(f"{base(self.here)}/trainjobs/{name}", {"spec": {"suspend": value}})

    def until_at_rest(self, name: str) -> None:
        eventually(f"{name} has no pods", lambda: not self.pods(name), SECONDS)

    def end(self, name: str) -> None:
        """Its pods succeed, as KWOK would let them."""
        for pod in self.pods(name):
            path = f"/api/v1/namespaces/{self.here}/pods/{pod['metadata']['name']}/status"
            self.admin.patch(path, {"status": {"phase": "Succeeded"}})

    def jobset(self, name: str) -> str:
        uid: str = self.admin.get(f"{jobsets(self.here)}/{name}")["metadata"]["uid"]
        return uid

    def children(self) -> Children:
        """Everything that belongs to a TrainJob, and what its pods belong to: uid and generation of each. A suspended
        JobSet has its spec in place of the generation: our annotations on its pods to come are no change of them.
        """
        own = f"/api/v1/namespaces/{self.here}"
        collections = (
            jobsets(self.here),
            f"/apis/batch/v1/namespaces/{self.here}/jobs",
            *(f"{own}/{plural}" for plural in ("pods", "secrets", "configmaps", "services")),
        )
        return {
            f"{path.rpartition('/')[2]}/{item['metadata']['name']}": (
                item["metadata"]["uid"],
                without_our_annotations(item["spec"]) if is_suspended(item) else item["metadata"].get("generation"),
            )
            for path in collections
            for item in self.admin.items(path)
            if item["metadata"].get("ownerReferences")
        }

    def ends(self) -> dict[str, Json]:
        """How each finished job ended."""
        return {
            item["metadata"]["name"]: condition
            for item in self.admin.items(f"{base(self.here)}/trainjobs")
            for condition in conditions(item)
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        }


def people_work(cluster: Cluster, version: str) -> None:
    """Jobs of every state, made while Kubeflow Trainer serves the cluster."""
    cluster.create(mpi_runtime())
    cluster.create(job("running"))
    cluster.create(job("ending"))
    cluster.create(job("patched", **on_one_node(version)))
    cluster.create(job("mpi", from_="mpi"))
    cluster.create(job("suspended", suspend=True))
    cluster.create(job("waiting", suspend=True, **on_one_node(version)))
    cluster.create(job("complete", "complete"))
    cluster.create(runtime("once", TORCH))  # fails at once, where a Job's default is six more tries
    cluster.create(job("failed", "fail", from_="once"))
    for name in ("running", "ending", "patched"):
        cluster.until_running(name)
    cluster.until_running("mpi", 3)
    for name, condition in (
        ("suspended", "Suspended"),
        ("waiting", "Suspended"),
        ("complete", "Complete"),
        ("failed", "Failed"),
    ):
        cluster.until_has(name, condition)


def of(children: Children, *names: str) -> Children:
    """Those of these jobs; a child's name begins with its job's."""
    return {
        key: value
        for key, value in children.items()
        if any(key.partition("/")[2] == name or key.partition("/")[2].startswith(f"{name}-") for name in names)
    }


def test_takes_over_and_gives_back(plane: RealControlPlane, version: str, tmp_path: Path) -> None:
    begin = plane.audit_position()
    with Reference(plane, tmp_path / "reference", version):
        cluster = Cluster(plane)
        people_work(cluster, version)
    before, ended = cluster.children(), cluster.ends()
    assert len(before) > 30
    said = trainwright(plane, "upgrade-check")
    assert told(said) == [("changes", "mpi")], said
    assert "when it is next suspended, its JobSet is replaced once no pod of it is left" in said

    with Ours(plane):
        cluster.create(job("new", "complete"))
        until_state(plane.admin, cluster.here, "Complete", "new")
        states = {"running": "Running", "ending": "Running", "patched": "Running", "mpi": "Running"}
        states |= {"suspended": "Suspended", "waiting": "Suspended", "complete": "Complete", "failed": "Failed"}
        for name, state in states.items():
            until_state(plane.admin, cluster.here, state, name)
        after = cluster.children()
        assert of(after, *states) == before
        assert {name: end for name, end in cluster.ends().items() if name != "new"} == ended

        they_are_served(cluster, before)
        cluster.create(job("ours"))
        cluster.create(job("ours-waiting", suspend=True))
        cluster.until_running("ours")
        until_state(plane.admin, cluster.here, "Suspended", "ours-waiting")
        before, ended = cluster.children(), cluster.ends()
        cluster.create(job("older", suspend=True, **on_one_node("2.1")))
        until_state(plane.admin, cluster.here, "Suspended", "older")
        cannot_go_back(trainwright(plane, "upgrade-check"), version)
    refused = [it for it in requests(plane.audit_events(begin), user=USER, agent="trainwright") if it.code == 403]
    assert refused == []

    with Reference(plane, tmp_path / "again", version):
        cluster.create(job("newer", "complete"))
        cluster.until_has("newer", "Complete")
        after = cluster.children()  # with snapshots of the runtime, which the reference adds
        assert {key: after.get(key) for key in before} == before
        assert {name: end for name, end in cluster.ends().items() if name != "newer"} == ended

        jobset = cluster.jobset("ours")
        cluster.suspend("ours")
        cluster.until_at_rest("ours")
        cluster.suspend("ours", False)
        cluster.until_running("ours")
        cluster.suspend("ours-waiting", False)
        cluster.until_running("ours-waiting")
        cluster.end("ours")
        cluster.until_has("ours", "Complete")
        assert cluster.jobset("ours") == jobset
        it_was_told(cluster, version)


def test_over_a_helm_release_it_is_refused_with_steps_that_lose_nothing(version: str, tmp_path: Path) -> None:
    """C3. Helm's later `uninstall` of Kubeflow Trainer would delete the CRDs, and with them every TrainJob. Others'
    releases are not touched.
    """
    with RealControlPlane(BuiltPrograms(), tmp_path / "plane") as plane:
        with Reference(plane, tmp_path / "reference", version, release="trainer"):
            cluster = Cluster(plane)
            cluster.create(job("running"))
            cluster.until_running("running")
        before = cluster.children()
        marks = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "elsewhere"}
        other = {
            "metadata": {"name": "other", "annotations": marks, "labels": {"app.kubernetes.io/managed-by": "Helm"}}
        }
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        plane.admin.create(roles, other)

        refused = trainwright(plane, "install", "--take-over", "--yes", code=1)
        assert "belongs to the Helm release trainer in namespace kubeflow-system" in refused
        kubectl = str(plane.programs.program("kubectl"))
        steps = [line.split() for line in refused.splitlines() if line.startswith("  kubectl ")]
        assert len(steps) > 8
        for step in steps:
            flags = ["--kubeconfig", str(plane.admin_kubeconfig)]
            done = subprocess.run([kubectl, *step[1:], *flags], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, (step, done.stderr)

        with Ours(plane):
            cluster.create(job("new", "complete"))
            until_state(plane.admin, cluster.here, "Complete", "new")
            until_state(plane.admin, cluster.here, "Running", "running")
            assert of(cluster.children(), "running") == before
            assert plane.admin.get(f"{roles}/other")["metadata"]["annotations"] == marks
            release = plane.admin.find(f"/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.trainer.v1")
            assert release is None

        said = trainwright(plane, "uninstall", "--delete-crds", "--yes")
        assert "With the CRDs go 2 TrainJobs, 1 of them unfinished" in said
        eventually("the CRDs are gone", lambda: not crds_of_ours(plane), SECONDS)
        eventually("so are the pods", lambda: not cluster.pods("running"), SECONDS)


def crds_of_ours(plane: RealControlPlane) -> list[str]:
    names = [item["metadata"]["name"] for item in plane.admin.items(CRDS)]
    return [name for name in names if name.endswith(".trainer.kubeflow.org")]


def told(said: str) -> list[tuple[str, str]]:
    """Effect and name of each TrainJob that `upgrade-check` tells of, in its order."""
    return re.findall(r"^  (\w+) +TrainJob users-\w+/([\w-]+):", said, re.MULTILINE)


def cannot_go_back(said: str, version: str) -> None:
    assert "With this version nothing changes" in said
    overrides = ["older", *(("patched", "waiting") if version == "2.1" else ())]
    assert sorted(told(said)) == sorted([("breaks", name) for name in (*overrides, "mpi")]), said
    assert re.search(r"stays +\d+ ControllerRevisions: stay and are used by nobody", said)


def it_was_told(cluster: Cluster, version: str) -> None:
    """C7: what `upgrade-check` said cannot go back is so."""
    cluster.suspend("mpi")
    cluster.until_has("mpi", "Suspended")
    assert [pod["status"]["phase"] for pod in cluster.pods("mpi")] == ["Running"] * 3
    if version != "2.1":
        cluster.suspend("older", False)
        cluster.until_running("older")
        assert "podTemplateOverrides" not in cluster.job("older")["spec"]
        [node] = cluster.admin.get(f"{jobsets(cluster.here)}/older")["spec"]["replicatedJobs"]
        assert "nodeSelector" not in node["template"]["spec"]["template"]["spec"]  # JobSet leaves it on the Job it made


def they_are_served(cluster: Cluster, before: Children) -> None:
    """The operator does for the jobs that it found what it does for its own."""
    cluster.end("ending")
    until_state(cluster.admin, cluster.here, "Complete", "ending")
    for name, pods in (("suspended", 2), ("waiting", 2)):
        cluster.suspend(name, False)
        cluster.until_running(name, pods)
        assert cluster.jobset(name) == before[f"jobsets/{name}"][0]
    assert {pod["spec"]["nodeName"] for pod in cluster.pods("waiting")} == {"node-1"}
    for name, pods in (("running", 2), ("patched", 2), ("mpi", 3)):
        cluster.suspend(name)
        cluster.until_at_rest(name)
        until_state(cluster.admin, cluster.here, "Suspended", name)
        cluster.suspend(name, False)
        cluster.until_running(name, pods)
    for name in ("running", "patched"):
        assert cluster.jobset(name) == before[f"jobsets/{name}"][0]
    # Ours has variables for Open MPI 5 too: JobSet lets nobody add them, so the one at rest was replaced.
    assert cluster.jobset("mpi") != before["jobsets/mpi"][0]
    assert {pod["spec"]["nodeName"] for pod in cluster.pods("patched")} == {"node-1"}
