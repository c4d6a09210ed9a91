"""Bugs of others and of ours, put back into the operator while a test runs: fault plans must find them.

U1 to U13 are faults of Kubeflow Trainer and JobSet, SEC1 was ours; docs/reliability.md lists them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import CONTROLLER_REVISIONS, SECRETS, TRAIN_JOBS
from trainwright.api.trainjob import TrainJob
from trainwright.client import ClientError, Conflict
from trainwright.controlloop import Done, NotYet, Outcome
from trainwright.operator.admission import decisions
from trainwright.operator.runtimes import revisions
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.trainjobs import applier, ending, reconciler, statuses
from trainwright.pipeline import RuntimeNotFound, Workload
from trainwright.plugins import flux
from trainwright.testing.plans import verdict

Bug = Callable[[pytest.MonkeyPatch], None]


@contextlib.contextmanager
def reintroduced(bug: str) -> Iterator[None]:
    verdict.forget()
    with pytest.MonkeyPatch.context() as patch:
        BUGS[bug](patch)
        yield
    verdict.forget()


def u1(patch: pytest.MonkeyPatch) -> None:
    """At the deadline the workload is deleted once, and an error of that is swallowed."""
    tried: set[str] = set()

    async def clean_up(self: Any, job: TrainJob, workload: Workload | None) -> Outcome:
        if workload is not None and not workload.status.is_finished and job.metadata.uid not in tried:
            tried.add(job.metadata.uid)
            with contextlib.suppress(ClientError):
                await ending.delete_workload(self._client, workload)
        return Done()

    patch.setattr(ending.Ending, "clean_up", clean_up)


def u2(patch: pytest.MonkeyPatch) -> None:
    """A job counts as finished only as long as its workload is there."""
    reconcile = reconciler.TrainJobReconciler.reconcile

    async def forgetful(self: Any, key: Any) -> Outcome:
        job = self._jobs.get(key)
        if job is not None and job.is_finished and self._kinds.workload_of(job) is None and not job.is_being_deleted:
            live = await self._client.get(TRAIN_JOBS, key.name, key.namespace, decode=TrainJob)
            live.status = None
            outcome: Outcome = await self._go_on(live, None)
            return outcome
        return await reconcile(self, key)

    patch.setattr(reconciler.TrainJobReconciler, "reconcile", forgetful)


def u3(patch: pytest.MonkeyPatch) -> None:
    """A runtime that is not there is a crash before the status is written."""

    async def explain(self: Any, *args: Any) -> Outcome:
        raise AttributeError("'NoneType' object has no attribute 'spec'")

    patch.setattr(reconciler.TrainJobReconciler, "_explain", explain)


def u4(patch: pytest.MonkeyPatch) -> None:
    """The Flux plugin relies on a field that may be absent."""
    plugin = flux.Flux
    enforce = plugin.enforce_ml_policy

    def careless(self: Any, info: Any, job: Any) -> None:
        if job.metadata.name.startswith("flux"):
            job.spec.trainer.num_nodes  # noqa: B018
        enforce(self, info, job)

    patch.setattr(plugin, "enforce_ml_policy", careless)


def u5(patch: pytest.MonkeyPatch) -> None:
    """An update is judged by the runtime as it is now."""

    async def nothing(self: Any, *args: Any) -> None:
        return None

    patch.setattr(revisions.Revisions, "read_bound", nothing)
    patch.setattr(decisions, "runtime_needed", lambda job, old: job.spec.runtime_ref)


def u6(patch: pytest.MonkeyPatch) -> None:
    """A resume sends the workload as the runtime of now would make it."""

    async def ensure(self: Any, job: TrainJob, workload: Workload | None) -> revisions.Revision:
        assert job.spec is not None
        try:
            found: revisions.Revision = await self._of_present_runtime(job.metadata.namespace, job.spec.runtime_ref)
        except RuntimeNotFound:
            bound = await self._bound(
                job.metadata.namespace, revisions.revision_of(job, workload), job.spec.runtime_ref
            )
            return revisions.Revision(revisions.revision_of(job, workload), bound)
        return found

    patch.setattr(revisions.Revisions, "ensure", ensure)


def u7(patch: pytest.MonkeyPatch) -> None:
    """The snapshot of a runtime has the runtime's name, and is written over."""
    create = revisions.Revisions._create

    async def overwrite(self: Any, namespace: str, name: str, content: Any) -> None:
        body = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {"name": "snapshot", "namespace": namespace},
            "revision": 1,
            "data": content,
        }
        await self._client.apply(
            CONTROLLER_REVISIONS, body, name="snapshot", namespace=namespace, field_manager="trainer", force=True
        )
        await create(self, namespace, name, content)

    patch.setattr(revisions.Revisions, "_create", overwrite)
    u6(patch)


def u8(patch: pytest.MonkeyPatch) -> None:
    """What has the right name is taken for the job's own, a predecessor's too."""

    async def claim(self: Any, *args: Any) -> None:
        return None

    once = applier.Applier._create_once

    async def create_once(self: Any, resource: Any, body: Any, owner: TrainJob) -> None:
        if resource is SECRETS:
            try:
                await self._client.get(SECRETS, body["metadata"]["name"], owner.metadata.namespace)
            except ClientError:
                await once(self, resource, body, owner)
        else:
            await once(self, resource, body, owner)

    patch.setattr(applier.Applier, "_claim_secrets", claim)
    patch.setattr(applier.Applier, "_create_once", create_once)
    patch.setattr(reconciler.TrainJobReconciler, "_seconds_to_room", lambda self, job: 0.0)
    patch.setattr(Kinds, "taken_from", lambda self, job: frozenset())
    patch.setattr(ObjectMeta, "is_controlled_by", lambda self, uid: True)


def u11(patch: pytest.MonkeyPatch) -> None:
    """Why a job does not go on is said in an event only."""

    async def explain(self: Any, job: TrainJob, workload: Any, error: Exception) -> Outcome:
        await self._events.tell(TRAIN_JOBS, job.metadata, reconciler.CREATION_FAILED, str(error))
        raise NotYet(str(error))

    patch.setattr(reconciler.TrainJobReconciler, "_explain", explain)


def u12(patch: pytest.MonkeyPatch) -> None:
    """A status is written whatever has become of the job meanwhile."""
    patch.setattr(statuses, "status_patch", lambda metadata, patch: {"status": patch})


def u13(patch: pytest.MonkeyPatch) -> None:
    """A conflict is logged as an error."""
    from trainwright.controlloop import controller

    write = statuses.Statuses._patch

    async def shout(self: Any, *args: Any) -> None:
        try:
            await write(self, *args)
        except Conflict as error:
            controller.log.error("409 %s", error)
            raise

    patch.setattr(statuses.Statuses, "_patch", shout)


def sec1(patch: pytest.MonkeyPatch) -> None:
    """A workload that is gone is built again, whatever may have been missed."""

    async def build_again(self: Any, job: TrainJob) -> Outcome:
        outcome: Outcome = await self._build(job, None)
        return outcome

    patch.setattr(reconciler.TrainJobReconciler, "_build_again", build_again)


def uid_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A status never says which workload the job has."""
    difference = statuses.difference

    def without(*args: Any) -> dict[str, Any]:
        return {name: value for name, value in difference(*args).items() if name != "workloadUID"}

    patch.setattr(statuses, "difference", without)


def ended_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """A finished job's workload is deleted when the store says that it runs, however old that is. (Ours, until 0.2.)"""
    delete = ending.delete_workload

    async def carelessly(client: Any, workload: Workload, *, as_seen: bool = False) -> None:
        await delete(client, workload)

    patch.setattr(ending, "delete_workload", carelessly)


def lost_too_soon(patch: pytest.MonkeyPatch) -> None:
    """A workload that the store does not show is lost. (Ours, until 0.2.)"""

    async def is_there(self: Any, job: TrainJob) -> bool:
        return False

    patch.setattr(reconciler.TrainJobReconciler, "_is_there", is_there)


def by_the_operators_clock(patch: pytest.MonkeyPatch) -> None:
    """Deadlines are counted by the operator's own clock."""

    def now(self: Any) -> datetime:
        return datetime.fromtimestamp(self._client.server_time.local(), UTC)

    patch.setattr(reconciler.TrainJobReconciler, "_now", now)


BUGS: dict[str, Bug] = {
    "U1": u1,
    "U2": u2,
    "U3": u3,
    "U4": u4,
    "U5": u5,
    "U6": u6,
    "U7": u7,
    "U8": u8,
    "U11": u11,
    "U12": u12,
    "U13": u13,
    "SEC1": sec1,
    "uid-forgotten": uid_forgotten,
    "ended-is-deleted": ended_is_deleted,
    "lost-too-soon": lost_too_soon,
    "own-clock": by_the_operators_clock,
}
