"""The TrainJob reconciler in virtual time: from creation to the end, deadlines, suspension, and jobs that wait."""

from __future__ import annotations

import pytest

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS, JOB_SETS, TRAIN_JOBS
from trainwright.testing.faults import DropBefore
from unit.operator.world import World, runtime, started, train_job


async def test_a_job_gets_a_jobset_of_its_own_and_follows_it_to_its_end() -> None:
    async with started() as world:
        [owner] = world.job_set()["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (world.get(TRAIN_JOBS, "job")["metadata"]["uid"], True)
        assert world.status()["state"] == "Pending"
        await world.finish_job_set()
        await world.settle()
        assert world.status()["state"] == "Complete"
        assert world.status()["conditions"][0]["message"] == "jobset says so"


async def test_children_are_written_before_status_and_status_once() -> None:
    async with started() as world:
        answered = world.server.faults.answered
        order = [answer.request.path for answer in answered if answer.request.is_write and answer.status < 300]
        status = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status"
        assert [path for path in order if "/trainjobs/" in path] == [status]
        assert order.index("/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/job") < order.index(status)


async def test_a_converged_job_that_nothing_disturbs_is_not_written_not_even_by_a_restarted_operator() -> None:
    async with started() as world:
        await world.settle(5)
        written = len(world.writes)
        await world.settle(600)
        assert len(world.writes) == written
        await world.restart()
        await world.settle(600)
        assert [request.path for request in world.writes[written:]] == []


async def test_the_deadline_is_kept_to_the_second_by_the_servers_clock() -> None:
    async with started(activeDeadlineSeconds=60) as world:
        await world.settle(58)
        assert world.status()["state"] == "Pending"
        await world.settle(3)
        assert world.status()["state"] == "Failed"
        assert world.status()["conditions"][0]["reason"] == "DeadlineExceeded"
        assert world.find_job_set() is None


@pytest.mark.parametrize("skew", [600.0, -600.0, 3600.0])
async def test_a_wrong_clock_of_ours_does_not_move_the_deadline(skew: float) -> None:
    async with World(skew=skew) as world:
        await world.add(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
        await world.settle(57)
        assert world.status()["state"] == "Pending"
        await world.settle(6)
        assert world.status()["state"] == "Failed"


async def test_clean_up_after_the_deadline_repeats_until_the_jobset_is_gone() -> None:
    async with started(activeDeadlineSeconds=10) as world:
        lost = world.fail(DropBefore(), method="DELETE", times=4)
        await world.settle(60)
        assert lost.seen > 4
        assert world.find_job_set() is None


async def test_completion_before_the_deadline_wins() -> None:
    async with started(activeDeadlineSeconds=10) as world:
        await world.finish_job_set()
        await world.settle(60)
        assert world.status()["state"] == "Complete"
        assert world.find_job_set() is not None


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
async def test_finished_is_a_latch_even_when_the_jobset_vanishes(kind: str) -> None:
    async with started() as world:
        await world.finish_job_set(kind)
        await world.settle()
        state = world.status()["state"]
        await world.remove(JOB_SETS, "job")
        await world.settle(60)
        assert world.find_job_set() is None
        assert world.status()["state"] == state
        await world.restart()
        await world.settle(60)
        assert world.find_job_set() is None


async def test_a_job_is_suspended_and_resumed_and_its_deadline_starts_anew() -> None:
    async with started(suspend=True, activeDeadlineSeconds=30) as world:
        assert world.job_set()["spec"]["suspend"] is True
        await world.settle(100)
        assert world.status()["state"] == "Suspended"
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle()
        assert world.job_set()["spec"]["suspend"] is False
        assert world.status()["conditions"][0]["reason"] == "Resumed"
        await world.settle(28)
        assert world.status()["state"] != "Failed"
        await world.settle(3)
        assert world.status()["state"] == "Failed"


async def test_a_suspended_job_is_written_again_only_when_something_changed() -> None:
    async with started(suspend=True) as world:
        await world.settle(5)
        written = len(world.writes)
        await world.change_status(JOB_SETS, "job", {"restarts": 0})  # an event, but no change of what we wrote
        await world.settle(60)
        assert len(world.writes) == written
        await world.change(JOB_SETS, "job", {"spec": {"suspend": False}})  # somebody's hand
        await world.settle()
        assert world.job_set()["spec"]["suspend"] is True


async def test_a_job_of_another_manager_or_being_deleted_is_left_alone() -> None:
    async with World(start=False) as world:
        await world.add(TRAIN_JOBS, train_job("theirs", managedBy="kueue.x-k8s.io/multikueue"))
        leaving = train_job("leaving")
        leaving["metadata"]["finalizers"] = ["example.com/x"]
        await world.add(TRAIN_JOBS, leaving)
        await world.remove(TRAIN_JOBS, "leaving")
        await world.start()
        await world.settle(5)
        assert world.names(JOB_SETS) == []
        assert "status" not in world.get(TRAIN_JOBS, "theirs")


async def test_an_unsupported_runtime_fails_the_job_for_good() -> None:
    job = train_job()
    job["spec"]["runtimeRef"]["kind"] = "Foo"
    async with World() as world:
        await world.add(TRAIN_JOBS, job)
        await world.settle()
        [failed] = world.status()["conditions"]
        assert (failed["type"], failed["reason"]) == ("Failed", "TrainingRuntimeNotSupported")
        assert failed["message"] == "unsupported runtime: Foo.trainer.kubeflow.org"


async def test_a_job_whose_runtime_comes_later_says_so_and_starts_by_itself() -> None:
    async with World(runtimes=[]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        assert '"it" not found' in world.status()["message"]
        [event] = world.all(EVENTS)
        assert event["reason"] == "TrainJobResourcesCreationFailed"
        assert event["firstTimestamp"]
        await world.add(CLUSTER_TRAINING_RUNTIMES, runtime())
        await world.settle(1)
        assert world.find_job_set() is not None
        assert "not found" not in world.status()["message"]


async def test_without_the_jobset_crd_the_job_says_so_and_starts_when_it_comes() -> None:
    async with World(without=["jobsets.jobset.x-k8s.io"]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        assert "jobsets.jobset.x-k8s.io is not served" in world.status()["message"]
        await world.install("jobsets.jobset.x-k8s.io")
        await world.settle(10)
        assert world.find_job_set() is not None


async def test_without_the_podgroup_crd_a_job_that_needs_it_says_so_and_others_go_on() -> None:
    gang = runtime("gang")
    gang["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    async with World(runtimes=[gang, runtime()], without=["podgroups.scheduling.x-k8s.io"]) as world:
        await world.add(TRAIN_JOBS, train_job("gang", "gang"))
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        message = "plugin CoScheduling cannot watch podgroups: podgroups.scheduling.x-k8s.io is not served"
        assert message in world.status("gang")["message"]
        assert world.find_job_set() is not None
        assert world.find_job_set("gang") is None
        await world.install("podgroups.scheduling.x-k8s.io")
        await world.settle(10)
        assert world.find_job_set("gang") is not None


async def test_the_deadline_is_kept_while_the_job_cannot_go_on() -> None:
    async with World(runtimes=[]) as world:
        await world.add(TRAIN_JOBS, train_job(activeDeadlineSeconds=100))
        await world.settle(99)
        assert '"it" not found' in world.status()["message"]
        await world.settle(3)
        assert world.status()["conditions"][0]["reason"] == "DeadlineExceeded"


async def test_a_job_without_a_spec_fails_and_stops_nobody() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, {"metadata": {"name": "empty"}})
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        assert world.status("empty")["conditions"][0]["reason"] == "TrainingRuntimeNotSupported"
        assert world.find_job_set() is not None


@pytest.mark.parametrize("where", ["job", "runtime"])
async def test_a_finished_job_goes_when_its_time_to_live_is_over(where: str) -> None:
    it, job = runtime(), train_job()
    (it if where == "runtime" else job)["metadata"]["annotations"] = {
        "trainer.kubeflow.org/ttl-seconds-after-finished": "100"
    }
    async with World(runtimes=[it]) as world:
        await world.add(TRAIN_JOBS, job)
        await world.settle()
        await world.finish_job_set()
        await world.settle(98)
        assert world.find(TRAIN_JOBS, "job") is not None
        await world.settle(4)
        assert world.find(TRAIN_JOBS, "job") is None
        assert world.find_job_set() is None, "the garbage collector takes what it owned"


async def test_an_operator_that_cannot_list_jobsets_yet_touches_no_running_job() -> None:
    """An empty store is no proof that there is no JobSet."""
    async with started() as world:
        before, written = world.job_set(), len(world.writes)
        await world.stop()
        world.refuse(503, "not yet", method="GET", path=".*/jobsets")
        await world.start()
        await world.settle(10)
        assert not world.operator.is_ready
        world.mend()
        await world.settle(60)
        assert world.operator.is_ready
        assert world.job_set() == before
        assert [request.path for request in world.writes[written:]] == []
