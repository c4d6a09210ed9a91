"""The operator over our own API server, with its real CRDs: every request is HTTP over TLS, nothing is in between.

The workload controllers are away: tests play the JobSet controller by writing a JobSet's status themselves.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    JOB_SETS,
    NAMESPACES,
    SECRETS,
    TRAIN_JOBS,
    Resource,
)
from trainwright.client import Client, HttpTransport, NotFound, kubeconfig
from trainwright.embedded.apiserver import ApiServer
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Crash, DropAfter, DropBefore, Fault, FaultyTransport, Rule

CRDS = Path(__file__).parents[3] / "manifests" / "crds"


class Cluster:
    def __init__(self, server: ApiServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.namespace = "default"

    async def move(self, namespace: str) -> None:
        """The next story is played there."""
        await self.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.namespace = namespace

    @asynccontextmanager
    async def operator(self, *rules: Rule) -> AsyncIterator[FaultyTransport]:
        transport = FaultyTransport(HttpTransport(kubeconfig.load(self.server.kubeconfig)), list(rules))
        async with Client(transport) as client:
            operator = Operator(client, Settings(unused_revision_seconds=3600.0))
            task = asyncio.create_task(operator.run())
            while not operator.is_ready and not transport.crashed.is_set():
                await asyncio.sleep(0.02)
            yield transport
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def find(self, resource: Resource, name: str) -> Json | None:
        try:
            return await self.client.get(resource, name, self.namespace)
        except NotFound:
            return None

    async def until(self, question: Callable[[], Awaitable[Any]], seconds: float = 20.0) -> Any:
        end = time.monotonic() + seconds
        while not (answer := await question()):
            assert time.monotonic() < end, "it did not come to pass in time"
            await asyncio.sleep(0.02)
        return answer

    async def until_state(self, state: str) -> Json:
        async def has_state() -> Json | None:
            job = await self.find(TRAIN_JOBS, "job")
            return job if job is not None and (job.get("status") or {}).get("state") == state else None

        job: Json = await self.until(has_state)
        return job

    async def finish(self, kind: str = "Completed") -> None:
        end = {
            "type": kind,
            "status": "True",
            "reason": "AllJobsCompleted",
            "message": "as the test says",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await self.until(lambda: self.find(JOB_SETS, "job"))
        await self.client.patch(
            JOB_SETS, {"status": {"conditions": [end]}}, name="job", namespace=self.namespace, subresource="status"
        )


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with ApiServer(tmp_path / "cluster") as server:
        await server.install(yaml.safe_load(file.read_text()) for file in sorted(CRDS.glob("**/*.yaml")))
        async with Client.to(kubeconfig.load(server.kubeconfig)) as client:
            await client.create(CLUSTER_TRAINING_RUNTIMES, mpi_runtime())
            yield Cluster(server, client)


def mpi_runtime() -> Json:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pod = {"spec": {"containers": [{"name": "node", "image": "none"}]}}
    launcher = {"name": "launcher", "template": {"metadata": {"labels": labels}, "spec": {"template": pod}}}
    node = {"name": "node", "template": {"spec": {"template": pod}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "mpi"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "mpi": {"runLauncherAsNode": True}},
            "template": {"spec": {"replicatedJobs": [launcher, node]}},
        },
    }


def train_job(**spec: Any) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"runtimeRef": {"name": "mpi"}, "trainer": {"numNodes": 2}, **spec},
    }


async def test_a_job_gets_its_children_and_they_go_with_it(cluster: Cluster) -> None:
    async with cluster.operator():
        job = await cluster.client.create(TRAIN_JOBS, train_job(), "default")
        await cluster.until_state("Pending")
        children = (
            (JOB_SETS, "job"),
            (CONFIG_MAPS, "job-mpi-hostfile"),
            (SECRETS, "job-mpi-ssh-auth"),
        )
        for resource, name in children:
            child = await cluster.until(functools.partial(cluster.find, resource, name))
            assert child["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        await cluster.finish()
        await cluster.until_state("Complete")
        await cluster.client.delete(TRAIN_JOBS, "job", "default")
        for resource, name in children:

            async def is_gone(resource: Resource = resource, name: str = name) -> bool:
                return await cluster.find(resource, name) is None

            await cluster.until(is_gone)


async def test_a_second_operator_finds_nothing_to_write(cluster: Cluster) -> None:
    async with cluster.operator():
        await cluster.client.create(TRAIN_JOBS, train_job(), "default")
        await cluster.until_state("Pending")
        await asyncio.sleep(0.5)
    async with cluster.operator() as second:
        await asyncio.sleep(1.0)
        assert [f"{request.method} {request.path}" for request in second.writes] == []


async def play(cluster: Cluster, *rules: Rule) -> tuple[Json, int]:
    """A job from suspension to its end, by operators that are replaced when they die; and how much was written."""
    ends = asyncio.Event()
    writes = 0

    async def operate() -> None:
        nonlocal writes
        remaining = rules
        while not ends.is_set():
            async with cluster.operator(*remaining) as transport:
                remaining = ()
                dead = asyncio.create_task(transport.crashed.wait())
                ended = asyncio.create_task(ends.wait())
                await asyncio.wait({dead, ended}, return_when=asyncio.FIRST_COMPLETED)
                dead.cancel()
                ended.cancel()
                writes += len(transport.writes)

    operators = asyncio.create_task(operate())
    await cluster.client.create(TRAIN_JOBS, train_job(suspend=True), cluster.namespace)
    await cluster.until_state("Suspended")
    await cluster.until(lambda: cluster.find(JOB_SETS, "job"))
    await cluster.client.patch(TRAIN_JOBS, {"spec": {"suspend": False}}, name="job", namespace=cluster.namespace)

    async def is_resumed() -> bool:
        found = await cluster.find(JOB_SETS, "job")
        return found is not None and not found["spec"].get("suspend")

    await cluster.until(is_resumed)
    await cluster.finish()
    await cluster.until_state("Complete")

    async def is_free() -> bool:
        runtime = await cluster.client.get(CLUSTER_TRAINING_RUNTIMES, "mpi")
        return not runtime["metadata"].get("finalizers")

    await cluster.until(is_free)
    ends.set()
    await operators
    return await end_state(cluster), writes


async def end_state(cluster: Cluster) -> Json:
    """What is there, without what two runs may differ in."""
    state: Json = {}
    for resource in (TRAIN_JOBS, JOB_SETS, CONFIG_MAPS, SECRETS, CONTROLLER_REVISIONS):
        for thing in (await cluster.client.list(resource, cluster.namespace)).items or ():
            metadata = thing["metadata"]
            kept = {key: thing.get(key) for key in ("spec", "status", "type", "immutable")}
            kept["data"] = sorted(thing.get("data") or ()) if resource is SECRETS else thing.get("data")
            kept["labels"], kept["owners"] = metadata.get("labels"), len(metadata.get("ownerReferences") or ())
            text = re.sub(r'"workloadUID": "[^"]*"', '"workloadUID": "<uid>"', json.dumps(kept))
            text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)
            state[f"{resource.kind}/{metadata['name']}"] = json.loads(text)
    return state


@pytest.mark.parametrize("fault", [Crash(), Crash(after=False), DropAfter(), DropBefore()], ids=str)
@pytest.mark.timeout(300)
async def test_whichever_write_is_lost_or_the_last_one_of_its_operator_the_job_ends_alike(
    cluster: Cluster, fault: Fault
) -> None:
    undisturbed, writes = await play(cluster)
    assert writes >= 9
    for number in range(1, writes + 1):
        await cluster.move(f"write-{number}")
        disturbed, _ = await play(cluster, Rule(fault, nth=number, writes_only=True))
        assert disturbed == undisturbed, f"write {number} of {writes}"
