"""The requests of a pod add up as the scheduler counts them; devices and CPUs of a node."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.pipeline.resources import Resources, pod_requests


def amounts(pod: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_requests(pod).items()}


def box(cpu: str | None = None, *, always: bool = False, **more: str) -> dict[str, Any]:
    requests = {**({"cpu": cpu} if cpu else {}), **more}
    return {"resources": {"requests": requests}, **({"restartPolicy": "Always"} if always else {})}


def test_containers_add_up_and_limits_do_not_count() -> None:
    pod = {"containers": [box("500m"), box("1500m", memory="1Gi"), {"resources": {"limits": {"cpu": "9"}}}]}
    assert amounts(pod) == {"cpu": "2", "memory": "1Gi"}


def test_the_hungriest_init_container_counts_with_the_sidecars_before_it() -> None:
    pod = {"containers": [box("1")], "initContainers": [box("1", always=True), box("3"), box("1", always=True)]}
    assert amounts(pod) == {"cpu": "4"}


def test_sidecars_add_to_the_running_pod() -> None:
    assert amounts({"containers": [box("2")], "initContainers": [box("1", always=True)]}) == {"cpu": "3"}


def test_pod_level_requests_replace_and_overhead_adds() -> None:
    pod = {"containers": [box("1", memory="1Gi")], "resources": {"requests": {"cpu": "5", "x": "1"}}}
    assert amounts({**pod, "overhead": {"cpu": "250m"}}) == {"cpu": "5250m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("limits", "requests", "gpus", "cpus"),
    [
        ({"nvidia.com/gpu": 2}, {}, 2, 0),
        ({"nvidia.com/gpu": 2}, {"amd.com/GPU": "1"}, 1, 0),
        ({"nvidia.com/gpu": 2}, {"amd.com/gpu": 0}, 2, 0),
        ({"cpu": "4"}, {"cpu": "1500m"}, 0, 2),
        ({"cpu": "3500m"}, {"cpu": "0"}, 0, 4),
        ({"nvidia.com/mig-1g.5gb": 3}, {}, 0, 0),
        ({}, {}, 0, 0),
    ],
)
def test_devices_and_cpus_of_a_node(limits: dict[str, Any], requests: dict[str, Any], gpus: int, cpus: int) -> None:
    node = Resources(limits, requests)
    assert (node.gpus, node.cpus) == (gpus, cpus)
