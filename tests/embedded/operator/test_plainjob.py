"""The example plugin PlainJob on a local cluster: TrainJobs that run as plain Jobs, with real processes.

The operator finds the plugin in a directory. Job controller, scheduler and node are those of the local cluster.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import processes_of
from embedded.node.cluster import Cluster, running_cluster
from trainwright.api.configuration import PluginsConfig, local
from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, JOBS, PODS, TRAIN_JOBS
from trainwright.embedded.manifests import objects
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.schema.jsonobject import Json
from waiting import until

PLAINJOB = Path(__file__).parents[3] / "examples" / "plugins" / "plainjob" / "trainwright_plainjob.py"


@asynccontextmanager
async def running_operator(cluster: Cluster, plugins: Path) -> AsyncIterator[Operator]:
    configuration = msgspec.structs.replace(local(), plugins=PluginsConfig(directory=str(plugins)))
    operator = Operator(cluster.client, Settings(configuration=configuration))
    task = asyncio.create_task(operator.run())
    try:
        await until("the operator to be ready", lambda: operator.is_ready)
        yield operator
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copyfile(PLAINJOB, plugins / PLAINJOB.name)
    (plugins / PLAINJOB.name).chmod(0o644)
    async with running_cluster(tmp_path / "cluster") as cluster:
        await cluster.server.install(objects("crds"))
        await cluster.client.create(CLUSTER_TRAINING_RUNTIMES, runtime())
        async with running_operator(cluster, plugins):
            yield cluster


def runtime(**policy: Any) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "none"}]}
    node = {"name": "node", "template": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "it"},
        "spec": {"mlPolicy": {"numNodes": 1, **policy}, "template": {"spec": {"replicatedJobs": [node]}}},
    }


def plain(script: str, **spec: Any) -> Json:
    trainer = {"command": [sys.executable, "-c", textwrap.dedent(script)]}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "labels": {"example.com/plain-job": "true"}},
        "spec": {"runtimeRef": {"name": "it"}, "trainer": trainer, **spec},
    }


def waits_for(go: Path) -> str:
    """A program that leaves a mark when it starts, and goes on when it is told to."""
    return f"""
        import pathlib, time, uuid
        pathlib.Path({str(go)!r} + "." + uuid.uuid4().hex).touch()
        while not pathlib.Path({str(go)!r}).exists():
            time.sleep(0.02)
        print("went on to the end")
    """


def started(go: Path) -> int:
    """How often the program was started."""
    return len(list(go.parent.glob(f"{go.name}.*")))


async def until_state(cluster: Cluster, state: str) -> Json:
    async def question() -> Json | None:
        job = await cluster.get(TRAIN_JOBS, "job")
        assert job is not None
        now = job.get("status", {}).get("state")
        assert now == state or now not in ("Complete", "Failed"), job["status"]
        return job if now == state else None

    job: Json = await cluster.until(question)
    return job


async def until_started(cluster: Cluster, go: Path, count: int) -> None:
    async def question() -> bool:
        return started(go) == count

    await cluster.until(question)


async def pods(cluster: Cluster) -> list[Json]:
    found = await cluster.client.list(PODS, "default", label_selector="batch.kubernetes.io/job-name=job")
    return found.items or []


async def until_no_pod(cluster: Cluster) -> None:
    async def question() -> bool:
        return not await pods(cluster)

    await cluster.until(question)


async def test_a_plain_job_runs_a_real_process_to_complete_without_a_jobset(cluster: Cluster) -> None:
    await cluster.create(TRAIN_JOBS, plain("import os; print('rank', os.environ['JOB_COMPLETION_INDEX'])"))
    job = await until_state(cluster, "Complete")
    stored = await cluster.job("job")
    [theirs] = [it for it in stored["status"]["conditions"] if it["type"] == "Complete"]
    [ours] = [it for it in job["status"]["conditions"] if it["type"] == "Complete"]
    assert (ours["reason"], ours["message"]) == (theirs["reason"], theirs["message"])
    assert job["status"]["jobsStatus"][0]["succeeded"] == 1
    assert stored["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert await cluster.get(JOB_SETS, "job") is None
    [pod] = await pods(cluster)
    assert await cluster.log(pod["metadata"]["name"]) == "rank 0\n"


async def test_the_first_nodes_name_leads_to_the_pod_itself(cluster: Cluster) -> None:
    torch = runtime(torch={})
    torch["metadata"]["name"] = "torch"
    await cluster.client.create(CLUSTER_TRAINING_RUNTIMES, torch)
    meets_itself = """
        import os, socket
        address = os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"])
        server = socket.create_server(("", address[1]))
        socket.create_connection(address, timeout=5).sendall(address[0].encode())
        print(server.accept()[0].recv(100).decode())
    """
    await cluster.create(TRAIN_JOBS, plain(meets_itself, runtimeRef={"name": "torch"}))
    await until_state(cluster, "Complete")
    [pod] = await pods(cluster)
    assert await cluster.log(pod["metadata"]["name"]) == "job-node-0-0.job\n"


async def test_a_plain_job_that_fails_fails_the_trainjob_with_the_jobs_words(cluster: Cluster) -> None:
    await cluster.create(TRAIN_JOBS, plain("raise SystemExit(3)"))
    job = await until_state(cluster, "Failed")
    [ours] = [it for it in job["status"]["conditions"] if it["type"] == "Failed"]
    assert ours["reason"] == "BackoffLimitExceeded"


async def test_at_the_deadline_the_job_and_its_process_go(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    await cluster.create(TRAIN_JOBS, plain(waits_for(go), activeDeadlineSeconds=4))
    await until_started(cluster, go, 1)
    assert processes_of(go)
    job = await until_state(cluster, "Failed")
    assert [it["reason"] for it in job["status"]["conditions"]] == ["DeadlineExceeded"]
    await cluster.until_gone(JOBS, "job")
    await until_no_pod(cluster)
    assert not processes_of(go)


async def test_a_plain_job_is_suspended_and_resumed(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    await cluster.create(TRAIN_JOBS, plain(waits_for(go)))
    await until_started(cluster, go, 1)
    await until_state(cluster, "Running")
    first = await cluster.job("job")
    await cluster.client.patch(TRAIN_JOBS, {"spec": {"suspend": True}}, name="job", namespace="default")
    await until_state(cluster, "Suspended")
    await until_no_pod(cluster)
    assert not processes_of(go)
    await cluster.client.patch(TRAIN_JOBS, {"spec": {"suspend": False}}, name="job", namespace="default")
    await until_started(cluster, go, 2)
    go.touch()
    job = await until_state(cluster, "Complete")
    assert {it["type"]: it["status"] for it in job["status"]["conditions"]} == {
        "Suspended": "False",
        "Complete": "True",
    }
    assert (await cluster.job("job"))["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_job_deleted_by_hand_is_built_again(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    await cluster.create(TRAIN_JOBS, plain(waits_for(go)))
    await until_started(cluster, go, 1)
    first = await cluster.job("job")
    await cluster.client.delete(JOBS, "job", "default")
    await until_started(cluster, go, 2)
    go.touch()
    await until_state(cluster, "Complete")
    assert (await cluster.job("job"))["metadata"]["uid"] != first["metadata"]["uid"]
