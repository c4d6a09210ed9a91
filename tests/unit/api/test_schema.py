# ruff: noqa: E501 - tables of whole sentences read better on one line
"""Our schemas accept and refuse what the reference's do, in the words that clients match on, and more where we decided so."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainwright.api.schema import schema_for
from trainwright.schema.custom_resource import check_create, check_update


def job(name: str = "tj", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


def runtime(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "r"},
        "spec": spec,
    }


def stored(value: dict[str, Any]) -> dict[str, Any]:
    """As the API server would store it; unknown fields are a mistake in the test."""
    value = copy.deepcopy(value)
    schema = schema_for(value["kind"])
    assert schema.prune(value) == []
    schema.default(value)
    return value


def refused(value: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    schema, value = schema_for(value["kind"]), stored(value)
    errors = check_create(schema, value) if old is None else check_update(schema, value, stored(old))
    return [str(error) for error in errors]


def patch(manager: str, **pod: Any) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": pod}}}
    replicated = [{"name": "node", "template": template}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated}}}}


IMMUTABLE = "Invalid value: field is immutable"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (job("1abc"), "<nil>: Invalid value: metadata.name must match RFC 1035 DNS label format"),
        (job("a.b"), "<nil>: Invalid value: metadata.name must match RFC 1035 DNS label format"),
        (job("a" * 64), "<nil>: Invalid value: metadata.name must be no more than 63 characters"),
        ({**job(), "spec": {}}, "spec.runtimeRef: Required value"),
        (job(runtimeRef={}), "spec.runtimeRef.name: Required value"),
        (job(runtimeRef={"name": ""}), 'spec.runtimeRef.name: Invalid value: "": spec.runtimeRef.name in body should be at least 1 chars long'),
        (job(trainer={"numNodes": -1}), "spec.trainer.numNodes: Invalid value: -1: spec.trainer.numNodes in body should be greater than or equal to 0"),
        (job(trainer={"numProcPerNode": 0}), "spec.trainer.numProcPerNode: Invalid value: 0: numProcPerNode must be greater than or equal to 1"),
        (job(trainer={"numProcPerNode": 2**31}), "spec.trainer.numProcPerNode: Invalid value: 2147483648: numProcPerNode must be less than or equal to 2147483647"),
        (job(trainer={"image": "i" * 501}), "spec.trainer.image: Too long: may not be more than 500 bytes"),
        (job(trainer={"env": [{"name": "A"}, {"name": "A"}]}), 'spec.trainer.env[1]: Duplicate value: {"name":"A"}'),
        (job(trainer={"command": ["x"] * 129}), "spec.trainer.command: Too many: 129: must have at most 128 items"),
        (job(trainer={"resourcesPerNode": {"limits": {"cpu": "1 Gi"}}}), "spec.trainer.resourcesPerNode.limits.cpu: Invalid value: \"1 Gi\": spec.trainer.resourcesPerNode.limits.cpu in body should match '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'"),
        (job(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: Invalid value: 0: spec.activeDeadlineSeconds in body should be greater than or equal to 1"),
        (job(initializer={"dataset": {"storageUri": "s3://"}}), 'spec.initializer.dataset.storageUri: Invalid value: "s3://": storageUri may be empty, or it must be a valid URI (scheme://...)'),
        (job(managedBy="me"), 'spec.managedBy: Invalid value: "me": ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set'),
        (job(runtimePatches=[patch(f"a.io/{n}") for n in range(17)]), "spec.runtimePatches: Too many: 17: must have at most 16 items"),
        (job(runtimePatches=[patch("a.io/x"), patch("a.io/x")]), 'spec.runtimePatches[1]: Duplicate value: {"manager":"a.io/x"}'),
        (job(runtimePatches=[patch("m", containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}])]), 'spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts[1]: Duplicate value: {"name":"v"}'),
        (job(podTemplateOverrides=[{}]), "spec.podTemplateOverrides[0].targetJobs: Required value"),
        (runtime(), "spec: Invalid value: 0: spec in body should have at least 1 properties"),
        (runtime(mlPolicy={"torch": {}, "jax": {}}), "spec.mlPolicy: Invalid value: Only one of the policy can be configured"),
        (runtime(mlPolicy={"mpi": {"mpiImplementation": "LAM"}}), 'spec.mlPolicy.mpi.mpiImplementation: Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH", ""'),
        (runtime(mlPolicy={"torch": {"numProcPerNode": "many"}}), 'spec.mlPolicy.torch.numProcPerNode: Invalid value: "many": NumProcPerNode must be equal to auto, cpu, gpu, or int value'),
        (runtime(mlPolicy={"numNodes": 2, "torch": {"elasticPolicy": {}}}), "spec.mlPolicy: Invalid value: numNodes should not be set if torch.elasticPolicy is configured"),
        (runtime(podGroupPolicy={"coscheduling": {}, "volcano": {}}), "spec.podGroupPolicy: Invalid value: at most one of coscheduling, volcano and kubernetes can be configured"),
    ],
)  # fmt: skip
def test_refused_with_these_words(value: dict[str, Any], error: str) -> None:
    assert refused(value)[0] == error


@pytest.mark.parametrize(
    "value",
    [
        {**job(), "spec": None} | {"spec": {"runtimeRef": {"name": "t"}}},
        job(trainer={"numNodes": 0, "numProcPerNode": 4}),
        job(trainer={"numProcPerNode": "auto"}),
        job(trainer={"resourcesPerNode": {"requests": {"cpu": 2.0, "nvidia.com/gpu": 1}}}),
        job(initializer={"model": {"storageUri": "", "secretRef": {}}}),
        job(labels={"a": "b"}, annotations={"a": "b"}),
        job(podSpecOverrides=[{"targetJobs": [{"name": "node"}], "serviceAccountName": "s", "volumes": [{"name": "v", "emptyDir": {}}]}]),
        job(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "metadata": {"labels": {"a": "b"}}, "spec": {"affinity": {}, "imagePullSecrets": [{"name": "p"}]}}]),
        job(runtimePatches=[patch("a.io/x", nodeSelector={"a": "b"}, tolerations=[{"key": "k"}], terminationGracePeriodSeconds=0)]),
        runtime(mlPolicy={"torch": {"numProcPerNode": "cpu", "elasticPolicy": {"maxNodes": 3, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}}),
        runtime(mlPolicy={"mpi": {"mpiImplementation": ""}}),
        runtime(mlPolicy={"mpi": {"mpiImplementation": "Intel"}}),
        runtime(podGroupPolicy={"volcano": {"networkTopology": {}}}),
        runtime(template={"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}]}}),
    ],
)  # fmt: skip
def test_accepted(value: dict[str, Any]) -> None:
    assert refused(value) == []


def test_defaults_of_a_minimal_job_are_those_of_the_reference() -> None:
    assert stored(job())["spec"] == {
        "runtimeRef": {"name": "torch", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"},
        "suspend": False,
        "managedBy": "trainer.kubeflow.org/trainjob-controller",
    }


def test_no_default_is_written_for_a_legacy_field() -> None:
    old = runtime(mlPolicy={"torch": {}})
    assert stored(old)["spec"] == old["spec"]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (job(trainer={"numNodes": 1}), job(trainer={"numNodes": 2}), f"spec.trainer: {IMMUTABLE}"),
        (job(), job(runtimeRef={"name": "other"}), f"spec.runtimeRef: {IMMUTABLE}"),
        (job(activeDeadlineSeconds=5), job(activeDeadlineSeconds=6), "spec.activeDeadlineSeconds: Invalid value: 6: field is immutable"),
        (
            job(runtimePatches=[patch("a.io/x", serviceAccountName="a")]),
            job(runtimePatches=[patch("a.io/x", serviceAccountName="b")]),
            'spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: Invalid value: "b": field is immutable',
        ),
    ],
)  # fmt: skip
def test_immutable(old: dict[str, Any], new: dict[str, Any], error: str) -> None:
    assert refused(new, old) == [error]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (job(trainer={"numNodes": 1}), job()),
        (job(), job(trainer={"numNodes": 1})),
        (job(trainer={"env": [{"name": "A"}, {"name": "B"}]}), job(trainer={"env": [{"name": "B"}, {"name": "A"}]})),
        (job(suspend=True), job(suspend=False)),
        (job(runtimePatches=[patch("a.io/x", serviceAccountName="a")]), job(runtimePatches=[patch("a.io/y", serviceAccountName="b")])),
        (job("1abc", trainer={"image": "i" * 501}), job("1abc", trainer={"image": "i" * 501})),
    ],
)  # fmt: skip
def test_update_that_is_allowed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert [error for error in refused(new, old) if "RFC 1035" not in error] == []
