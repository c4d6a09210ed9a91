"""`upgrade-check`: tells what this version would change, and nothing of what it would not. Changes nothing itself."""

from __future__ import annotations

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS
from trainwright.client.requests import APPLY_PATCH
from trainwright.operator.upgrade.check import check
from trainwright.operator.upgrade.findings import Effect, Report
from trainwright.plugins import load
from unit.operator.world import World, mpi_runtime, runtime, started, train_job


async def look(world: World) -> Report:
    writes = len(world.writes)
    report = await check(world.server.client, load())
    assert all("dryRun" in str(write) or "dry_run" in str(write) for write in world.writes[writes:])
    return report


async def test_of_jobs_of_this_version_nothing_changes() -> None:
    for suspend in (False, True):
        async with started(suspend=suspend) as world:
            report = await look(world)
            assert (report.train_jobs, report.unfinished, report.runtimes) == (1, 1, 1)
            assert report.upgrade == []


async def test_a_suspended_jobset_that_was_built_otherwise_changes() -> None:
    async with started(suspend=True) as world:
        jobs = world.job_set()["spec"]["replicatedJobs"]
        pod = jobs[0]["template"]["spec"]["template"]["spec"]
        pod["containers"][0]["image"] = "older"
        await world.change(JOB_SETS, "job", {"spec": {"replicatedJobs": jobs}})
        (finding,) = (await look(world)).upgrade
        assert (finding.object, finding.effect) == ("TrainJob ns/job", Effect.CHANGES)
        assert "while it is suspended, its JobSet changes: replicatedJobs[0].template.spec.template" in finding.text
        assert finding.text.endswith("containers[0].image")


async def test_a_running_jobset_that_may_not_be_changed_is_replaced_once_it_is_at_rest_unless_it_owns_claims() -> None:
    async with started() as world:
        rule = world.refuse(422, "spec.replicatedJobs: Invalid value: [...]: field is immutable", path="/jobsets/")
        rule.when = lambda request: request.content_type == APPLY_PATCH
        (finding,) = (await look(world)).upgrade
        assert finding.effect is Effect.CHANGES
        assert "when it is next suspended, its JobSet is replaced once no pod of it is left" in finding.text
        await world.change(JOB_SETS, "job", {"spec": {"volumeClaimPolicies": [{"templates": []}]}})
        (finding,) = (await look(world)).upgrade
        assert finding.effect is Effect.BREAKS
        assert "PersistentVolumeClaims would go with it" in finding.text


async def test_a_job_whose_runtime_is_gone_and_a_runtime_that_is_refused_break() -> None:
    async with World(start=False) as world:
        broken = runtime("broken")
        broken["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
        await world.add(CLUSTER_TRAINING_RUNTIMES, broken)
        await world.add(TRAIN_JOBS, train_job(runtimeRef={"name": "nowhere", "kind": "ClusterTrainingRuntime"}))
        found = {finding.object: finding for finding in (await look(world)).upgrade}
        assert {finding.effect for finding in found.values()} == {Effect.BREAKS}
        assert "this version refuses it" in found["ClusterTrainingRuntime broken"].text
        assert "this version cannot build it" in found["TrainJob ns/job"].text


async def test_what_cannot_go_back_is_told() -> None:
    async with World(runtimes=[mpi_runtime()]) as world:
        overrides = [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}]
        await world.add(TRAIN_JOBS, train_job(podTemplateOverrides=overrides))
        await world.settle(1.5)
        report = await look(world)
        assert report.upgrade == []
        overridden, mpi, revisions = report.back
        assert "spec.podTemplateOverrides" in overridden.text
        assert "cannot be suspended" in mpi.text
        assert (revisions.object, revisions.effect) == ("1 ControllerRevisions", Effect.STAYS)
