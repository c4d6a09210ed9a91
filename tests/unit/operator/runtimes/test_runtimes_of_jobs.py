"""A TrainJob keeps the runtime it was started with: revisions, the finalizer that guards a runtime, snapshots."""

from __future__ import annotations

import json

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    JOB_SETS,
    TRAIN_JOBS,
)
from trainwright.schema.jsonobject import Json
from unit.operator.world import World, runtime, started, train_job


def runtime_with_image(image: str) -> Json:
    body = runtime()
    pod = body["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["containers"][0]["image"] = image
    return body


async def test_a_job_that_kubeflow_trainer_started_keeps_the_runtime_it_was_started_with() -> None:
    async with World(start=False) as world:
        job = await world.add(TRAIN_JOBS, train_job(suspend=True))
        owner = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "name": "job",
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        metadata = {"name": "job-runtime-snapshot", "ownerReferences": [owner]}
        snapshot = {"runtime": json.dumps(runtime_with_image("of-the-snapshot"))}
        await world.add(CONFIG_MAPS, {"metadata": metadata, "data": snapshot})
        theirs = {"metadata": {"name": "job", "ownerReferences": [owner]}, "spec": {"suspend": True}}
        await world.add(JOB_SETS, theirs)
        await world.start()
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle(2)
        assert world.job_set()["spec"]["suspend"] is False
        assert "of-the-snapshot" in json.dumps(world.job_set())


async def test_editing_the_runtime_does_not_reach_a_job_that_has_started() -> None:
    async with started(suspend=True) as world:
        await world.change(CLUSTER_TRAINING_RUNTIMES, "it", {"spec": runtime_with_image("edited")["spec"]})
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.restart()
        await world.settle(5)
        assert world.job_set()["spec"]["suspend"] is False
        assert "edited" not in json.dumps(world.job_set())


async def test_a_runtime_in_use_is_guarded_until_its_last_job_ends() -> None:
    async with started() as world:
        guarded = world.get(CLUSTER_TRAINING_RUNTIMES, "it")
        assert guarded["metadata"]["finalizers"] == ["trainer.kubeflow.org/resource-in-use"]
        await world.remove(CLUSTER_TRAINING_RUNTIMES, "it")
        await world.settle(60)
        assert world.find(CLUSTER_TRAINING_RUNTIMES, "it") is not None
        await world.finish_job_set()
        await world.settle()
        assert world.find(CLUSTER_TRAINING_RUNTIMES, "it") is None


async def test_a_runtime_that_nobody_uses_any_more_loses_its_guard() -> None:
    async with started() as world:
        await world.finish_job_set()
        await world.settle()
        assert not world.get(CLUSTER_TRAINING_RUNTIMES, "it")["metadata"].get("finalizers")


async def test_a_revision_is_removed_a_while_after_its_last_job_ended() -> None:
    async with started() as world:
        [name] = world.names(CONTROLLER_REVISIONS)
        assert world.status()["runtimeRevision"] == name
        await world.finish_job_set()
        await world.settle(30)
        assert world.names(CONTROLLER_REVISIONS) == [name]
        await world.settle(60)
        assert world.names(CONTROLLER_REVISIONS) == []
