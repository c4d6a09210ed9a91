"""Elastic jobs: the workload follows the TrainJob's nodes while it runs; a test plays JobSet and the Job controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trainwright.api.resources import EVENTS, JOB_SETS, JOBS, TRAIN_JOBS
from trainwright.client.errors import Invalid
from trainwright.schema.jsonobject import Json
from unit.operator.world import World, runtime, train_job

IMMUTABLE = "admission webhook denied the request: spec.replicatedJobs: field is immutable"


def elastic_runtime(**policy: Any) -> Json:
    made = runtime(torch={"elasticPolicy": {"minNodes": 2, "maxNodes": 4, **policy}})
    del made["spec"]["mlPolicy"]["numNodes"]
    return made


async def add_job(world: World, nodes: int, of: str = "job") -> Json:
    """JobSet makes the Job of the nodes, as its template says."""
    job_set = world.job_set(of)
    template = job_set["spec"]["replicatedJobs"][0]["template"]
    labels = {"jobset.sigs.k8s.io/jobset-name": "job", "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    owner = {
        "apiVersion": JOB_SETS.api_version,
        "kind": "JobSet",
        "name": of,
        "uid": job_set["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": "job-node-0",
        "labels": {**template["metadata"]["labels"], **labels},
        "ownerReferences": [owner],
    }
    spec = {**template["spec"], "completionMode": "Indexed", "parallelism": nodes, "completions": nodes}
    return await world.add(JOBS, {"metadata": metadata, "spec": spec})


async def run_nodes(world: World, present: int, ready: int) -> None:
    counts = {"startTime": "2026-01-01T00:00:00Z", "active": present, "ready": ready}
    await world.change_status(JOBS, "job-node-0", counts)
    await world.settle(1.5)


@asynccontextmanager
async def training(nodes: int | None = 2, *, gate: bool = False, **policy: Any) -> AsyncIterator[World]:
    """A world in which an elastic job trains; without JobSet's gate its webhook refuses every change."""
    async with World(runtimes=[elastic_runtime(**policy)]) as world:
        trainer = {"image": "a"} if nodes is None else {"image": "a", "numNodes": nodes}
        await world.add(TRAIN_JOBS, train_job(trainer=trainer))
        await world.settle(1.5)
        if not gate:
            world.refuse(422, IMMUTABLE, method="PATCH", path=r"/jobsets/job(\?|$)")
        await add_job(world, nodes or 2)
        await run_nodes(world, nodes or 2, nodes or 2)
        yield world


async def scale(world: World, nodes: int) -> None:
    await world.change(TRAIN_JOBS, "job", {"spec": {"replicas": nodes}}, "scale")
    await world.settle(1.5)


def count(world: World) -> tuple[int, int]:
    spec = world.get(JOBS, "job-node-0")["spec"]
    return spec["parallelism"], spec["completions"]


async def test_the_status_says_how_many_nodes_there_are() -> None:
    async with training() as world:
        assert world.status()["elastic"] == {
            "minNodes": 2,
            "maxNodes": 4,
            "wantedNodes": 2,
            "nodes": 2,
            "readyNodes": 2,
            "selector": "jobset.sigs.k8s.io/jobset-name=job,trainwright.dev/elastic=true",
        }
        assert (world.status()["state"], world.status()["message"]) == (
            "Running",
            "training on 2 nodes (between 2 and 4)",
        )


async def test_the_job_of_the_nodes_is_scaled_where_jobset_refuses() -> None:
    async with training() as world:
        before = world.job_set()["metadata"]["resourceVersion"]
        await scale(world, 4)
        assert count(world) == (4, 4)
        assert world.job_set()["metadata"]["resourceVersion"] == before
        await run_nodes(world, 4, 3)
        assert world.status()["message"] == "training on 3 of 4 nodes (between 2 and 4); waiting for 1 to join"
        await scale(world, 2)
        assert count(world) == (2, 2)


async def test_jobset_is_asked_first() -> None:
    async with training(gate=True) as world:
        await scale(world, 3)
        template = world.job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert (template["parallelism"], template["completions"]) == (3, 3)


async def test_a_job_that_jobset_made_anew_gets_the_nodes_that_are_wanted_now() -> None:
    async with training() as world:
        await scale(world, 4)
        await world.remove(JOBS, "job-node-0")
        await world.settle(5)
        await add_job(world, 2)
        await world.settle(1.5)
        assert count(world) == (4, 4)


async def test_a_restarted_operator_scales_too() -> None:
    async with training() as world:
        await scale(world, 3)
        await world.restart()
        await scale(world, 4)
        assert count(world) == (4, 4)
        written = len(world.writes)
        await world.restart()
        await world.settle(5)
        assert len(world.writes) == written, "converged, it writes nothing"


async def test_a_job_without_a_number_begins_with_the_fewest() -> None:
    async with training(None) as world:
        assert world.get(TRAIN_JOBS, "job")["spec"]["trainer"] == {"image": "a", "numNodes": 2}


async def test_a_job_of_another_jobset_is_left_alone() -> None:
    async with World(runtimes=[elastic_runtime()]) as world:
        await world.add(TRAIN_JOBS, train_job(trainer={"numNodes": 2}))
        await world.settle(1.5)
        await world.add(JOB_SETS, {"metadata": {"name": "other"}, "spec": world.job_set()["spec"]})
        await add_job(world, 3, of="other")
        await world.settle(1.5)
        assert count(world) == (3, 3)
        assert world.status()["elastic"]["nodes"] == 0


async def test_where_neither_way_works_the_job_says_so() -> None:
    async with training() as world:
        world.refuse(403, "jobs.batch is forbidden", method="PATCH", path=r"/jobs/job-node-0")
        await scale(world, 3)
        assert count(world) == (2, 2)
        assert world.status()["state"] == "Running"
        assert "the nodes cannot be changed to 3: Job" in world.status()["message"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"numNodes": 1}, "no fewer nodes than status.elastic.minNodes"),
        ({"numNodes": 5}, "no more than status.elastic.maxNodes"),
        ({"image": "b"}, "field is immutable"),
        ({"numNodes": 3, "command": ["x"]}, "field is immutable"),
    ],
)
async def test_nothing_but_the_nodes_may_change_and_only_within_the_limits(change: Json, said: str) -> None:
    async with training() as world:
        with pytest.raises(Invalid, match=said):
            await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": change}})
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"numNodes": 3}}})


async def test_other_jobs_and_jobs_that_have_ended_cannot_be_scaled() -> None:
    async with World(runtimes=[runtime(torch={})]) as world:
        await world.add(TRAIN_JOBS, train_job(trainer={"numNodes": 2}))
        await world.settle(1.5)
        with pytest.raises(Invalid, match="field is immutable"):
            await scale(world, 3)
    async with training() as world:
        await world.finish_job_set()
        await world.settle(1.5)
        assert world.status()["state"] == "Complete"
        with pytest.raises(Invalid, match="field is immutable"):
            await scale(world, 3)


async def test_joins_and_losses_are_told_by_events() -> None:
    async with training() as world:
        await scale(world, 3)
        await run_nodes(world, 3, 3)
        await run_nodes(world, 3, 2)
        told = {(event["type"], event["reason"], event["message"]) for event in world.all(EVENTS)}
        assert ("Normal", "NodesJoined", "3 of 3 nodes are ready, 2 were") in told
        assert ("Warning", "NodesLost", "2 of 3 nodes are ready, 3 were") in told
        await run_nodes(world, 3, 1)
        assert world.status()["message"] == "waiting for nodes: 1 of 3 are ready, and training needs 2"
