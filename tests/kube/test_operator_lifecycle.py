"""TrainJobs from their creation to their end on a real Kubernetes, operated with nothing but the shipped roles."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import pytest

from kube.installation import NAMESPACE, USER, Installation, refusal
from kube.stories import MPI, TORCH, base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.rest import Refused
from waiting import eventually

MANY = int(os.environ.get("TRAINWRIGHT_NAMESPACE_JOBS", "5"))
MPI_NODES = {**MPI, "mpi": {**MPI["mpi"], "runLauncherAsNode": False}}


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane) as running:
        yield running


@pytest.fixture
def here(plane: RealControlPlane, installed: Installation) -> str:
    return plane.namespace("life")


def job_path(namespace: str, name: str = "job") -> str:
    return f"{base(namespace)}/trainjobs/{name}"


def job_set_path(namespace: str, name: str = "job") -> str:
    return f"{jobsets(namespace)}/{name}"


def with_launcher(body: Json) -> Json:
    """An MPI runtime: the launcher beside its nodes."""
    [node] = body["spec"]["template"]["spec"]["replicatedJobs"]
    pod = {"spec": {"containers": [{"name": "node", "image": "none"}]}}
    node["template"]["metadata"] = {}
    launcher = {
        "name": "launcher",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": pod},
        },
    }
    body["spec"]["template"]["spec"]["replicatedJobs"] = [launcher, node]
    body["spec"]["template"]["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    return body


RUNTIMES = {
    "plain": lambda: runtime("it", {"numNodes": 1}),
    "torch": lambda: runtime("it", TORCH),
    "jax": lambda: runtime("it", {"numNodes": 1, "jax": {}}),
    "xgboost": lambda: runtime("it", {"numNodes": 1, "xgboost": {}}),
    "flux": lambda: runtime("it", {"numNodes": 1, "flux": {}}),
    "mpi": lambda: with_launcher(runtime("it", MPI)),
    "coscheduling": lambda: runtime("it", TORCH, podGroupPolicy={"coscheduling": {}}),
    "volcano": lambda: runtime("it", TORCH, podGroupPolicy={"volcano": {}}),
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_job_of_every_plugins_runtime_completes(plane: RealControlPlane, here: str, name: str) -> None:
    create(plane.admin, here, RUNTIMES[name](), trainjob("job", "it"))
    job = until_state(plane.admin, here, "Complete")
    job_set = plane.admin.get(job_set_path(here))
    assert job_set["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert (
        job["status"]["runtimeRevision"] == job_set["metadata"]["annotations"]["trainer.kubeflow.org/runtime-revision"]
    )
    assert any(entry["succeeded"] for entry in job["status"]["jobsStatus"])


@pytest.mark.parametrize("name", ["plain", "torch", "jax", "xgboost", "coscheduling", "volcano"])
def test_a_job_from_its_creation_to_its_end_costs_no_read(plane: RealControlPlane, here: str, name: str) -> None:
    create(plane.admin, here, RUNTIMES[name](), trainjob("first", "it"))
    until_state(plane.admin, here, "Complete", "first")  # the operator's stores know the runtime by now
    began = plane.audit_position()
    create(plane.admin, here, trainjob("job", "it"))
    until_state(plane.admin, here, "Complete")
    sent = [it for it in requests(plane.audit_events(began), user=USER, namespace=here) if "first" not in it.name]
    looks = [str(request) for request in sent if request.verb in ("get", "list")]
    assert [look for look in looks if not look.startswith("get configmaps ")] == []  # it looks before it adopts data
    writes = [request.full_resource for request in sent if request.is_write and request.full_resource != "events"]
    assert writes.count("jobsets") == 1
    assert writes.count("trainjobs/status") <= 3, writes


@pytest.mark.parametrize(
    ("name", "group"), [("coscheduling", "scheduling.x-k8s.io/v1alpha1"), ("volcano", "scheduling.volcano.sh/v1beta1")]
)
def test_a_pod_group_that_is_deleted_beside_a_running_job_comes_back(
    plane: RealControlPlane, here: str, name: str, group: str
) -> None:
    create(plane.admin, here, RUNTIMES[name](), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    path = f"/apis/{group}/namespaces/{here}/podgroups/job"
    first = plane.admin.get(path)["metadata"]["uid"]
    plane.admin.delete(path)
    plane.admin.until(path, lambda found: found and found["metadata"]["uid"] != first, what="a new one")


def test_a_job_of_a_cluster_runtime_completes_and_the_runtime_is_guarded_meanwhile(
    plane: RealControlPlane, here: str
) -> None:
    body = runtime(f"cluster-{here}", TORCH)
    body["kind"] = "ClusterTrainingRuntime"
    runtimes = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
    plane.admin.create(runtimes, body)
    job = trainjob("job", f"cluster-{here}", "hang")
    job["spec"]["runtimeRef"]["kind"] = "ClusterTrainingRuntime"
    create(plane.admin, here, job)
    until_state(plane.admin, here, "Running")
    path = f"{runtimes}/cluster-{here}"
    plane.admin.until(path, _is_guarded, what="guarded")
    plane.admin.delete(job_path(here))
    plane.admin.until(path, lambda found: not _is_guarded(found), what="free again")
    plane.admin.delete(path)


def test_a_job_whose_pods_fail_fails_with_jobsets_words(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "fail"))
    job = until_state(plane.admin, here, "Failed")
    [failed] = [condition for condition in job["status"]["conditions"] if condition["type"] == "Failed"]
    [theirs] = [c for c in plane.admin.get(job_set_path(here))["status"]["conditions"] if c["type"] == "Failed"]
    assert (failed["reason"], failed["message"]) == (theirs["reason"], theirs["message"])


def node_patch(host: str, manager: str = "example.com/queue") -> list[Json]:
    node = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": host}}}}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": node}]}}
    return [{"manager": manager, "trainingRuntimeSpec": {"template": template}}]


def node_selector(job_set: Json) -> object:
    pod = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod.get("nodeSelector")


def test_a_suspended_job_is_patched_and_resumed_in_two_writes(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", suspend=True))
    until_state(plane.admin, here, "Suspended")
    plane.admin.patch(job_path(here), {"spec": {"runtimePatches": node_patch("node-0")}})
    wanted = {"kubernetes.io/hostname": "node-0"}
    plane.admin.until(job_set_path(here), lambda it: it is not None and node_selector(it) == wanted, what="patched")
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    job = until_state(plane.admin, here, "Complete")
    [suspended] = [condition for condition in job["status"]["conditions"] if condition["type"] == "Suspended"]
    assert (suspended["status"], suspended["reason"]) == ("False", "Resumed")


def test_a_suspended_job_is_patched_and_resumed_in_one_write(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", suspend=True))
    until_state(plane.admin, here, "Suspended")
    plane.admin.patch(job_path(here), {"spec": {"runtimePatches": node_patch("node-1"), "suspend": False}})
    until_state(plane.admin, here, "Complete")
    assert node_selector(plane.admin.get(job_set_path(here))) == {"kubernetes.io/hostname": "node-1"}


def test_a_patch_that_jobset_does_not_take_while_suspended_replaces_the_jobset(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", suspend=True))
    until_state(plane.admin, here, "Suspended")
    old = plane.admin.get(job_set_path(here))["metadata"]["uid"]
    patches = node_patch("node-0")
    [node] = patches[0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    plane.admin.patch(job_path(here), {"spec": {"runtimePatches": patches}})

    def has_volume(found: Json | None) -> bool:
        return found is not None and "scratch" in str(found["spec"])

    new = plane.admin.until(job_set_path(here), has_volume, what="the volume")
    assert new is not None
    assert new["metadata"]["uid"] != old
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Complete")


def test_a_running_job_is_suspended_its_pods_go_and_it_resumes(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    plane.admin.patch(job_path(here), {"spec": {"suspend": True}})
    until_state(plane.admin, here, "Suspended")
    pods = f"/api/v1/namespaces/{here}/pods"
    plane.admin.until(pods, lambda found: found is not None and not found["items"], what="no pods")
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running")


def test_patches_of_a_running_job_are_refused_in_the_references_words(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    with pytest.raises(Refused, match="RuntimePatches can only be modified when the TrainJob is suspended") as refused:
        plane.admin.patch(job_path(here), {"spec": {"runtimePatches": node_patch("node-0")}})
    assert refused.value.code == 403
    assert 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request' in str(refused.value)


def test_at_the_deadline_the_job_fails_and_its_pods_go(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang", activeDeadlineSeconds=2))
    job = until_state(plane.admin, here, "Failed")
    [failed] = [condition for condition in job["status"]["conditions"] if condition["type"] == "Failed"]
    assert failed["reason"] == "DeadlineExceeded"
    plane.admin.until(job_set_path(here), lambda found: found is None, what="JobSet gone")
    pods = f"/api/v1/namespaces/{here}/pods"
    plane.admin.until(pods, lambda found: found is not None and not found["items"], what="no pods")


def test_the_deadline_does_not_run_while_suspended_and_restarts_on_resume(plane: RealControlPlane, here: str) -> None:
    create(
        plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang", suspend=True, activeDeadlineSeconds=3)
    )
    until_state(plane.admin, here, "Suspended")
    time.sleep(4)
    assert plane.admin.get(job_path(here))["status"]["state"] == "Suspended"
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running")
    until_state(plane.admin, here, "Failed")


@pytest.mark.parametrize("where", ["TrainJob", "runtime"])
def test_a_finished_job_is_deleted_when_its_time_to_live_is_over(
    plane: RealControlPlane, here: str, where: str
) -> None:
    annotations = {"annotations": {"trainer.kubeflow.org/ttl-seconds-after-finished": "2"}}
    it, job = runtime("it", TORCH), trainjob("job", "it")
    (it if where == "runtime" else job)["metadata"].update(annotations)
    create(plane.admin, here, it, job)
    until_state(plane.admin, here, "Complete")
    plane.admin.until(job_path(here), lambda found: found is None, what="TrainJob gone")
    plane.admin.until(job_set_path(here), lambda found: found is None, what="JobSet gone")


def test_editing_and_deleting_the_runtime_does_not_disturb_a_job_that_has_started(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    before = plane.admin.get(job_set_path(here))
    path = f"{base(here)}/trainingruntimes/it"
    edited = runtime("it", TORCH)["spec"]["template"]
    edited["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    plane.admin.patch(path, {"spec": {"template": edited}})
    plane.admin.until(path, lambda found: _is_guarded(found), what="guarded")
    plane.admin.delete(path)
    assert plane.admin.get(path)["metadata"]["deletionTimestamp"]  # the guard holds it while the job runs
    plane.admin.patch(job_path(here), {"spec": {"suspend": True}})
    until_state(plane.admin, here, "Suspended")
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running")
    after = plane.admin.get(job_set_path(here))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["replicatedJobs"] == before["spec"]["replicatedJobs"]
    plane.admin.delete(job_path(here))
    plane.admin.until(path, lambda found: found is None, what="runtime gone")


def _is_guarded(found: Json | None) -> bool:
    return found is not None and "trainer.kubeflow.org/resource-in-use" in (found["metadata"].get("finalizers") or [])


def test_a_runtime_forced_away_still_lets_its_job_be_suspended_and_resumed(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    path = f"{base(here)}/trainingruntimes/it"
    plane.admin.until(path, _is_guarded, what="guarded")
    plane.admin.delete(path)
    plane.admin.patch(path, {"metadata": {"finalizers": None}})
    plane.admin.until(path, lambda found: found is None, what="runtime gone")
    plane.admin.patch(job_path(here), {"spec": {"suspend": True}})
    until_state(plane.admin, here, "Suspended")
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running")


def test_a_revision_is_shared_by_jobs_of_one_runtime_and_removed_after_the_last(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("first", "it"), trainjob("second", "it", "hang"))
    until_state(plane.admin, here, "Complete", "first")
    until_state(plane.admin, here, "Running", "second")
    revisions = f"/apis/apps/v1/namespaces/{here}/controllerrevisions"
    [revision] = plane.admin.items(revisions)
    assert plane.admin.get(job_path(here, "second"))["status"]["runtimeRevision"] == revision["metadata"]["name"]
    plane.admin.delete(job_path(here, "second"))
    plane.admin.until(revisions, lambda found: found is not None and not found["items"], what="revision pruned")


def test_a_job_deleted_and_made_again_under_its_name_gets_a_jobset_of_its_own(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    old = plane.admin.get(job_set_path(here))["metadata"]["uid"]
    plane.admin.delete(job_path(here))
    create(plane.admin, here, trainjob("job", "it"))
    job = until_state(plane.admin, here, "Complete")
    job_set = plane.admin.get(job_set_path(here))
    assert job_set["metadata"]["uid"] != old
    assert job_set["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]


@pytest.mark.timeout(300 + 2 * MANY)
def test_nothing_is_left_of_a_namespace_that_is_deleted_with_jobs_in_it(plane: RealControlPlane, here: str) -> None:
    """Five jobs, which run; with `TRAINWRIGHT_NAMESPACE_JOBS` more, whose JobSets are suspended."""
    running = [trainjob(f"job-{n}", "it", "hang") for n in range(5)]
    create(plane.admin, here, runtime("it", TORCH), *running)
    create(plane.admin, here, *(trainjob(f"more-{n}", "it", suspend=True) for n in range(MANY - 5)))
    for number in range(5):
        until_state(plane.admin, here, "Running", f"job-{number}")
    for number in range(MANY - 5):
        until_state(plane.admin, here, "Suspended", f"more-{number}")
    begun = time.monotonic()
    plane.admin.delete(f"/api/v1/namespaces/{here}")
    seconds = 60 + MANY / 2
    plane.admin.until(f"/api/v1/namespaces/{here}", lambda found: found is None, what="namespace gone", seconds=seconds)
    print(f"a namespace with {MANY} jobs was gone after {time.monotonic() - begun:.0f} s")


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_a_deleted_job_takes_its_children_along(plane: RealControlPlane, here: str, policy: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    plane.admin.delete(job_path(here), propagationPolicy=policy)
    plane.admin.until(job_path(here), lambda found: found is None, what="the job gone", seconds=60)
    plane.admin.until(job_set_path(here), lambda found: found is None, what="its JobSet gone", seconds=60)


FOREIGN = {
    "JobSet": (
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "job"},
            "spec": {"suspend": True},
        },
    ),
    "ConfigMap": (
        "/api/v1/namespaces/{}/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job-mpi-hostfile"}, "data": {"mine": "yes"}},
    ),
    "Secret": (
        "/api/v1/namespaces/{}/secrets",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "job-mpi-ssh-auth"},
            "stringData": {"mine": "yes"},
        },
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_object_of_somebody_else_with_a_childs_name_is_never_touched(
    plane: RealControlPlane, here: str, kind: str
) -> None:
    collection, body = FOREIGN[kind]
    path = collection.format(here)
    theirs = plane.admin.create(path, body)
    create(plane.admin, here, with_launcher(runtime("it", MPI)), trainjob("job", "it"))

    def says_so(found: Json | None) -> bool:
        message = ((found or {}).get("status") or {}).get("message") or ""
        return f'{kind} "{theirs["metadata"]["name"]}" exists already' in message

    plane.admin.until(job_path(here), says_so, what="status.message names it")
    time.sleep(1)
    found = plane.admin.get(f"{path}/{theirs['metadata']['name']}")
    assert (found["metadata"]["uid"], found["metadata"].get("ownerReferences")) == (theirs["metadata"]["uid"], None)
    assert found.get("data") == theirs.get("data")
    assert not plane.admin.items(f"/apis/batch/v1/namespaces/{here}/jobs")
    events = plane.admin.items(f"/api/v1/namespaces/{here}/events")
    [event] = [it for it in events if it["reason"] == "TrainJobResourcesCreationFailed"]
    assert event["firstTimestamp"]
    assert event["involvedObject"]["name"] == "job"
    plane.admin.delete(f"{path}/{theirs['metadata']['name']}")
    until_state(plane.admin, here, "Complete")  # by itself, once the name is free


def test_the_mpi_secret_is_created_once_and_never_rewritten(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, with_launcher(runtime("it", MPI)), trainjob("job", "it", suspend=True))
    until_state(plane.admin, here, "Suspended")
    path = f"/api/v1/namespaces/{here}/secrets/job-mpi-ssh-auth"
    first = plane.admin.until(path, bool, what="secret")
    assert first is not None
    assert first["immutable"]
    plane.admin.patch(job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Complete")
    last = plane.admin.get(path)
    assert last["data"] == first["data"]
    assert last["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_hand_deleted_child_of_a_running_job_comes_back(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, with_launcher(runtime("it", MPI)), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    path = f"/api/v1/namespaces/{here}/configmaps/job-mpi-hostfile"
    before = plane.admin.get(path)
    plane.admin.delete(path)
    after = plane.admin.until(path, bool, what="ConfigMap again", seconds=5)
    assert after is not None
    assert after["data"] == before["data"]
    old = plane.admin.get(job_set_path(here))["metadata"]["uid"]
    plane.admin.delete(job_set_path(here))

    def is_new(found: Json | None) -> bool:
        return found is not None and found["metadata"]["uid"] != old

    plane.admin.until(job_set_path(here), is_new, what="JobSet again")


def test_a_finished_job_is_not_run_again_when_its_jobset_is_removed(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "fail"))
    until_state(plane.admin, here, "Failed")
    plane.admin.delete(job_set_path(here))
    plane.admin.until(job_set_path(here), lambda found: found is None, what="JobSet gone")
    time.sleep(2)
    assert plane.admin.find(job_set_path(here)) is None
    until_state(plane.admin, here, "Failed")


def test_a_job_of_another_manager_is_left_alone(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", managedBy="kueue.x-k8s.io/multikueue"))
    create(plane.admin, here, trainjob("ours", "it"))
    until_state(plane.admin, here, "Complete", "ours")
    assert plane.admin.find(job_set_path(here)) is None
    assert "status" not in plane.admin.get(job_path(here))


def test_a_job_that_names_no_runtime_there_is_gets_refused_with_its_name(plane: RealControlPlane, here: str) -> None:
    message = refusal(plane, f"{base(here)}/trainjobs", trainjob("job", "missing"))
    assert 'TrainingRuntime.trainer.kubeflow.org "missing" not found' in message
    assert "specified trainingRuntime must be created before the TrainJob is created" in message
    of_the_cluster = trainjob("job", "missing")
    of_the_cluster["spec"]["runtimeRef"]["kind"] = "ClusterTrainingRuntime"
    message = refusal(plane, f"{base(here)}/trainjobs", of_the_cluster)
    assert "specified clusterTrainingRuntime must be created before the TrainJob is created" in message


def test_a_text_numprocpernode_is_stored_as_a_number_or_an_annotation(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH))
    for name, value in (("number", "2"), ("word", "auto")):
        job = trainjob(name, "it")
        job["spec"]["trainer"]["numProcPerNode"] = value
        create(plane.admin, here, job)
    assert plane.admin.get(job_path(here, "number"))["spec"]["trainer"]["numProcPerNode"] == 2
    word = plane.admin.get(job_path(here, "word"))
    assert "numProcPerNode" not in word["spec"]["trainer"]
    assert word["metadata"]["annotations"]["trainer.kubeflow.org/num-proc-per-node"] == "auto"
    until_state(plane.admin, here, "Complete", "number")
    until_state(plane.admin, here, "Complete", "word")


def test_runtime_patches_are_stamped_with_the_time_they_changed(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH))
    create(plane.admin, here, trainjob("job", "it", suspend=True, runtimePatches=node_patch("node-0")))
    [patch] = plane.admin.get(job_path(here))["spec"]["runtimePatches"]
    assert patch["time"]


def test_a_client_of_an_older_generation_does_not_erase_runtime_patches(plane: RealControlPlane, here: str) -> None:
    """Kueue 0.15 updates with a type that has no runtimePatches, and writes podTemplateOverrides."""
    create(plane.admin, here, runtime("it", TORCH))
    create(plane.admin, here, trainjob("job", "it", suspend=True, runtimePatches=node_patch("node-0")))
    until_state(plane.admin, here, "Suspended")  # and so the operator writes no status between read and update
    before = plane.admin.get(job_path(here))
    stored = before["spec"]["runtimePatches"]
    del before["spec"]["runtimePatches"]
    override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"pool": "a"}}}
    before["spec"]["podTemplateOverrides"] = [override]
    plane.admin.replace(job_path(here), before)
    after = plane.admin.get(job_path(here))["spec"]
    assert after["runtimePatches"] == stored
    assert after["podTemplateOverrides"] == [override]


def test_runtimes_are_judged_by_their_webhooks(plane: RealControlPlane, here: str) -> None:
    bad = runtime("it", TORCH)
    bad["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
    message = refusal(plane, f"{base(here)}/trainingruntimes", bad)
    assert "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2: always must be 1" in message
    assert 'admission webhook "validator.trainingruntime.trainer.kubeflow.org" denied the request' in message


def test_with_the_webhook_down_creates_are_refused_and_the_rest_goes_on(
    plane: RealControlPlane, installed: Installation, here: str
) -> None:
    """The webhook gets a wrong address, which is what a network policy or a lost Service amounts to."""
    create(plane.admin, here, runtime("it", TORCH), trainjob("job", "it", "hang", suspend=True))
    until_state(plane.admin, here, "Suspended")
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validator.trainer.kubeflow.org"
    good = plane.admin.get(path)["webhooks"]
    broken = [{**hook, "clientConfig": {**hook["clientConfig"], "url": "https://127.0.0.1:1/nobody"}} for hook in good]
    plane.admin.patch(path, {"webhooks": broken})
    try:
        wait_until_creates_are_refused(plane, here)
        plane.admin.delete(job_set_path(here))
        plane.admin.until(job_set_path(here), bool, what="JobSet again: reconciling goes on")
        plane.admin.delete(job_path(here))
        plane.admin.until(job_path(here), lambda found: found is None, what="deletion goes on")
    finally:
        current = {hook["name"]: hook for hook in plane.admin.get(path)["webhooks"]}
        restored = [
            {
                **current[hook["name"]],
                "clientConfig": {**current[hook["name"]]["clientConfig"], "url": hook["clientConfig"]["url"]},
            }
            for hook in good
        ]
        plane.admin.patch(path, {"webhooks": restored})


def wait_until_creates_are_refused(plane: RealControlPlane, namespace: str) -> None:
    """The API server takes a moment to see a changed webhook configuration."""
    numbers = itertools.count()

    def is_refused() -> bool:
        code, body = plane.admin.raw("POST", f"{base(namespace)}/trainjobs", trainjob(f"other-{next(numbers)}", "it"))
        assert code < 400 or b"failed calling webhook" in body
        return code >= 400

    eventually("creates to be refused, since the webhook is down", is_refused, 20)


def test_converged_jobs_cause_no_writes(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, runtime("it", TORCH), with_launcher(runtime("mpi", MPI)))
    create(plane.admin, here, trainjob("running", "it", "hang"), trainjob("suspended", "mpi", suspend=True))
    create(plane.admin, here, trainjob("done", "it"))
    until_state(plane.admin, here, "Running", "running")
    until_state(plane.admin, here, "Suspended", "suspended")
    until_state(plane.admin, here, "Complete", "done")
    time.sleep(3)
    before = time.time()
    time.sleep(10)
    mine = [
        request
        for request in requests(plane.audit_events(), user=USER)
        if request.is_write and request.at >= before and request.namespace in (here, NAMESPACE)
    ]
    assert [str(request) for request in mine if request.resource != "leases"] == []
