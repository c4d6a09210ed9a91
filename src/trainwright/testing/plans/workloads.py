"""W1 to W15: what users do with TrainJobs, each played to its end. The comments of the table say what each is about.

A workload waits for what it needs to see before it goes on, so that it ends in the same state however long the operator
was kept from its work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOB_SETS,
    NAMESPACES,
    SECRETS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    Resource,
)
from trainwright.api.times import rfc3339
from trainwright.embedded import manifests
from trainwright.operator.admission.decisions import Admission, Review
from trainwright.schema.jsonobject import Json
from trainwright.testing.plans.stage import NeverHappened, Stage

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
SSH_SECRET = "job-mpi-ssh-auth"  # noqa: S105 - its name
POD_GROUPS_CRD = "podgroups.scheduling.x-k8s.io"


@dataclass(frozen=True)
class Workload:
    about: str
    play: Callable[[Player], Awaitable[None]]
    without: tuple[str, ...] = ()
    ends_in_two_ways: bool = False
    """Whether the status of its TrainJobs may depend on what the operator could see."""


class Player:
    """A user, who sees what is stored."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.admin = stage.server.admin

    async def create(self, resource: Resource, body: Json) -> None:
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        await self.admin.create(resource, whole, self.stage.namespace if resource.namespaced else None)
        await self.stage.clock.settle()

    async def change(self, resource: Resource, name: str, patch: Json, manager: str = "user") -> None:
        namespace = self.stage.namespace if resource.namespaced else None
        if resource is TRAIN_JOBS:
            await self._admit(name, patch)
        await self.admin.patch(resource, patch, name=name, namespace=namespace, field_manager=manager)

    async def _admit(self, name: str, patch: Json) -> None:
        """As the API server asks an operator's webhook."""
        operator, namespace = self.stage.replicas[-1].operator, self.stage.namespace
        new = await self.admin.patch(TRAIN_JOBS, patch, name=name, namespace=namespace, dry_run=True)
        review = Review("1", "UPDATE", namespace, new, self.find(TRAIN_JOBS, name))
        decision = await Admission(self.admin, operator.views, operator.kinds).validate_train_job(review)
        if decision.code != 200:
            raise NeverHappened(f"the change of {name} is admitted: {decision.message}")

    async def remove(self, resource: Resource, name: str) -> None:
        await self.admin.delete(resource, name, self.stage.namespace if resource.namespaced else None)

    def find(self, resource: Resource, name: str = "job") -> Json | None:
        return self.stage.server.get(resource, name, self.stage.namespace)

    async def until_state(self, state: str, name: str = "job") -> None:
        def holds() -> bool:
            found = self.find(TRAIN_JOBS, name)
            return found is not None and (found.get("status") or {}).get("state") == state

        await self.stage.until(f"state {state} of {name}", holds)
        if state == "Suspended":
            await self.stage.until(f"the JobSet of {name} is suspended", lambda: self._is_at_rest(name))

    def _is_at_rest(self, name: str) -> bool:
        conditions = ((self.find(JOB_SETS, name) or {}).get("status") or {}).get("conditions") or ()
        return any(item["type"] == "Suspended" and item["status"] == "True" for item in conditions)

    async def until_gone(self, resource: Resource, name: str = "job") -> None:
        await self.stage.until(f"{resource.kind} {name} gone", lambda: self.find(resource, name) is None)

    async def start(self, name: str = "job", runtime: Json | None = None, **spec: Any) -> None:
        """A cluster's runtime, if it is not there, and a TrainJob of it."""
        body = runtime or cluster_runtime(torch={})
        if self.stage.server.get(CLUSTER_TRAINING_RUNTIMES, body["metadata"]["name"]) is None:
            await self.create(CLUSTER_TRAINING_RUNTIMES, body)
        await self.create(TRAIN_JOBS, train_job(name, body["metadata"]["name"], **spec))


def _node(name: str = "node", step: str = "trainer", **more: Any) -> Json:
    pod = {"spec": {"containers": [{"name": "node" if step == "trainer" else step, "image": "python"}]}}
    labels = {"metadata": {"labels": {STEP: step}}} if step else {}
    return {"name": name, "template": {**labels, "spec": {"template": pod}}, **more}


def cluster_runtime(name: str = "it", *nodes: Json, more: Json | None = None, **policy: Any) -> Json:
    template = {"spec": {"replicatedJobs": list(nodes) or [_node()]}}
    return {
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 2, **policy}, "template": template, **(more or {})},
    }


def mpi_runtime() -> Json:
    policy = {"runLauncherAsNode": True, "numProcPerNode": 2}
    return cluster_runtime("it", _node("launcher"), _node("node", ""), mpi=policy)


def _selecting(manager: str, selector: Json) -> Json:
    """A patch that puts the pods onto some nodes."""
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": selector}}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def train_job(name: str, runtime: str = "it", **spec: Any) -> Json:
    reference = {"name": runtime}
    return {"metadata": {"name": name}, "spec": {"runtimeRef": reference, **spec}}


async def completes(player: Player) -> None:
    await player.start(trainer={"numNodes": 2})
    await player.until_state("Complete")


async def is_made_again(player: Player) -> None:
    player.stage.cast.ending["job"] = "hang"
    await player.start(runtime=mpi_runtime())
    await player.until_state("Running")
    await player.change(SECRETS, SSH_SECRET, {"metadata": {"finalizers": ["example.com/slow"]}})
    await player.remove(TRAIN_JOBS, "job")
    player.stage.cast.ending["job"] = "complete"
    await player.until_gone(TRAIN_JOBS)
    await player.create(TRAIN_JOBS, train_job("job"))
    await player.stage.wait(5)  # what the first one left is still there
    await player.change(SECRETS, SSH_SECRET, {"metadata": {"finalizers": None}})
    await player.until_state("Complete")


async def is_suspended_and_resumed(player: Player) -> None:
    player.stage.cast.ending["job"] = "hang"
    await player.start()
    await player.until_state("Running")
    for suspend, state in ((True, "Suspended"), (False, "Running"), (True, "Suspended")):
        await player.change(TRAIN_JOBS, "job", {"spec": {"suspend": suspend}})
        await player.until_state(state)


async def completes_over_mpi(player: Player) -> None:
    await player.start(runtime=mpi_runtime())
    await player.until_state("Complete")


async def fails_and_its_workload_goes(player: Player) -> None:
    runtime = cluster_runtime(torch={})
    runtime["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = 20
    player.stage.cast.ending["job"] = "fail"
    await player.start(runtime=runtime)
    await player.until_state("Failed")
    await player.until_gone(JOB_SETS)


async def runs_into_its_deadline(player: Player) -> None:
    player.stage.cast.ending["job"] = "hang"
    await player.start(activeDeadlineSeconds=600)  # longer than any plan keeps the operator blind
    await player.until_state("Failed")
    await player.until_gone(JOB_SETS)


async def survives_its_runtime(player: Player) -> None:
    player.stage.cast.ending["job"] = "hang"
    await player.create(TRAINING_RUNTIMES, cluster_runtime(torch={}))
    body = train_job("job", runtimePatches=[_selecting("example.com/queue", {"a": "1"})])
    body["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    await player.create(TRAIN_JOBS, body)
    await player.until_state("Running")
    other = {"template": {"spec": {"replicatedJobs": [_node("worker")]}}, "mlPolicy": {"numNodes": 7}}
    await player.change(TRAINING_RUNTIMES, "it", {"spec": other})
    await player.change(TRAIN_JOBS, "job", {"spec": {"suspend": True}})
    await player.until_state("Suspended")
    await player.remove(TRAINING_RUNTIMES, "it")
    await player.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
    await player.until_state("Running")
    player.stage.cast.ending["job"] = "complete"
    await player.until_state("Complete")


async def is_patched_by_two_managers(player: Player) -> None:
    await player.start(suspend=True)
    await player.until_state("Suspended")
    patches = []
    for manager, selector in (("example.com/one", {"a": "1"}), ("example.com/two", {"b": "2"})):
        patches.append(_selecting(manager, selector))
        await player.change(TRAIN_JOBS, "job", {"spec": {"runtimePatches": patches}}, manager)
    await player.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
    await player.until_state("Complete")


async def is_initialized_first(player: Player) -> None:
    first = [_node("dataset-initializer", "dataset-initializer"), _node("model-initializer", "model-initializer")]
    depends = [
        {"name": "dataset-initializer", "status": "Complete"},
        {"name": "model-initializer", "status": "Complete"},
    ]
    runtime = cluster_runtime("it", *first, _node("node", dependsOn=depends), torch={})
    initializer = {"dataset": {"storageUri": "hf://data"}, "model": {"storageUri": "hf://model"}}
    await player.start(runtime=runtime, initializer=initializer)
    await player.until_state("Complete")


async def waits_for_a_kind(player: Player) -> None:
    more = {"podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": 60}}}
    await player.start(runtime=cluster_runtime(more=more, torch={}))
    await player.stage.wait(20)
    [definition] = [crd for crd in manifests.crds() if crd["metadata"]["name"] == POD_GROUPS_CRD]
    await player.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    await player.until_state("Complete")


async def goes_with_its_namespace(player: Player) -> None:
    player.stage.cast.ending.update({"job": "hang", "other": "hang"})
    await player.start()
    await player.start("other")
    await player.until_state("Running")
    await player.until_state("Running", "other")
    await player.remove(NAMESPACES, player.stage.namespace)
    await player.until_gone(TRAIN_JOBS)
    await player.until_gone(TRAIN_JOBS, "other")
    await player.until_gone(JOB_SETS)


async def reports_its_progress(player: Player) -> None:
    player.stage.cast.ending["job"] = "hang"
    await player.start()
    await player.until_state("Running")
    for percentage in (10, 40, 90):
        when = rfc3339(player.stage.clock.wall())
        found = player.find(TRAIN_JOBS)
        assert found is not None
        report = {"progressPercentage": percentage, "lastUpdatedTime": when}
        body = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": "job", "namespace": player.stage.namespace, "uid": found["metadata"]["uid"]},
            "status": {"trainerStatus": report},
        }
        await player.admin.apply(
            TRAIN_JOBS,
            body,
            name="job",
            namespace=player.stage.namespace,
            field_manager="trainer-status",
            subresource="status",
        )
        if percentage == 40:
            player.stage.cast.ending["job"] = "complete"
        await player.stage.wait(0.5)
    await player.until_state("Complete")


async def belongs_to_somebody_else(player: Player) -> None:
    await player.start(managedBy="kueue.x-k8s.io/multikueue")
    await player.create(TRAIN_JOBS, train_job("lost", "no-such-runtime"))
    await player.start("ours")
    await player.until_state("Complete", "ours")

    def says_why() -> bool:
        status = (player.find(TRAIN_JOBS, "lost") or {}).get("status") or {}
        return "no-such-runtime" in str(status.get("message"))

    await player.stage.until("the job without a runtime says so", says_why)


async def loses_its_workload_when_it_ends(player: Player) -> None:
    await player.start()

    def has_ended() -> bool:
        conditions = ((player.find(JOB_SETS) or {}).get("status") or {}).get("conditions") or ()
        return any(item["type"] == "Completed" for item in conditions)

    await player.stage.until("the JobSet completes", has_ended)
    await player.remove(JOB_SETS, "job")
    found = ("Complete", "Failed")
    await player.stage.until("the job ends", lambda: _state(player.find(TRAIN_JOBS)) in found)


def _state(job: Json | None) -> str:
    return str(((job or {}).get("status") or {}).get("state"))


async def is_of_every_framework(player: Player) -> None:
    policies: dict[str, Json] = {"jax": {"jax": {}}, "xgboost": {"xgboost": {}}, "flux": {"flux": {}}, "plain": {}}
    for name, policy in policies.items():
        await player.start(name, cluster_runtime(f"{name}-runtime", **policy))
    for name in policies:
        await player.until_state("Complete", name)


WORKLOADS = {
    "W1": Workload("a torch job of two nodes completes", completes),
    "W2": Workload("a job is deleted and made again under its name", is_made_again),
    "W3": Workload("a job is suspended, resumed and suspended", is_suspended_and_resumed),
    "W4": Workload("an MPI job with its Secret completes", completes_over_mpi),
    "W5": Workload("a job fails, and its JobSet's time to live ends", fails_and_its_workload_goes),
    "W6": Workload("a job runs into its deadline", runs_into_its_deadline),
    "W7": Workload("the runtime is edited and deleted while a job runs", survives_its_runtime),
    "W8": Workload("two managers patch a suspended job", is_patched_by_two_managers),
    "W9": Workload("initializers come first", is_initialized_first),
    "W10": Workload("PodGroups are installed later", waits_for_a_kind, (POD_GROUPS_CRD,)),
    "W11": Workload("the namespace is deleted", goes_with_its_namespace),
    "W12": Workload("progress is reported meanwhile", reports_its_progress),
    "W13": Workload(
        "a job of another controller is left alone, one without a runtime says so", belongs_to_somebody_else
    ),
    "W14": Workload("jax, xgboost, flux and plain jobs complete", is_of_every_framework),
    "W15": Workload("the JobSet is removed when it ends", loses_its_workload_when_it_ends, ends_in_two_ways=True),
}
