"""The TrainJobs of the load: PyTorch on two nodes, the same for every contender.

They name the reference's own runtime `torch-distributed`, which every contender is given, so that both build from the
same template.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import yaml

from trainwright.schema.jsonobject import Json

RUNTIME = "torch-distributed"


def job_name(number: int) -> str:
    """Of one length, so that no name is the beginning of another."""
    return f"job-{number:05d}"


def train_job(name: str, *, suspend: bool = False) -> Json:
    resources = {"cpu": "2", "memory": "4Gi"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": {"team": "vision", "experiment": "baseline"}},
        "spec": {
            "suspend": suspend,
            "runtimeRef": {"name": RUNTIME},
            "trainer": {
                "numNodes": 2,
                "image": "registry.example.org/vision/train:1.4",
                "command": ["torchrun", "train.py"],
                "args": ["--epochs", "3", "--batch-size", "64"],
                "env": [{"name": "DATA", "value": "/data/train"}, {"name": "SEED", "value": "17"}],
                "resourcesPerNode": {"requests": resources, "limits": resources},
            },
        },
    }


def admission_review(name: str, namespace: str) -> Json:
    """What an API server sends to a webhook when that TrainJob is created."""
    kind = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"}
    resource = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"}
    job = train_job(name)
    job["metadata"] |= {
        "namespace": namespace,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
    }
    job["spec"]["runtimeRef"] |= {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
    job["spec"]["managedBy"] = "trainer.kubeflow.org/trainjob-controller"
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": job["metadata"]["uid"],
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": name,
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": job,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }


def runtime(manifests: Path) -> Json:
    """The reference's ClusterTrainingRuntime `torch-distributed`, from its own manifests."""
    found: Json = yaml.safe_load((manifests / "manifests/base/runtimes/torch_distributed.yaml").read_text())
    return found
