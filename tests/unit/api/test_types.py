"""The wire types read what every release wrote and write nothing that was not there."""

from __future__ import annotations

import msgspec
import pytest

from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import JobStatus, RuntimeRef, TrainJob, trainjob_from


def test_trainjob_keeps_legacy_spellings_and_ignores_unknown_fields() -> None:
    job = trainjob_from(
        {
            "metadata": {"name": "a", "creationTimestamp": None},
            "spec": {
                "runtimeRef": {"name": "torch-distributed"},
                "trainer": {"numProcPerNode": "auto", "somethingNew": 1},
                "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"unknown": True}}],
                "labels": {"team": "x"},
            },
        }
    )
    assert job.spec is not None
    assert job.spec.trainer is not None
    assert job.spec.trainer.num_proc_per_node == "auto"
    assert job.spec.pod_template_overrides == [{"targetJobs": [{"name": "node"}], "spec": {"unknown": True}}]
    assert job.spec.runtime_ref == RuntimeRef("torch-distributed", "trainer.kubeflow.org", "ClusterTrainingRuntime")


def test_encoding_writes_kind_and_runtime_ref_in_full_and_nothing_absent() -> None:
    job = trainjob_from({"metadata": {"name": "a"}, "spec": {"runtimeRef": {"name": "t"}}})
    assert msgspec.to_builtins(job) == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": "t", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}},
    }
    assert msgspec.to_builtins(JobStatus("node", active=1)) == {
        "name": "node",
        "ready": 0,
        "succeeded": 0,
        "failed": 0,
        "active": 1,
        "suspended": 0,
    }


def test_finished_means_complete_or_failed_is_true() -> None:
    def job(type: str, status: str) -> TrainJob:
        condition = {"type": type, "status": status, "reason": "R", "message": "", "lastTransitionTime": "t"}
        return trainjob_from({"status": {"conditions": [condition]}})

    assert job("Complete", "True").is_finished
    assert job("Failed", "True").is_finished
    assert not job("Failed", "False").is_finished
    assert not job("Suspended", "True").is_finished


def test_runtime_reads_both_kinds_and_old_torch_fields() -> None:
    runtime = runtime_from(
        {
            "kind": "ClusterTrainingRuntime",
            "spec": {
                "mlPolicy": {"torch": {"numProcPerNode": "cpu", "elasticPolicy": {"maxNodes": 3}}},
                "template": {"spec": {"replicatedJobs": [{"name": "node", "novel": [1]}]}},
            },
        }
    )
    assert runtime.is_cluster_scoped
    assert runtime.spec is not None
    assert runtime.spec.ml_policy is not None
    assert runtime.spec.ml_policy.torch is not None
    assert runtime.spec.ml_policy.torch.num_proc_per_node == "cpu"
    assert runtime.spec.template is not None
    assert runtime.spec.template.spec == {"replicatedJobs": [{"name": "node", "novel": [1]}]}


def test_a_wrong_type_is_named_by_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.trainer\.numNodes"):
        trainjob_from({"spec": {"runtimeRef": {"name": "t"}, "trainer": {"numNodes": "two"}}})
