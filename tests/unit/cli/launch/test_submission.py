"""A TrainJob is created with what belongs to it, owns it afterwards, and leaves nothing behind when it is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from trainwright.api.resources import CONFIG_MAPS, SECRETS, TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.api.wellknown import RUN
from trainwright.cli.failure import Failure
from trainwright.cli.launch.runtimes import runtime_of_run
from trainwright.cli.launch.submission import Submission
from trainwright.cli.launch.travel import Luggage
from trainwright.embedded import manifests
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Respond, Rule
from trainwright.testing.virtualserver import VirtualServer


@pytest.fixture
async def server() -> AsyncIterator[VirtualServer]:
    async with VirtualServer() as running:
        yield running


def submission(**trainer: object) -> Submission:
    job: Json = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": "train-x", "annotations": {RUN: "train-x"}},
        "spec": {"runtimeRef": {"name": "train-x", "kind": "TrainingRuntime"}, "trainer": trainer},
    }
    shipped = next(iter(manifests.objects("runtimes/plain.yaml")))
    belongings = [
        *Luggage(run="train-x", job="node", variables={"TOKEN": "x"}).objects(),
        runtime_of_run(shipped, name="train-x", retries=1),
    ]
    return Submission(job, [], "default", belongings=belongings)


async def test_belongings_are_there_first_and_owned_afterwards(server: VirtualServer) -> None:
    made = submission(numNodes=2)
    await made.create_belongings(server.client)
    assert server.get(TRAIN_JOBS, "train-x") is None
    job = await made.create(server.client)
    assert await made.own_belongings(server.client, job) == []
    for resource in (SECRETS, TRAINING_RUNTIMES):
        found = server.get(resource, "train-x")
        assert found is not None
        [owner] = found["metadata"]["ownerReferences"]
        assert owner["uid"] == job["metadata"]["uid"]


async def test_what_cannot_be_owned_is_said_and_the_job_runs(server: VirtualServer) -> None:
    made = submission()
    await made.create_belongings(server.client)
    job = await made.create(server.client)
    server.faults.rules.append(Rule(Respond(403, "you may not"), method="PATCH", path=".*/secrets/.*"))
    [fault] = await made.own_belongings(server.client, job)
    assert fault.startswith("Secret train-x will not be deleted with the TrainJob")
    assert server.get(TRAIN_JOBS, "train-x") is not None
    runtime = server.get(TRAINING_RUNTIMES, "train-x")
    assert runtime is not None
    assert runtime["metadata"]["ownerReferences"], "the others are owned"


async def test_one_belonging_that_is_refused_takes_the_others_back(server: VirtualServer) -> None:
    server.faults.rules.append(Rule(Respond(403, "you may not"), method="POST", path=".*/trainingruntimes"))
    with pytest.raises(Failure, match=r"TrainingRuntime train-x of the run: .*you may not"):
        await submission().create_belongings(server.client)
    assert server.get(SECRETS, "train-x") is None


async def test_a_check_stores_nothing_and_finds_a_typo_beside_a_job_of_the_same_name(server: VirtualServer) -> None:
    await submission().check(server.client)
    assert server.get(TRAIN_JOBS, "train-x") is None
    await submission().create(server.client)
    await submission().check(server.client)
    with pytest.raises(Failure, match=r'unknown field "spec\.trainer\.numNode"'):
        await submission(numNode=2).check(server.client)


async def test_companions_are_applied_again_and_again(server: VirtualServer) -> None:
    data: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"lr": "1"}}
    job: Json = {"metadata": {"name": "j", "annotations": {RUN: "j-x"}}}
    for rate in ("1", "2"):
        data["data"]["lr"] = rate
        await Submission(job, [data], "default").apply_companions(server.client)
        stored = server.get(CONFIG_MAPS, "settings")
        assert stored is not None
        assert stored["data"] == {"lr": rate}
