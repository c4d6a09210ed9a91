"""The TrainJob reconciler in virtual time: deadlines, latches, clean-up, restarts and faults at every write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainwright.api.configuration import CertManagementConfig, StatusServerConfig, local
from trainwright.client.errors import UnknownOutcome
from trainwright.client.requests import APPLY_PATCH, MERGE_PATCH, Request
from trainwright.client.servertime import ServerTime
from trainwright.operator.certificates import Policy, next_material
from trainwright.testing.processes import free_port
from unit.operator.memory_api import Failure
from unit.operator.world import World, mpi_runtime, runtime, train_job


async def started(**spec: Any) -> World:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    await world.__aenter__()
    world.api.add("trainjobs", train_job(**spec))
    await world.settle()
    return world


async def test_a_job_gets_a_jobset_of_its_own_and_follows_it_to_its_end() -> None:
    world = await started()
    job_set = world.job_set()
    assert job_set is not None
    [owner] = job_set["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (world.job()["metadata"]["uid"], True)
    assert world.status()["state"] == "Pending"
    world.finish_job_set()
    await world.settle()
    assert world.status()["state"] == "Complete"
    assert world.status()["conditions"][0]["message"] == "jobset says so"
    await world.stop()


async def test_children_are_written_before_status_and_status_once() -> None:
    world = await started()
    writes = [request.path.rsplit("/", 3)[-1] for request in world.api.writes if "/trainjobs/" in request.path]
    order = [request.path for request in world.api.writes]
    assert writes == ["status"]
    assert order.index("/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/job") < order.index(
        "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status"
    )
    await world.stop()


async def test_converged_and_undisturbed_nothing_is_written_not_even_by_a_restarted_operator() -> None:
    world = await started()
    await world.settle(5)
    written = len(world.api.writes)
    await world.settle(600)
    assert len(world.api.writes) == written
    await world.restart()
    await world.settle(600)
    assert [request.path for request in world.api.writes[written:]] == []
    await world.stop()


async def test_the_deadline_is_kept_to_the_second_by_the_servers_clock() -> None:
    world = await started(activeDeadlineSeconds=60)
    await world.settle(58)
    assert world.status()["state"] == "Pending"
    await world.settle(3)
    assert world.status()["state"] == "Failed"
    assert world.status()["conditions"][0]["reason"] == "DeadlineExceeded"
    assert world.job_set() is None
    await world.stop()


@pytest.mark.parametrize("skew", [600.0, -600.0, 3600.0])
async def test_a_clock_of_ours_that_is_wrong_does_not_move_the_deadline(skew: float) -> None:
    world = World()
    world.client.server_time = ServerTime(lambda: world.clock.wall() + skew)
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job(activeDeadlineSeconds=60))
        await world.settle(57)
        assert world.status()["state"] == "Pending"
        await world.settle(6)
        assert world.status()["state"] == "Failed"


async def test_clean_up_after_the_deadline_repeats_until_the_jobset_is_gone() -> None:
    world = await started(activeDeadlineSeconds=10)
    refused = 0

    def refuse(request: Request) -> None:
        nonlocal refused
        if request.method == "DELETE" and refused < 4:
            refused += 1
            raise UnknownOutcome("reset")

    world.api.before = refuse
    await world.settle(60)
    assert refused == 4
    assert world.job_set() is None
    await world.stop()


async def test_completion_before_the_deadline_wins() -> None:
    world = await started(activeDeadlineSeconds=10)
    world.finish_job_set()
    await world.settle(60)
    assert world.status()["state"] == "Complete"
    assert world.job_set() is not None
    await world.stop()


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
async def test_finished_is_a_latch_even_when_the_jobset_vanishes(kind: str) -> None:
    world = await started()
    world.finish_job_set(kind)
    await world.settle()
    state = world.status()["state"]
    world.api.remove("jobsets", "job")
    await world.settle(60)
    assert world.job_set() is None
    assert world.status()["state"] == state
    await world.restart()
    await world.settle(60)
    assert world.job_set() is None
    await world.stop()


async def test_suspending_resuming_and_the_deadline_that_starts_anew() -> None:
    world = await started(suspend=True, activeDeadlineSeconds=30)
    job_set = world.job_set()
    assert job_set is not None
    assert job_set["spec"]["suspend"] is True
    await world.settle(100)
    assert world.status()["state"] == "Suspended"
    world.api.change("trainjobs", "job", {"spec": {"suspend": False}})
    await world.settle()
    resumed = world.job_set()
    assert resumed is not None
    assert resumed["spec"]["suspend"] is False
    assert world.status()["conditions"][0]["reason"] == "Resumed"
    await world.settle(28)
    assert world.status()["state"] != "Failed"
    await world.settle(3)
    assert world.status()["state"] == "Failed"
    await world.stop()


async def test_a_suspended_job_is_written_again_only_when_something_changed() -> None:
    world = await started(suspend=True)
    await world.settle(5)
    written = len(world.api.writes)
    world.api.change("jobsets", "job", {"status": {"restarts": 0}})  # an event, but no change of what we wrote
    await world.settle(60)
    assert len(world.api.writes) == written
    world.api.change("jobsets", "job", {"spec": {"suspend": False}})  # somebody's hand
    await world.settle()
    restored = world.job_set()
    assert restored is not None
    assert restored["spec"]["suspend"] is True
    await world.stop()


async def test_a_job_of_another_manager_or_being_deleted_is_left_alone() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job("theirs", managedBy="kueue.x-k8s.io/multikueue"))
        leaving = train_job("leaving")
        leaving["metadata"].update(finalizers=["x"], deletionTimestamp="2026-01-01T00:00:00Z")
        world.api.add("trainjobs", leaving)
        await world.settle(5)
        assert [name for plural, _, name in world.api.objects if plural == "jobsets"] == []
        assert "status" not in world.job("theirs")


async def test_an_unsupported_runtime_fails_the_job_for_good() -> None:
    world = World()
    async with world:
        job = train_job()
        job["spec"]["runtimeRef"]["kind"] = "Foo"
        world.api.add("trainjobs", job)
        await world.settle()
        [failed] = world.status()["conditions"]
        assert (failed["type"], failed["reason"]) == ("Failed", "TrainingRuntimeNotSupported")
        assert failed["message"] == "unsupported runtime: Foo.trainer.kubeflow.org"


async def test_a_job_whose_runtime_comes_later_says_so_and_starts_by_itself() -> None:
    world = World()
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle()
        assert '"it" not found' in world.status()["message"]
        [event] = [thing for (plural, _, _), thing in world.api.objects.items() if plural == "events"]
        assert event["reason"] == "TrainJobResourcesCreationFailed"
        assert event["firstTimestamp"]
        world.api.add("clustertrainingruntimes", runtime(), "")
        await world.settle(1)
        assert world.job_set() is not None
        assert "not found" not in world.status()["message"]


async def test_without_the_jobset_crd_the_job_says_so_and_starts_when_it_comes() -> None:
    world = World()
    world.api.absent.add("jobsets")
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle()
        assert "jobsets.jobset.x-k8s.io is not served" in world.status()["message"]
        world.api.absent.clear()
        await world.settle(10)
        assert world.job_set() is not None


async def test_without_the_podgroup_crd_a_job_that_needs_it_says_so_and_others_go_on() -> None:
    world = World()
    world.api.absent.add("podgroups")
    gang = runtime("gang")
    gang["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    world.api.add("clustertrainingruntimes", gang, "")
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job("gang", "gang"))
        world.api.add("trainjobs", train_job())
        await world.settle()
        message = "plugin CoScheduling cannot watch podgroups: podgroups.scheduling.x-k8s.io is not served"
        assert message in world.status("gang")["message"]
        assert world.job_set() is not None
        assert world.job_set("gang") is None
        world.api.absent.clear()
        await world.settle(10)
        assert world.job_set("gang") is not None


async def test_a_job_that_kubeflow_trainer_started_keeps_the_runtime_it_was_started_with() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    job = world.api.add("trainjobs", train_job(suspend=True))
    owner = [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "name": "job",
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
    ]
    snapshot = runtime()
    pod = snapshot["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["containers"][0]["image"] = "of-the-snapshot"
    metadata = {"name": "job-runtime-snapshot", "ownerReferences": owner}
    world.api.add("configmaps", {"metadata": metadata, "data": {"runtime": json.dumps(snapshot)}})
    world.api.add("jobsets", {"metadata": {"name": "job", "ownerReferences": owner}, "spec": {"suspend": True}})
    async with world:
        world.api.change("trainjobs", "job", {"spec": {"suspend": False}})
        await world.settle(2)
        job_set = world.job_set()
        assert job_set is not None
        assert job_set["spec"]["suspend"] is False
        assert "of-the-snapshot" in json.dumps(job_set)


async def test_editing_the_runtime_does_not_reach_a_job_that_has_started() -> None:
    world = await started(suspend=True)
    edited = runtime()
    container = edited["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    container["containers"][0]["image"] = "edited"
    world.api.change("clustertrainingruntimes", "it", {"spec": edited["spec"]}, "")
    world.api.change("trainjobs", "job", {"spec": {"suspend": False}})
    await world.restart()
    await world.settle(5)
    job_set = world.job_set()
    assert job_set is not None
    assert "edited" not in json.dumps(job_set)
    await world.stop()


async def test_a_runtime_in_use_is_guarded_until_its_last_job_ends() -> None:
    world = await started()
    guarded = world.api.get("clustertrainingruntimes", "it", "")
    assert guarded is not None
    assert guarded["metadata"]["finalizers"] == ["trainer.kubeflow.org/resource-in-use"]
    world.finish_job_set()
    await world.settle()
    free = world.api.get("clustertrainingruntimes", "it", "")
    assert free is not None
    assert not free["metadata"].get("finalizers")
    await world.stop()


async def test_a_revision_is_removed_a_while_after_its_last_job_ended() -> None:
    world = await started()
    [name] = [name for plural, _, name in world.api.objects if plural == "controllerrevisions"]
    assert world.status()["runtimeRevision"] == name
    world.finish_job_set()
    await world.settle(30)
    assert world.api.get("controllerrevisions", name) is not None
    await world.settle(60)
    assert world.api.get("controllerrevisions", name) is None
    await world.stop()


@pytest.mark.parametrize("where", ["job", "runtime"])
async def test_a_finished_job_goes_when_its_time_to_live_is_over(where: str) -> None:
    annotations = {"trainer.kubeflow.org/ttl-seconds-after-finished": "100"}
    world = World()
    it, job = runtime(), train_job()
    (it if where == "runtime" else job)["metadata"]["annotations"] = annotations
    world.api.add("clustertrainingruntimes", it, "")
    async with world:
        world.api.add("trainjobs", job)
        await world.settle()
        world.finish_job_set()
        await world.settle(98)
        assert world.api.get("trainjobs", "job") is not None
        await world.settle(4)
        assert world.api.get("trainjobs", "job") is None


@pytest.mark.parametrize("kind", ["jobsets", "configmaps", "secrets"])
async def test_what_belongs_to_somebody_else_is_never_written(kind: str) -> None:
    name = {"jobsets": "job", "configmaps": "job-mpi-hostfile", "secrets": "job-mpi-ssh-auth"}[kind]
    world = World()
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    theirs = world.api.add(kind, {"metadata": {"name": name}, "spec": {"suspend": True}})
    version = theirs["metadata"]["resourceVersion"]
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle(30)
        found = world.api.get(kind, name)
        assert found is not None
        assert found["metadata"]["resourceVersion"] == version
        assert f'"{name}" exists already and does not belong to this TrainJob' in world.status()["message"]
        if kind != "jobsets":
            assert world.job_set() is None
        world.api.remove(kind, name)
        await world.settle(90)
        job_set = world.job_set()
        assert job_set is not None
        assert job_set["metadata"]["ownerReferences"][0]["uid"] == world.job()["metadata"]["uid"]


async def test_a_secret_that_a_killed_operator_made_is_known_by_its_configmap() -> None:
    """D15: ConfigMap before Secret, so that a ConfigMap of this uid says whose the Secret is."""
    world = World()
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    async with world:
        cut = False

        def die_after_the_secret(request: Request) -> None:
            nonlocal cut
            is_real = ("dryRun", "All") not in request.query
            if request.method == "POST" and request.path.endswith("/secrets") and is_real:
                cut = True

        def stay_dead(request: Request) -> None:
            if cut:
                raise UnknownOutcome("gone")

        world.api.after = die_after_the_secret
        world.api.before = stay_dead
        world.api.add("trainjobs", train_job())
        await world.settle()
        assert cut
        assert world.job_set() is None
        first = world.api.get("secrets", "job-mpi-ssh-auth")
        assert first is not None
        world.api.before = world.api.after = lambda request: None
        await world.restart()
        await world.settle(2)
        assert world.job_set() is not None
        assert world.api.get("secrets", "job-mpi-ssh-auth") == first


async def test_a_configmap_taken_from_a_running_job_is_put_back() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle()
        world.api.remove("configmaps", "job-mpi-hostfile")
        await world.settle(1)
        assert world.api.get("configmaps", "job-mpi-hostfile") is not None
        await world.restart()
        world.api.remove("configmaps", "job-mpi-hostfile")
        await world.settle(1)
        assert world.api.get("configmaps", "job-mpi-hostfile") is not None


async def test_a_configmap_edited_by_hand_is_put_right_while_the_job_runs() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle()
        before = world.api.get("configmaps", "job-mpi-hostfile")
        assert before is not None
        world.api.change("configmaps", "job-mpi-hostfile", {"data": {"hostfile": "nonsense"}})
        await world.settle(1)
        after = world.api.get("configmaps", "job-mpi-hostfile")
        assert after is not None
        assert after["data"] == before["data"]


async def test_a_new_ca_reaches_the_configmaps_of_running_jobs(tmp_path: Path) -> None:
    """Certificates as cert-manager mounts them: when they change, so does what pods mount to report progress."""
    for number in ("1", "2"):
        made = next_material(None, Policy("operator.ns.svc"), datetime.now(UTC), injected=True)
        assert made is not None
        (tmp_path / number).mkdir()
        for name, content in (("ca.crt", made.bundle), ("tls.crt", made.certificate), ("tls.key", made.key)):
            (tmp_path / number / name).write_bytes(content)
    mounted = tmp_path / "mounted"
    mounted.symlink_to(tmp_path / "1")
    configuration = msgspec.structs.replace(
        local(),
        cert_management=CertManagementConfig(enable=False, cert_dir=str(mounted)),
        feature_gates={"TrainJobStatus": True},
        status_server=StatusServerConfig(host="127.0.0.1", port=free_port()),
    )
    world = World(configuration)
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle(2)
        first = world.api.get("configmaps", "job-tls-config")
        assert first is not None
        mounted.unlink()
        mounted.symlink_to(tmp_path / "2")
        await world.settle(15)
        second = world.api.get("configmaps", "job-tls-config")
        assert second is not None
        assert second["data"]["ca.crt"] == (tmp_path / "2" / "ca.crt").read_text()
        assert second["data"] != first["data"]
        assert second["metadata"]["uid"] == first["metadata"]["uid"]


async def play(world: World, disturb: Callable[[World], None] = lambda world: None) -> dict[str, object]:
    """One job from creation over suspension to its end; the end state without what chance decides."""
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    await world.__aenter__()
    disturb(world)
    world.api.add("trainjobs", train_job(suspend=True))
    await world.settle(400)
    world.api.change("trainjobs", "job", {"spec": {"suspend": False}})
    await world.settle(400)
    world.finish_job_set()
    await world.settle(400)
    await world.stop()
    state = {}
    for key, thing in world.api.objects.items():
        if key[0] != "events":
            state[str(key)] = {part: thing.get(part) for part in ("spec", "status", "type")} | {
                "keys": sorted(thing.get("data") or {})
            }
    return json.loads(_untimed(json.dumps(state)))  # type: ignore[no-any-return]


def _untimed(text: str) -> str:
    return re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)


async def test_whatever_single_answer_is_lost_or_refused_the_job_ends_alike() -> None:
    """Every write of the run, in turn: lost before it arrives, lost after, refused with each code."""
    undisturbed_world = World()
    undisturbed = await play(undisturbed_world)
    writes = len(undisturbed_world.api.writes)
    assert writes >= 9
    for number in range(writes):
        for fault in ("before", "after", 409, 429, 500, 503, 504):
            world = World()
            assert await play(world, _fault(number, fault)) == undisturbed, f"write {number}, {fault}"


def _fault(number: int, fault: str | int) -> Callable[[World], None]:
    def disturb(world: World) -> None:
        seen = -1

        def before(request: Request) -> None:
            nonlocal seen
            if not request.is_write:
                return
            seen += 1
            if seen != number:
                return
            if fault == "before":
                raise UnknownOutcome("lost on the way there")
            if isinstance(fault, int):
                world.api.refuse_next = Failure(fault, {409: "Conflict", 429: "TooManyRequests"}.get(fault, ""))

        def after(request: Request) -> None:
            if request.is_write and seen == number and fault == "after":
                raise UnknownOutcome("lost on the way back")

        world.api.before, world.api.after = before, after

    return disturb


def refuse_changes_of_job_sets(world: World, code: int = 422, reason: str = "Invalid") -> None:
    """As JobSet's webhook does for most of a JobSet's spec: what changes nothing goes through."""

    def refuse(request: Request) -> None:
        is_change = request.content_type == APPLY_PATCH and "/jobsets/" in request.path
        if is_change and world.job_set() is not None:
            world.api.refuse_next = Failure(code, reason, "spec.replicatedJobs: may not be touched any more")

    world.api.before = refuse


@pytest.mark.parametrize(("code", "reason"), [(422, "Invalid"), (403, "Forbidden"), (400, "")])
async def test_a_jobset_at_rest_that_cannot_be_changed_is_replaced(code: int, reason: str) -> None:
    world = await started(suspend=True)
    before = world.job_set()
    assert before is not None
    refuse_changes_of_job_sets(world, code, reason)
    world.api.change("trainjobs", "job", {"spec": {"trainer": {"image": "other"}}})
    await world.settle(5)
    after = world.job_set()
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert "other" in json.dumps(after)
    await world.stop()


async def test_a_jobset_whose_pods_are_not_gone_yet_is_never_replaced() -> None:
    world = await started(suspend=True)
    before = world.job_set()
    assert before is not None
    active = [{"name": "node", "ready": 0, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
    world.api.change("jobsets", "job", {"status": {"replicatedJobsStatus": active}})
    refuse_changes_of_job_sets(world)
    world.api.change("trainjobs", "job", {"spec": {"trainer": {"image": "other"}}})
    await world.settle(30)
    after = world.job_set()
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "may not be touched any more" in world.status()["message"]
    await world.stop()


async def test_a_jobset_that_we_may_not_patch_at_all_is_never_replaced() -> None:
    """RBAC refuses every patch, whatever is in it: deleting the JobSet would bring nothing back."""
    world = await started(suspend=True)
    before = world.job_set()
    assert before is not None

    def forbid(request: Request) -> None:
        if request.method == "PATCH" and "/jobsets/" in request.path:
            world.api.refuse_next = Failure(403, "Forbidden", 'User "x" cannot patch resource "jobsets"')

    world.api.before = forbid
    world.api.change("trainjobs", "job", {"spec": {"trainer": {"image": "other"}}})
    await world.settle(30)
    after = world.job_set()
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "cannot patch resource" in world.status()["message"]
    await world.stop()


async def test_a_jobset_that_would_be_refused_as_a_new_one_too_is_never_replaced() -> None:
    world = await started(suspend=True)
    before = world.job_set()
    assert before is not None

    def refuse(request: Request) -> None:
        if "/jobsets" in request.path and request.content_type != MERGE_PATCH and request.method != "GET":
            world.api.refuse_next = Failure(422, "Invalid", "spec.replicatedJobs[0].image: none of ours")

    world.api.before = refuse
    world.api.change("trainjobs", "job", {"spec": {"trainer": {"image": "other"}}})
    await world.settle(30)
    after = world.job_set()
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "none of ours" in world.status()["message"]
    await world.stop()


async def test_a_jobset_that_owns_claims_is_never_replaced_and_the_message_says_what_to_do() -> None:
    world = await started(suspend=True)
    before = world.api.change("jobsets", "job", {"spec": {"volumeClaimPolicies": [{"templates": []}]}})
    await world.settle()
    refuse_changes_of_job_sets(world)
    world.api.change("trainjobs", "job", {"spec": {"trainer": {"image": "other"}}})
    await world.settle(30)
    after = world.job_set()
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    message = world.status()["message"]
    assert "may not be touched any more" in message
    assert "deleting this one would delete its PersistentVolumeClaims: take the change back" in message
    await world.stop()


async def test_the_deadline_is_kept_while_the_job_cannot_go_on() -> None:
    world = World()
    async with world:
        world.api.add("trainjobs", train_job(activeDeadlineSeconds=100))
        await world.settle(99)
        assert '"it" not found' in world.status()["message"]
        await world.settle(3)
        assert world.status()["conditions"][0]["reason"] == "DeadlineExceeded"


async def test_a_job_without_a_spec_fails_and_stops_nobody() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", {"metadata": {"name": "empty"}})
        world.api.add("trainjobs", train_job())
        await world.settle()
        assert world.status("empty")["conditions"][0]["reason"] == "TrainingRuntimeNotSupported"
        assert world.job_set() is not None


async def test_a_forbidden_request_is_told_with_the_servers_words_and_not_repeated_in_a_hurry() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    tries = 0

    def forbid(request: Request) -> None:
        nonlocal tries
        if request.method == "PATCH" and "/jobsets/" in request.path:
            tries += 1
            world.api.refuse_next = Failure(403, "Forbidden", 'jobsets is forbidden: User "x" cannot patch resource')

    world.api.before = forbid
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle(59)
        assert "cannot patch resource" in world.status()["message"]
        assert tries <= 3  # our own status write wakes it once


async def test_a_dozen_conflicts_of_the_status_write_do_not_lose_the_newest_facts() -> None:
    world = await started()
    left = 12

    def conflict(request: Request) -> None:
        nonlocal left
        if left and request.path.endswith("/status"):
            left -= 1
            world.api.refuse_next = Failure(409, "Conflict")

    world.api.before = conflict
    world.finish_job_set()
    await world.settle(20)
    assert left == 0
    assert world.status()["state"] == "Complete"
    await world.stop()


async def test_a_plugin_that_raises_harms_its_own_job_only() -> None:
    class Explodes:
        name = "Explodes"

        def enforce_pod_spec(self, info: object, job: object) -> None:
            if job.metadata.name == "bad":  # type: ignore[attr-defined]
                raise ZeroDivisionError("a bug of mine")

    world = World(None, Explodes())
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        for name in ("bad", "good"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(5)
        assert world.job_set("good") is not None
        assert world.status("bad")["message"] == "plugin Explodes failed in enforce_pod_spec: a bug of mine"
