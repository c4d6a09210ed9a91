"""A build turns a TrainJob and its runtime into a plan."""

from __future__ import annotations

import msgspec
import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOB_SETS
from trainwright.api.trainjob import RuntimeRef
from trainwright.pipeline import (
    Apply,
    CreateOnce,
    NameTaken,
    ObjectName,
    Observed,
    Repair,
    RuntimeNotSupported,
    TemplateInvalid,
    Workload,
    WorkloadStatus,
    runtime_kind,
)
from unit.pipeline.objects import (
    container,
    env,
    intentions,
    job_of_runtime,
    jobset,
    objects,
    plan,
    pods,
    runtime,
    trainjob,
)


def running(*, suspend: bool = False) -> Workload:
    return Workload(JOB_SETS, ObjectMeta(name="tj"), "JobSet", WorkloadStatus(is_suspended=suspend))


JOB_SET = ObjectName("jobset.x-k8s.io/v1alpha2", "JobSet", "tj")
POD_GROUP = ObjectName("scheduling.x-k8s.io/v1alpha1", "PodGroup", "tj")
HOSTFILE = ObjectName("v1", "ConfigMap", "tj-mpi-hostfile")


def test_every_object_belongs_to_the_trainjob() -> None:
    made = plan(trainjob(), runtime(policy={"mpi": {}}))
    assert len(made.objects) == 3
    for intention in made.objects:
        metadata = intention.object["metadata"]
        assert metadata["namespace"] == "ns"
        assert metadata["labels"]["trainer.kubeflow.org/trainjob-name"] == "tj"
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "trainwright"
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "name": "tj",
                "uid": "u1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


def test_what_pods_mount_is_written_before_the_pods() -> None:
    made = plan(trainjob(), runtime(policy={"mpi": {}}, gang={"coscheduling": {}}))
    assert intentions(made) == [
        (Apply, "ConfigMap"),
        (CreateOnce, "Secret"),
        (Apply, "PodGroup"),
        (Apply, "JobSet"),
    ]


def test_inputs_are_never_changed() -> None:
    job = trainjob({"command": ["tune", "run"], "env": [{"name": "A", "value": "1"}]})
    of = runtime(policy={"torch": {}})
    before = msgspec.json.encode((job, of))
    plan(job, of)
    assert msgspec.json.encode((job, of)) == before


def test_beside_a_running_workload_only_what_may_differ_is_looked_at() -> None:
    of = runtime(policy={"mpi": {}}, gang={"coscheduling": {}})
    made = plan(trainjob(), of, Observed(workload=running(), children=frozenset({POD_GROUP, HOSTFILE})))
    assert intentions(made) == [(Apply, "ConfigMap")]
    assert made.repaired == {HOSTFILE: Repair.CHANGED, POD_GROUP: Repair.MISSING}


def test_a_suspended_jobset_of_an_active_trainjob_is_resumed() -> None:
    made = plan(trainjob(), runtime(), Observed(workload=running(suspend=True)))
    assert objects(made)["JobSet/tj"]["spec"]["suspend"] is False


def test_suspending_writes_the_jobset_though_it_runs() -> None:
    made = plan(trainjob(suspend=True), runtime(), Observed(workload=running()))
    assert objects(made)["JobSet/tj"]["spec"]["suspend"] is True


def test_a_missing_podgroup_is_put_back_beside_a_running_workload() -> None:
    made = plan(trainjob(), runtime(gang={"coscheduling": {}}), Observed(workload=running()))
    assert intentions(made) == [(Apply, "PodGroup")]


def test_a_podgroup_is_written_anew_while_the_job_is_suspended() -> None:
    observed = Observed(workload=running(suspend=True), children=frozenset({POD_GROUP}))
    of = runtime(gang={"coscheduling": {}})
    assert intentions(plan(trainjob(suspend=True), of, observed)) == [(Apply, "PodGroup"), (Apply, "JobSet")]
    assert intentions(plan(trainjob(), of, observed)) == [(Apply, "JobSet")]


def test_somebody_elses_jobset_is_never_taken_over() -> None:
    with pytest.raises(NameTaken, match='JobSet "tj" exists already'):
        plan(trainjob(), runtime(), Observed(taken=frozenset({JOB_SET})))


def test_a_secret_waits_for_the_next_start() -> None:
    of = runtime(policy={"mpi": {}})
    assert "Secret/tj-mpi-ssh-auth" not in objects(plan(trainjob(), of, Observed(workload=running())))
    assert "Secret/tj-mpi-ssh-auth" in objects(plan(trainjob(), of, Observed(workload=running(suspend=True))))


def test_the_workload_carries_its_revision_and_its_builder() -> None:
    made = plan(trainjob(), runtime(), Observed(runtime_revision="r-abc"))
    annotations = objects(made)["JobSet/tj"]["metadata"]["annotations"]
    assert annotations == {"trainer.kubeflow.org/runtime-revision": "r-abc", "trainwright.dev/workload": "JobSet"}


def test_a_template_without_jobset_is_refused() -> None:
    bare = msgspec.structs.replace(runtime(), spec=None)
    with pytest.raises(TemplateInvalid, match="unsupported runtimeTemplateSpec"):
        plan(trainjob(), bare)


@pytest.mark.parametrize(
    ("ref", "key"),
    [
        (RuntimeRef("x", kind="Foo"), "Foo.trainer.kubeflow.org"),
        (RuntimeRef("x", api_group="b.c"), "ClusterTrainingRuntime.b.c"),
        (RuntimeRef("x", api_group="", kind="Foo"), "Foo"),
    ],
)
def test_an_unknown_runtime_kind_is_named(ref: RuntimeRef, key: str) -> None:
    with pytest.raises(RuntimeNotSupported, match=f"^unsupported runtime: {key}$"):
        runtime_kind(ref)


def test_every_job_has_as_many_completions_as_pods() -> None:
    prep = job_of_runtime("prep", "")
    prep["template"]["spec"] |= {"parallelism": 3, "completions": 7}
    made = jobset(trainjob({"numNodes": 4}), runtime(job_of_runtime(), prep))
    specs = {item["name"]: item["template"]["spec"] for item in made["spec"]["replicatedJobs"]}
    assert (specs["node"]["parallelism"], specs["node"]["completions"]) == (4, 4)
    assert (specs["prep"]["parallelism"], specs["prep"]["completions"]) == (3, 3)


def test_zero_nodes_are_zero_pods() -> None:
    made = jobset(trainjob({"numNodes": 0}), runtime())
    assert made["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 0


def test_without_the_role_label_the_job_named_node_trains() -> None:
    made = jobset(trainjob({"numNodes": 2, "image": "mine"}), runtime(job_of_runtime(role=""), policy={"torch": {}}))
    assert container(made)["image"] == "mine"
    assert env(made)["PET_NNODES"] == "2"


def test_with_the_role_label_elsewhere_the_job_named_node_is_left_alone() -> None:
    other = job_of_runtime("chief")
    made = jobset(trainjob({"image": "mine"}), runtime(job_of_runtime(role=""), other))
    assert container(made)["image"] == "img:1"
    assert container(made, "chief")["image"] == "mine"


def test_trainjob_wins_over_template_and_unset_fields_keep_the_templates() -> None:
    base = [{"name": "node", "image": "img:1", "command": ["a"], "args": ["b"]}]
    made = jobset(trainjob({"image": "mine", "args": []}), runtime(job_of_runtime(containers=base)))
    assert container(made) == {"name": "node", "image": "mine", "command": ["a"], "args": []}


def test_user_variables_have_the_last_word() -> None:
    user = [{"name": "JAX_NUM_PROCESSES", "value": "99"}]
    assert env(jobset(trainjob({"env": user}), runtime(policy={"jax": {}})))["JAX_NUM_PROCESSES"] == "99"


def test_resources_are_merged_key_by_key_and_claims_are_dropped() -> None:
    given = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": 1}, "claims": [{"name": "c"}]}
    base = [{"name": "node", "image": "i", "resources": given}]
    wanted = {"limits": {"cpu": "8", "nvidia.com/gpu": 1}}
    made = jobset(trainjob({"resourcesPerNode": wanted}), runtime(job_of_runtime(containers=base)))
    assert container(made)["resources"] == {
        "limits": {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "1"},
    }


def test_initializers_get_uri_then_env_then_secret() -> None:
    step = {"storageUri": "hf://a", "env": [{"name": "X", "value": "1"}], "secretRef": {"name": "s"}}
    of = runtime(job_of_runtime("dataset-initializer", "dataset-initializer"), job_of_runtime())
    made = jobset(trainjob(initializer={"dataset": step}), of)
    assert env(made, "dataset-initializer", "dataset-initializer") == {"STORAGE_URI": "hf://a", "X": "1"}
    assert container(made, "dataset-initializer", "dataset-initializer")["envFrom"] == [{"secretRef": {"name": "s"}}]


def test_an_env_named_like_the_uri_beats_it() -> None:
    step = {"storageUri": "hf://a", "env": [{"name": "STORAGE_URI", "value": "hf://b"}]}
    of = runtime(job_of_runtime("model-initializer", "model-initializer"), job_of_runtime())
    made = jobset(trainjob(initializer={"model": step}), of)
    assert env(made, "model-initializer", "model-initializer") == {"STORAGE_URI": "hf://b"}


def test_unknown_fields_of_a_template_survive() -> None:
    base = job_of_runtime(futureField={"a": [1, {"b": None, "c": []}]})
    base["template"]["spec"]["unheardOf"] = ""
    made = jobset(trainjob(), runtime(base, another=0))
    assert pods(made)["futureField"] == {"a": [1, {"c": []}]}
    assert made["spec"]["replicatedJobs"][0]["template"]["spec"]["unheardOf"] == ""
    assert made["spec"]["another"] == 0


def test_env_sources_are_copied_as_the_reference_copies_them() -> None:
    sources = [
        {"name": "F", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}}},
        {"name": "E"},
        {"name": "K", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}},
    ]
    made = container(jobset(trainjob({"env": sources}), runtime()))["env"]
    assert made == [
        {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {
            "name": "R",
            "valueFrom": {"resourceFieldRef": {"containerName": "", "resource": "limits.cpu", "divisor": "0"}},
        },
        {
            "name": "D",
            "valueFrom": {"resourceFieldRef": {"containerName": "", "resource": "limits.memory", "divisor": "1Mi"}},
        },
        {"name": "E", "value": ""},
        {"name": "K", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}},
    ]


def test_a_template_may_leave_out_every_level() -> None:
    bare = {"name": "node", "template": {}}
    made = jobset(
        trainjob({"numNodes": 2, "image": "x"}), runtime(bare, policy={"torch": {}}, gang={"coscheduling": {}})
    )
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert spec["parallelism"] == 2
    assert spec["template"]["metadata"] == {"labels": {"scheduling.x-k8s.io/pod-group": "tj"}}


def test_resources_that_go_nowhere_come_with_a_warning() -> None:
    job = trainjob({"resourcesPerNode": {"limits": {"cpu": 1}}})
    spec = runtime().spec
    assert spec is not None
    bare = msgspec.structs.replace(runtime(), spec=msgspec.structs.replace(spec, ml_policy=None))
    (warning,) = plan(job, bare).warnings
    assert warning.startswith("spec.trainer.resourcesPerNode has no effect")
    assert plan(job, runtime()).warnings == []


def test_no_replicas_are_as_many_as_the_default() -> None:
    aux = {**job_of_runtime("aux", ""), "replicas": 0}
    made = jobset(trainjob(), runtime(job_of_runtime(), aux))
    assert [item.get("replicas") for item in made["spec"]["replicatedJobs"]] == [1, None]
