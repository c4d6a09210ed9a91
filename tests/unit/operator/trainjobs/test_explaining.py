"""A TrainJob that failed, or whose pods do not start, says why in its status and in an event; one that runs costs no
request.
"""

from __future__ import annotations

from trainwright.api.resources import EVENTS, JOB_SETS, PODS, TRAIN_JOBS, VOLCANO_POD_GROUPS, Resource
from trainwright.schema.jsonobject import Json
from unit.operator.world import World, runtime, started, train_job

TRACEBACK = """Traceback (most recent call last):
  File "/home/ada/train.py", line 3, in <module>
    open("data.csv")
FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'"""
BLAME = "rank 1 failed: FileNotFoundError: [Errno 2] No such file or directory: 'data.csv' (train.py:3)"


def parts(**counts: int) -> Json:
    zeros = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    return {"replicatedJobsStatus": [{"name": "node", **zeros, **counts}]}


async def add_pod(world: World, index: int, status: Json) -> None:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "job",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    name = f"job-node-0-{index}"
    spec = {"containers": [{"name": "node", "image": "python"}]}
    await world.add(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    await world.change_status(PODS, name, status)


def ended(code: int, message: str) -> Json:
    state = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
    container = {"name": "node", "state": state, "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    return {"phase": "Failed", "containerStatuses": [container]}


def unschedulable(message: str) -> Json:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def lists_of_pods(world: World) -> int:
    return sum(request.path.endswith("/pods") for request in world.server.faults.asked)


def told(world: World) -> list[tuple[str, str]]:
    return [(event["reason"], event["message"]) for event in world.all(EVENTS)]


async def test_a_failed_job_names_the_rank_the_cause_and_the_mend() -> None:
    async with started() as world:
        await add_pod(world, 0, ended(1, "Traceback (most recent call last):\nRuntimeError: Connection reset by peer"))
        await add_pod(world, 1, ended(1, TRACEBACK))
        await world.finish_job_set("Failed")
        await world.settle()
        message = world.status()["message"]
        assert message.startswith(f"{BLAME}. Give a path")
        assert ("FileMissing", message) in told(world)
        failed = next(one for one in world.status()["conditions"] if one["type"] == "Failed")
        assert failed["message"] == "jobset says so", "the condition stays as Kubeflow Trainer has it"


async def test_the_reason_stays_when_the_pods_are_gone() -> None:
    async with started() as world:
        await add_pod(world, 1, ended(1, TRACEBACK))
        await world.finish_job_set("Failed")
        await world.settle()
        await world.remove(PODS, "job-node-0-1")
        await world.restart()
        await world.settle(60)
        assert world.status()["message"].startswith(BLAME)


async def test_pods_that_wait_are_explained_after_ten_seconds() -> None:
    async with started() as world:
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await add_pod(world, 0, unschedulable("0/3 nodes are available: 3 Insufficient cpu."))
        await world.settle(9)
        assert lists_of_pods(world) == 0
        await world.settle(4)
        assert world.status()["message"].startswith("node-0 waits: 0/3 nodes are available: 3 Insufficient cpu. Ask ")
        assert "TooLittleCpu" in dict(told(world))


async def test_pods_that_wait_for_long_are_looked_at_less_and_less_often() -> None:
    async with started() as world:
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await add_pod(world, 0, unschedulable("0/3 nodes are available: 3 Insufficient cpu."))
        await world.settle(3600)
        assert lists_of_pods(world) <= 18, "every five minutes at last"
        assert len(told(world)) == 1


async def test_what_was_said_of_a_wait_is_gone_when_the_pods_run() -> None:
    async with started() as world:
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await add_pod(world, 0, unschedulable("0/3 nodes are available: 3 Insufficient cpu."))
        await world.settle(15)
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(2)
        assert world.status()["message"] == "running: node"


async def test_a_job_that_runs_or_is_suspended_costs_no_request() -> None:
    async with started() as world:
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(600)
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": True}})
        await world.change_status(JOB_SETS, "job", parts(suspended=1))
        await world.settle(600)
        assert lists_of_pods(world) == 0


async def test_an_operator_that_may_not_list_pods_says_what_it_knows() -> None:
    async with started() as world:
        world.refuse(403, "pods is forbidden", method="GET", path=".*/pods")
        await add_pod(world, 1, ended(1, TRACEBACK))
        await world.finish_job_set("Failed")
        await world.settle()
        assert world.status()["message"] == "jobset says so"


async def test_a_burst_of_waiting_jobs_does_not_become_a_burst_of_lists() -> None:
    async with World() as world:
        for number in range(40):
            await world.add(TRAIN_JOBS, {"metadata": {"name": f"j{number}"}, "spec": {"runtimeRef": {"name": "it"}}})
        await world.settle(2)
        for number in range(40):
            await world.change_status(JOB_SETS, f"j{number}", parts(active=1))
        await world.settle(15)
        assert 0 < lists_of_pods(world) <= 15


def volcano() -> Json:
    body = runtime()
    body["spec"]["podGroupPolicy"] = {"volcano": {}}
    return body


async def test_a_gang_that_waits_says_what_its_pod_group_says() -> None:
    async with World(runtimes=[volcano()]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await add_pod(world, 0, {"phase": "Pending"})  # an unknown queue: Volcano says nothing of the pods themselves
        group = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "transitionID": "1"}
        said = {**group, "message": "queue gone is not found", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await world.change(VOLCANO_POD_GROUPS, "job", {"status": {"phase": "Pending", "conditions": [said]}})
        await world.settle(13)
        assert world.status()["message"].startswith("its pods wait together: queue gone is not found. Name a queue")
        assert "VolcanoQueue" in dict(told(world))


async def test_a_gang_whose_pod_group_must_not_be_read_says_what_the_pods_say() -> None:
    async with World(runtimes=[volcano()]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        world.refuse(403, "podgroups is forbidden", method="GET", path=".*/podgroups/job")
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await add_pod(world, 0, unschedulable("0/3 nodes are available: 3 Insufficient cpu."))
        await world.settle(13)
        assert world.status()["message"].startswith("node-0 waits: 0/3 nodes are available: 3 Insufficient cpu. Ask ")


KUEUE = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload")


async def queued(world: World) -> None:
    body = train_job(suspend=True)
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    await world.add(TRAIN_JOBS, body)
    await world.settle(12)


async def test_a_queued_job_names_its_queue_and_asks_for_no_more_than_it_may() -> None:
    async with World() as world:
        world.refuse(403, "forbidden", path=".*selfsubjectaccessreviews.*")
        await queued(world)
        await world.settle(1200)
        assert world.status()["state"] == "Suspended"
        assert world.status()["message"].startswith('it waits in Kueue\'s queue "team". See its place')
        assert not [request for request in world.server.faults.asked if "workloads" in request.path]


async def test_a_queued_job_says_what_kueues_workload_says_where_the_role_allows_it() -> None:
    async with World(kinds=[KUEUE]) as world:
        await queued(world)
        uid = world.get(TRAIN_JOBS, "job")["metadata"]["uid"]
        short = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "2 more cpu needed"}
        metadata = {"name": "w", "labels": {"kueue.x-k8s.io/job-uid": uid}}
        await world.add(KUEUE, {"metadata": metadata, "spec": {"queueName": "team"}})
        await world.change_status(KUEUE, "w", {"conditions": [short]})
        await world.settle(60)
        assert world.status()["message"].startswith('it waits in Kueue\'s queue "team": 2 more cpu needed. Wait for')
        assert "KueueQuota" in dict(told(world))
