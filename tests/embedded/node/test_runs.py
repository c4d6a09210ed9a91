"""Pods of runs: their lines and outputs outlive them, and nobody gets into another's run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.node.cluster import Cluster, pod, running_cluster
from trainwright.api.resources import PODS
from trainwright.runs import Record, RunsHome
from trainwright.runs.logs import log_files, merged
from trainwright.schema.jsonobject import Json


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as running:
        yield running


def of_run(body: Json, id: str, trainjob: str) -> Json:
    body["metadata"]["annotations"] = {"trainwright.dev/run": id, "trainwright.dev/run-trainjob": trainjob}
    return body


def lines_of(cluster: Cluster, id: str) -> list[tuple[int, str]]:
    run = RunsHome(cluster.directory).of(id)
    return [(line.source.attempt, line.text) for line in merged(log_files(run))]


async def test_lines_outputs_and_environment_are_the_run_s_and_outlive_the_pod(
    cluster: Cluster, tmp_path: Path
) -> None:
    home = RunsHome(cluster.directory)
    run = home.create(Record(id="job-abcde", name="job"), environment={"WANDB_MODE": "offline", "OWN": "caller's"})
    script = "echo $WANDB_MODE $OWN; echo model > $TRAINWRIGHT_OUTPUT/model.pt; pwd"
    body = of_run(
        pod("p", "sh", "-c", script, container={"env": [{"name": "OWN", "value": "container's"}]}),
        "job-abcde",
        "job/uid-1",
    )
    body["metadata"]["annotations"]["trainwright.dev/workdir"] = str(tmp_path)
    created = await cluster.create(PODS, body)
    await cluster.until_pod("p", "Succeeded")
    wanted = f"offline container's\n{tmp_path}\n"
    assert await cluster.log("p") == wanted, "the API serves the same lines"
    on_disk = (cluster.directory / "node" / "pods" / created["metadata"]["uid"] / "pod.json").read_text()
    assert "offline" not in on_disk, "the caller's environment is in its own file alone"
    await cluster.client.delete(PODS, "p", "default")
    await cluster.until_gone(PODS, "p")
    assert [text for _, text in lines_of(cluster, "job-abcde")] == wanted.splitlines()
    assert (run.output / "model.pt").read_text() == "model\n"
    found = home.read("job-abcde")
    assert found is not None
    assert found.uid == "uid-1", "the run is this TrainJob's from its first pod on"


async def test_every_restart_has_its_own_lines(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"if [ -e {mark} ]; then echo again; else touch {mark}; echo first; exit 1; fi"
    await cluster.create(PODS, of_run(pod("p", "sh", "-c", script, restartPolicy="OnFailure"), "x", "job/uid-1"))
    await cluster.until_pod("p", "Succeeded")
    assert lines_of(cluster, "x") == [(1, "first"), (2, "again")]


@pytest.mark.parametrize("claim", ["job/other-uid", "other/uid-1"])
async def test_a_pod_that_names_another_s_run_gets_nothing_of_it(cluster: Cluster, claim: str) -> None:
    home = RunsHome(cluster.directory)
    run = home.create(Record(id="theirs", name="job", uid="uid-0"), environment={"HF_TOKEN": "secret"})
    await cluster.create(PODS, of_run(pod("thief", "sh", "-c", "echo token=$HF_TOKEN"), "theirs", claim))
    await cluster.until_pod("thief", "Succeeded")
    assert await cluster.log("thief") == "token=\n"
    assert lines_of(cluster, "theirs") == []
    assert not list(run.output.iterdir())


@pytest.mark.parametrize("id", ["../../outside", "a/../../b", "/etc"])
async def test_no_id_leads_out_of_the_runs(cluster: Cluster, id: str) -> None:
    before = {path.name for path in cluster.directory.iterdir()}
    await cluster.create(PODS, of_run(pod("p", "echo", "hello"), id, "job/12345678-uid"))
    await cluster.until_pod("p", "Succeeded")
    assert [text for _, text in lines_of(cluster, "job-12345")] == ["hello"], "it has the run of its TrainJob"
    assert {path.name for path in cluster.directory.iterdir()} - before <= {"runs"}


async def test_a_working_directory_that_is_gone_is_named(cluster: Cluster, tmp_path: Path) -> None:
    body = of_run(pod("p", "true"), "x", "job/uid-1")
    body["metadata"]["annotations"]["trainwright.dev/workdir"] = str(tmp_path / "gone")
    await cluster.create(PODS, body)
    failed = await cluster.until_pod("p", "Failed")
    assert f"working directory {tmp_path}/gone" in str(failed["status"])
