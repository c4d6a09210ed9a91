"""A TrainJob trains once, and starts by a single request: whatever the operator did not see, it neither guesses nor
repeats.
"""

from __future__ import annotations

import copy

import pytest

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Crash, Delay, DropAfter
from unit.operator.world import World, runtime, started, train_job

JOB_SET_PATH = r".*/jobsets/job"
LIFETIME = "trainwright.dev/ttl-seconds-after-finished"


def foreign_job_set() -> Json:
    pod = {"spec": {"containers": [{"name": "main", "image": "theirs"}], "restartPolicy": "Never"}}
    node = {"name": "theirs", "replicas": 1, "template": {"spec": {"template": pod}}}
    return {"metadata": {"name": "job", "labels": {"whose": "theirs"}}, "spec": {"replicatedJobs": [node]}}


def asked(world: World) -> list[str]:
    """What the operator asked for, watches aside."""
    return [
        f"{request.method} {request.path.rpartition('/namespaces/')[2] or request.path}"
        for request in world.server.faults.asked
        if ("watch", "1") not in request.query and ("watch", "true") not in request.query
    ]


# One request


async def test_a_second_job_of_a_runtime_starts_by_one_request_and_is_complete_after_three() -> None:
    async with started() as world:
        world.server.faults.asked.clear()
        await world.add(TRAIN_JOBS, train_job("second"))
        await world.settle(0.5)
        assert world.find_job_set("second") is not None
        assert asked(world) == ["PATCH ns/jobsets/second"]
        await world.settle(1)
        await world.finish_job_set(name="second")
        await world.settle(1)
        status = "PATCH ns/trainjobs/second/status"
        assert asked(world) == ["PATCH ns/jobsets/second", status, status]
        assert world.status("second")["state"] == "Complete"


async def test_states_that_follow_each_other_within_a_second_are_one_write() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(0.3)
        assert "state" not in world.status()
        ready = [{"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
        await world.change_status(JOB_SETS, "job", {"replicatedJobsStatus": ready})
        await world.settle(1)
        assert world.status()["state"] == "Running"
        assert [line for line in asked(world) if line.endswith("/status")] == ["PATCH ns/trainjobs/job/status"]


async def test_an_end_is_written_at_once() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(0.1)
        await world.finish_job_set()
        await world.settle(0.1)
        assert world.status()["state"] == "Complete"


async def test_a_restart_with_jobs_under_way_reads_no_job_and_writes_nothing() -> None:
    async with started() as world:
        await world.add(TRAIN_JOBS, train_job("suspended", suspend=True))
        await world.settle(2)
        world.server.faults.asked.clear()
        await world.restart()
        await world.settle(30)
        assert [line for line in asked(world) if " ns/" in line] == []


async def test_an_answer_that_was_lost_is_read_and_not_repeated() -> None:
    async with World() as world:
        world.fail(DropAfter(), method="PATCH", path=JOB_SET_PATH, times=1)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(5)
        job_set = world.job_set()
        assert job_set["metadata"]["generation"] == 1
        assert world.status()["workloadUID"] == job_set["metadata"]["uid"]


# Somebody else's object


async def test_a_strangers_object_that_appears_in_between_is_given_back_as_it_was() -> None:
    async with World() as world:
        world.fail(Delay(5.0), method="PATCH", path=JOB_SET_PATH, times=1)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(1)
        theirs = copy.deepcopy(await world.add(JOB_SETS, foreign_job_set()))
        await world.settle(10)
        now = world.job_set()
        assert now["spec"] == theirs["spec"]
        assert now["metadata"]["labels"] == {"whose": "theirs"}
        assert "ownerReferences" not in now["metadata"]
        assert [entry["manager"] for entry in now["metadata"]["managedFields"]] == [
            entry["manager"] for entry in theirs["metadata"]["managedFields"]
        ]
        assert 'JobSet "job" exists already' in world.status()["message"]
        await world.remove(JOB_SETS, "job")
        await world.settle(60)
        [owner] = world.job_set()["metadata"]["ownerReferences"]
        assert owner["kind"] == "TrainJob"


# Gone


async def test_a_workload_seen_deleted_before_its_end_is_built_again() -> None:
    async with started() as world:
        first = world.job_set()["metadata"]["uid"]
        await world.remove(JOB_SETS, "job")
        await world.settle(3)
        assert world.job_set()["metadata"]["uid"] != first
        assert world.status()["workloadUID"] == world.job_set()["metadata"]["uid"]
        assert world.status()["state"] == "Pending"


@pytest.mark.parametrize(("kind", "state"), [("Completed", "Complete"), ("Failed", "Failed")])
async def test_a_workload_deleted_in_the_moment_of_its_end_has_ended(kind: str, state: str) -> None:
    async with started() as world:
        await world.finish_job_set(kind)
        await world.remove(JOB_SETS, "job")  # before the operator has had a turn
        await world.settle(3)
        assert world.status()["state"] == state
        assert world.status()["message"] == "jobset says so"
        assert world.find_job_set() is None


@pytest.mark.parametrize("ended", [True, False])
async def test_a_workload_that_vanished_unseen_is_not_built_again(ended: bool) -> None:
    async with started() as world:
        await world.stop()
        if ended:
            await world.finish_job_set()
        await world.remove(JOB_SETS, "job")
        await world.start()
        await world.settle(60)
        assert world.find_job_set() is None
        [failed] = world.status()["conditions"]
        assert (failed["type"], failed["status"], failed["reason"]) == ("Failed", "True", "WorkloadLost")
        assert "delete the TrainJob and create it anew" in world.status()["message"]


async def test_a_kind_that_is_not_served_for_a_while_is_no_loss() -> None:
    async with started() as world:
        path = r"/apis/jobset.x-k8s.io/.*/jobsets"
        world.refuse(404, "the server could not find the requested resource", method="GET", path=path)
        await world.restart()
        await world.settle(120)
        assert world.status()["state"] == "Pending"
        world.mend()
        await world.settle(120)
        assert world.status()["message"] == "waiting for the first pods"


async def test_our_own_replacement_of_a_workload_at_rest_survives_a_crash() -> None:
    async with started(suspend=True) as world:
        first = world.job_set()["metadata"]["uid"]
        world.refuse(422, "field is immutable", method="PATCH", path=JOB_SET_PATH, times=1)
        crash = world.fail(Crash(after=True), method="DELETE", path=JOB_SET_PATH, times=1)
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle(5)
        assert crash.seen == 1
        assert world.find_job_set() is None
        world.mend()
        world.server.faults.crashed.clear()
        await world.restart()
        await world.settle(5)
        assert world.job_set()["metadata"]["uid"] != first
        assert world.job_set()["spec"]["suspend"] is False


# Time to live


def short_lived(seconds: int) -> Json:
    body = runtime()
    body["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = seconds
    return body


async def test_the_operator_keeps_the_workloads_time_to_live_after_its_end_is_recorded() -> None:
    async with World(runtimes=[short_lived(100)]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(2)
        assert "ttlSecondsAfterFinished" not in world.job_set()["spec"]
        assert world.job_set()["metadata"]["annotations"][LIFETIME] == "100"
        await world.finish_job_set()
        await world.settle(98)
        assert world.find_job_set() is not None
        await world.settle(4)
        assert world.find_job_set() is None
        assert world.status()["state"] == "Complete"
        await world.settle(600)
        assert world.find_job_set() is None


async def test_a_workload_that_would_remove_itself_is_kept_from_it() -> None:
    async with started() as world:
        await world.stop()
        await world.change(JOB_SETS, "job", {"spec": {"ttlSecondsAfterFinished": 0}})
        await world.start()
        await world.settle(5)
        assert "ttlSecondsAfterFinished" not in world.job_set()["spec"]
        assert world.job_set()["metadata"]["annotations"][LIFETIME] == "0"
