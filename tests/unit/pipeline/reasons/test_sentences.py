"""Every wait is given a reason, in words that name the pod or the job that waits."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.pipeline.reasons.sentences import failed_containers, phase_of
from trainwright.schema.jsonobject import Json


def jobset(*jobs: Json) -> Json:
    return {"metadata": {"name": "j"}, "spec": {"replicatedJobs": list(jobs)}}


def replicated(name: str, parallelism: int, **more: Any) -> Json:
    return {"name": name, "template": {"spec": {"parallelism": parallelism}}, **more}


def pod(job: str, index: int, phase: str, **status: Any) -> Json:
    labels = {REPLICATED_JOB: job, COMPLETION_INDEX: str(index)}
    return {
        "metadata": {"name": f"j-{job}-0-{index}-abcde", "labels": labels},
        "spec": {},
        "status": {"phase": phase, **status},
    }


UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}]
CRASHING = [{"name": "node", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}}]


@pytest.mark.parametrize(
    ("job", "job_set", "pods", "expected"),
    [
        ({}, None, [], ("Pending", "waiting for the operator to build its JobSet")),
        ({"status": {"message": 'no runtime "x"'}}, None, [], ("Pending", 'no runtime "x"')),
        (
            {"spec": {"suspend": True}},
            None,
            [],
            ("Suspended", "suspended by spec.suspend. Start it: trainwright resume JOB"),
        ),
        (
            {},
            jobset(replicated("node", 2)),
            [],
            ("Pending", "waiting for the JobSet controller to create its jobs and pods"),
        ),
        (
            {},
            jobset(replicated("node", 2)),
            [pod("node", 0, "Running"), pod("node", 1, "Pending", conditions=UNSCHEDULABLE)],
            (
                "Pending",
                "node-1 waits: 0/1 nodes are available: 1 Insufficient cpu. Ask for fewer CPUs (--cpus, or "
                "resourcesPerNode) or fewer nodes, or wait until other jobs end",
            ),
        ),
        (
            {},
            jobset(replicated("node", 1)),
            [pod("node", 0, "Pending", containerStatuses=CRASHING)],
            (
                "Pending",
                "node-0 fails again and again (0 restarts so far). Mend what its last lines say: trainwright logs JOB "
                "--previous",
            ),
        ),
        (
            {},
            jobset(
                replicated("dataset-initializer", 1),
                replicated("node", 2, dependsOn=[{"name": "dataset-initializer", "status": "Complete"}]),
            ),
            [pod("dataset-initializer", 0, "Running")],
            ("Running", "1 pod running; node waits for dataset-initializer to be Complete"),
        ),
        ({}, jobset(replicated("node", 2)), [pod("node", 0, "Running")], ("Pending", "1 of 2 pods created")),
        (
            {},
            jobset(replicated("node", 2)),
            [pod("node", 0, "Running"), pod("node", 1, "Succeeded")],
            ("Running", "1 of 2 pods running, 1 finished"),
        ),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "one failed"}
                    ]
                }
            },
            None,
            [],
            ("Failed", "one failed"),
        ),
    ],
)
def test_phase_names_what_it_waits_for(
    job: Json, job_set: Json | None, pods: list[Json], expected: tuple[str, str]
) -> None:
    assert phase_of(job, job_set, pods) == expected


def test_the_container_that_failed_first_is_named_first() -> None:
    def ended(code: int, at: str) -> list[Json]:
        return [{"name": "node", "state": {"terminated": {"exitCode": code, "finishedAt": at, "reason": "Error"}}}]

    pods = [
        pod("node", 0, "Failed", containerStatuses=ended(1, "2026-01-01T00:00:09Z")),
        pod("node", 1, "Failed", containerStatuses=ended(3, "2026-01-01T00:00:05Z")),
        pod("node", 2, "Succeeded", containerStatuses=ended(0, "2026-01-01T00:00:01Z")),
    ]
    assert [(p["metadata"]["name"], how) for p, _, how in failed_containers(pods)] == [
        ("j-node-0-1-abcde", "exited with code 3"),
        ("j-node-0-0-abcde", "exited with code 1"),
    ]
