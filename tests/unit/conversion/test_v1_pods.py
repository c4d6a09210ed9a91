"""Our account of what v1 creates is what v1 created, on a real control plane, when it was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.conversion.v1job import read
from trainwright.conversion.v1pods import V1Pod, pods_of

RECORDED = Path(__file__).parents[2] / "conformance" / "v1"
JOBS = list(yaml.safe_load_all((RECORDED / "jobs.yaml").read_text()))
PODS = {pod["metadata"]["name"]: pod for pod in yaml.safe_load_all((RECORDED / "pods.yaml").read_text())}


def bare(value: Any) -> Any:
    """Without what the API server adds: defaults, and requests that follow from limits."""
    if isinstance(value, dict):
        dropped = {"defaultMode", "protocol", "serviceAccount", "imagePullPolicy"}
        members = {key: bare(member) for key, member in value.items() if key not in dropped}
        if "limits" in members:
            members["requests"] = {**members["limits"], **members.get("requests", {})}
        return {key: member for key, member in members.items() if member not in (None, {}, [], "")}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return None if value is None else str(value)


def as_stored(pod: V1Pod) -> Any:
    metadata = {"name": pod.name, "labels": pod.labels, "annotations": pod.annotations}
    return bare({"metadata": metadata, "spec": {"serviceAccountName": "default", **pod.spec}})


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_pods_are_those_that_were_recorded(job: dict[str, Any]) -> None:
    made = pods_of(read(job))
    assert made
    for pod in made:
        assert as_stored(pod) == bare(PODS[pod.name])


def test_every_recorded_pod_is_made() -> None:
    assert sorted(pod.name for job in JOBS for pod in pods_of(read(job))) == sorted(PODS)
