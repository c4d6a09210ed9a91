"""Stories: what users do with TrainJobs, each played to its end in a namespace of its own.

In: a REST client and a namespace. Out: a namespace in the state in which the story ends, whoever operated it. Runtimes
are namespaced, so that stories do not meet; pods end as `trainwright.testing.nodes` lets them.
"""

from __future__ import annotations

from collections.abc import Callable

from trainwright.schema.jsonobject import Json
from trainwright.testing.nodes import OUTCOME_VARIABLE
from trainwright.testing.oracle import has_condition
from trainwright.testing.rest import Rest

Story = Callable[[Rest, str], None]

SECONDS = 120.0  # a second or two on two free cores


def base(namespace: str) -> str:
    return f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}"


def jobsets(namespace: str) -> str:
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"


def runtime(name: str, policy: Json, **spec: object) -> Json:
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    pod = {"spec": {"containers": [{"name": "node", "image": "none"}]}}
    node = {"name": "node", "template": {"metadata": step, "spec": {"backoffLimit": 0, "template": pod}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [node]}}, **spec},
    }


def trainjob(name: str, runtime: str, outcome: str = "complete", **spec: object) -> Json:
    trainer = {"numNodes": 2, "env": [{"name": OUTCOME_VARIABLE, "value": outcome}]}
    reference = {"name": runtime, "kind": "TrainingRuntime"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": reference, "trainer": trainer, **spec},
    }


TORCH = {"numNodes": 1, "torch": {}}
MPI: Json = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", "numProcPerNode": 1, "runLauncherAsNode": True}}


def create(rest: Rest, namespace: str, *items: Json) -> None:
    for item in items:
        plural = "trainjobs" if item["kind"] == "TrainJob" else "trainingruntimes"
        rest.create(f"{base(namespace)}/{plural}", item)


def until_state(rest: Rest, namespace: str, state: str, name: str = "job") -> Json:
    """Wait until `status.state` says so, and for a finished TrainJob its conditions too."""

    def holds(job: Json | None) -> bool:
        if job is None or job.get("status", {}).get("state") != state:
            return False
        return state not in ("Complete", "Failed") or has_condition(job, state)

    job = rest.until(f"{base(namespace)}/trainjobs/{name}", holds, what=f"state {state}", seconds=SECONDS)
    assert job is not None
    return job


def completes(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("torch", TORCH), trainjob("job", "torch"))
    until_state(rest, namespace, "Complete")


def fails(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("torch", TORCH), trainjob("job", "torch", "fail"))
    until_state(rest, namespace, "Failed")


def completes_over_mpi(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("mpi", MPI), trainjob("job", "mpi"))
    until_state(rest, namespace, "Complete")


def is_suspended_patched_and_resumed(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("torch", TORCH), trainjob("job", "torch", suspend=True))
    until_state(rest, namespace, "Suspended")
    job = f"{base(namespace)}/trainjobs/job"
    node = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-0"}}}}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": node}]}}
    patches = [{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": template}}]
    rest.patch(job, {"spec": {"runtimePatches": patches}})
    rest.patch(job, {"spec": {"suspend": False}})
    until_state(rest, namespace, "Complete")


def runs_into_its_deadline(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("torch", TORCH), trainjob("job", "torch", "hang", activeDeadlineSeconds=6))
    until_state(rest, namespace, "Failed")
    rest.until(f"{jobsets(namespace)}/job", lambda found: found is None, what="JobSet gone", seconds=SECONDS)


def is_deleted_and_made_again(rest: Rest, namespace: str) -> None:
    create(rest, namespace, runtime("torch", TORCH), trainjob("job", "torch", "hang"))
    until_state(rest, namespace, "Running")
    rest.delete(f"{base(namespace)}/trainjobs/job")
    create(rest, namespace, trainjob("job", "torch"))
    until_state(rest, namespace, "Complete")


STORIES: tuple[Story, ...] = (
    completes,
    fails,
    completes_over_mpi,
    is_suspended_patched_and_resumed,
    runs_into_its_deadline,
    is_deleted_and_made_again,
)
