"""Requests of the operator are lost or refused: the job ends alike; a JobSet is replaced only where that helps."""

from __future__ import annotations

import json
import re

import pytest

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    JOB_SETS,
    SECRETS,
    TRAIN_JOBS,
)
from trainwright.client.requests import APPLY_PATCH, MERGE_PATCH
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Crash, DropAfter, DropBefore, Fault, Respond, Rule
from unit.operator.world import SEE_PLUGINS, World, mpi_runtime, started, train_job

KINDS = (TRAIN_JOBS, JOB_SETS, CLUSTER_TRAINING_RUNTIMES, CONTROLLER_REVISIONS, CONFIG_MAPS, SECRETS)
FAULTS: dict[str, Fault] = {
    "lost on the way there": DropBefore(),
    "lost on the way back": DropAfter(),
    "died before": Crash(after=False),
    "died after": Crash(),
    **{str(code): Respond(code) for code in (409, 429, 500, 503, 504)},
}


async def play(world: World, namespace: str, rule: Rule | None = None) -> tuple[Json, int]:
    """One job from creation over suspension to its end: the end state without what chance decides, and the writes.

    An operator that dies is replaced by another one.
    """
    faults = world.server.faults
    await world.enter_namespace(namespace)
    await world.restart()
    already = len(world.writes)
    faults.rules[:] = [rule] if rule else []

    async def pass_time() -> None:
        for seconds in (10, 190, 200):
            await world.settle(seconds)
            if faults.crashed.is_set():
                faults.crashed.clear()
                await world.restart()

    await world.add(TRAIN_JOBS, train_job(suspend=True))
    await pass_time()
    await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
    await pass_time()
    await world.finish_job_set()
    await pass_time()
    found = [item for resource in KINDS for item in world.all(resource)]
    text = json.dumps({f"{item['kind']} {item['metadata']['name']}": comparable(item) for item in found})
    text = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", text)
    state: Json = json.loads(text.replace(f'"{namespace}"', '"<namespace>"'))
    return state, len(world.writes) - already


def comparable(item: Json) -> Json:
    """An object without keys, and what two runs may differ in."""
    metadata = item["metadata"]
    return {
        **{part: item.get(part) for part in ("spec", "status", "type", "immutable")},
        "data": sorted(item.get("data") or {}) if item["kind"] == "Secret" else item.get("data"),
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "owners": len(metadata.get("ownerReferences") or ()),
    }


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_whatever_single_write_is_lost_refused_or_the_last_one_of_its_operator_the_job_ends_alike(
    fault: Fault,
) -> None:
    """The fault meets every write of a run in turn."""
    async with World(runtimes=[mpi_runtime()], start=False) as world:
        undisturbed, writes = await play(world, "undisturbed")
        assert writes >= 9
        for number in range(1, writes + 1):
            rule = Rule(fault, nth=number, writes_only=True)
            assert (await play(world, f"disturbed-{number}", rule))[0] == undisturbed, f"write {number}"
            assert rule.seen >= number


def refuse_changes_of_job_sets(world: World, code: int = 422) -> None:
    """As JobSet's webhook does for most of a JobSet's spec: what changes nothing goes through."""
    rule = world.refuse(code, "spec.replicatedJobs: may not be touched any more", path="/jobsets/")
    rule.when = lambda request: request.content_type == APPLY_PATCH and world.find_job_set() is not None


@pytest.mark.parametrize("code", [422, 403, 400])
async def test_a_jobset_at_rest_that_cannot_be_changed_is_replaced(code: int) -> None:
    async with started(suspend=True) as world:
        before = world.job_set()
        refuse_changes_of_job_sets(world, code)
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"image": "other"}}})
        await world.settle(5)
        after = world.job_set()
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert "other" in json.dumps(after)


async def test_a_running_jobset_that_cannot_be_changed_is_suspended_as_it_is_and_replaced_when_its_pods_are_gone() -> (
    None
):
    """Kubeflow Trainer, or another version of ours, built it otherwise."""
    async with started() as world:
        before = world.job_set()
        active = [{"name": "node", "ready": 2, "active": 2, "succeeded": 0, "failed": 0, "suspended": 0}]
        await world.change_status(JOB_SETS, "job", {"replicatedJobsStatus": active})
        refuse_changes_of_job_sets(world)
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": True}})
        await world.settle(30)
        halted = world.job_set()
        assert halted["spec"] == {**before["spec"], "suspend": True}
        assert halted["metadata"]["uid"] == before["metadata"]["uid"]
        gone = [{"name": "node", "ready": 0, "active": 0, "succeeded": 0, "failed": 0, "suspended": 1}]
        await world.change_status(JOB_SETS, "job", {"replicatedJobsStatus": gone})
        await world.settle(30)
        assert world.job_set()["metadata"]["uid"] != before["metadata"]["uid"]
        assert world.job_set()["spec"]["suspend"] is True


async def test_a_jobset_whose_pods_are_not_gone_yet_is_never_replaced() -> None:
    async with started(suspend=True) as world:
        before = world.job_set()
        active = [{"name": "node", "ready": 0, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
        await world.change_status(JOB_SETS, "job", {"replicatedJobsStatus": active})
        refuse_changes_of_job_sets(world)
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"image": "other"}}})
        await world.settle(30)
        assert world.job_set()["metadata"]["uid"] == before["metadata"]["uid"]
        assert "may not be touched any more" in world.status()["message"]


async def test_a_jobset_that_we_may_not_patch_at_all_is_never_replaced() -> None:
    """RBAC refuses every patch, whatever is in it: deleting the JobSet would bring nothing back."""
    async with started(suspend=True) as world:
        before = world.job_set()
        world.refuse(403, 'User "x" cannot patch resource "jobsets"', method="PATCH", path="/jobsets/")
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"image": "other"}}})
        await world.settle(30)
        assert world.job_set()["metadata"]["uid"] == before["metadata"]["uid"]
        assert "cannot patch resource" in world.status()["message"]


async def test_a_jobset_that_would_be_refused_as_a_new_one_too_is_never_replaced() -> None:
    async with started(suspend=True) as world:
        before = world.job_set()
        rule = world.refuse(422, "spec.replicatedJobs[0].image: none of ours", path="/jobsets")
        rule.when = lambda request: request.is_write and request.content_type != MERGE_PATCH
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"image": "other"}}})
        await world.settle(30)
        assert world.job_set()["metadata"]["uid"] == before["metadata"]["uid"]
        assert "none of ours" in world.status()["message"]


async def test_a_jobset_that_owns_claims_is_never_replaced_and_the_message_says_what_to_do() -> None:
    async with started(suspend=True) as world:
        before = await world.change(JOB_SETS, "job", {"spec": {"volumeClaimPolicies": [{"templates": []}]}})
        await world.settle()
        refuse_changes_of_job_sets(world)
        await world.change(TRAIN_JOBS, "job", {"spec": {"trainer": {"image": "other"}}})
        await world.settle(30)
        assert world.job_set()["metadata"]["uid"] == before["metadata"]["uid"]
        message = world.status()["message"]
        assert "may not be touched any more" in message
        assert "deleting this one would delete its PersistentVolumeClaims: take the change back" in message


async def test_a_forbidden_request_is_told_with_the_servers_words_and_not_repeated_in_a_hurry() -> None:
    async with World() as world:
        words = 'jobsets is forbidden: User "x" cannot patch resource'
        forbidden = world.refuse(403, words, method="PATCH", path="/jobsets/")
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(1)
        burst = forbidden.seen
        assert burst <= 3  # the runtime's new finalizer and our own status write wake it once each
        await world.settle(58)
        assert "cannot patch resource" in world.status()["message"]
        assert forbidden.seen == burst + 1


async def test_a_dozen_conflicts_of_the_status_write_do_not_lose_the_newest_facts() -> None:
    async with started() as world:
        conflicts = world.refuse(409, "the object has been modified", path="/status", times=12)
        await world.finish_job_set()
        await world.settle(20)
        assert conflicts.seen > 12
        assert world.status()["state"] == "Complete"


async def test_a_plugin_that_raises_harms_its_own_job_only() -> None:
    class Explodes:
        name = "Explodes"

        def enforce_pod_spec(self, info: object, job: object) -> None:
            if job.metadata.name == "bad":  # type: ignore[attr-defined]
                raise ZeroDivisionError("a bug of mine")

    async with World(plugins=[Explodes()]) as world:
        for name in ("bad", "good"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(5)
        assert world.find_job_set("good") is not None
        assert (
            world.status("bad")["message"]
            == f"plugin Explodes failed in enforce_pod_spec: a bug of mine. {SEE_PLUGINS}"
        )
