"""Every pod of a Job is counted exactly once: whatever happens to it, and wherever the controller dies."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.metadata import ObjectMeta
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.job.accounting import FINALIZER, is_tracked
from trainwright.embedded.workloads.job.decision import Decision, decide, is_finished
from trainwright.embedded.workloads.job.pods import build
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json
from unit.embedded.workloads.making import NOW, job

LONG_AGO = rfc3339(NOW - 10_000)


class Died(Exception):
    """The controller was killed after a write."""


class World:
    """A Job and its pods as an API server keeps them, and the truth about who ended how."""

    def __init__(self, **spec: Any) -> None:
        self.job = job(**spec)
        self.pods: dict[str, ApiObject] = {}
        self.succeeded: set[str] = set()
        self.failed: set[str] = set()
        self._uids = itertools.count()
        self._writes_left: int | None = None

    # What happens to pods

    def end(self, pod: ApiObject, phase: str) -> None:
        uid = pod.metadata.uid
        terminated = {"exitCode": int(phase == "Failed"), "finishedAt": LONG_AGO}
        status: Json = {"phase": phase, "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}
        self.pods[uid] = msgspec.structs.replace(pod, status=status)
        if not pod.is_being_deleted:  # else it was counted as failed when it was deleted
            (self.succeeded if phase == "Succeeded" else self.failed).add(uid)

    def delete(self, pod: ApiObject, *, by_hand: bool = True) -> None:
        uid, ready = pod.metadata.uid, {"type": "Ready", "status": "False", "lastTransitionTime": LONG_AGO}
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=LONG_AGO)
        self.pods[uid] = msgspec.structs.replace(pod, metadata=metadata, status={**pod.status, "conditions": [ready]})
        if by_hand and pod.phase not in ("Succeeded", "Failed"):
            self.failed.add(uid)
        self._sweep()

    def _sweep(self) -> None:
        gone = [uid for uid, pod in self.pods.items() if pod.is_being_deleted and not is_tracked(pod)]
        for uid in gone:
            del self.pods[uid]

    # The controller

    def reconcile(self, writes: int | None = None) -> None:
        """One pass, which dies after that many writes."""
        self._writes_left = writes
        if not is_finished(self.job):
            try:
                self._carry_out(decide(self.job, list(self.pods.values()), NOW))
            except Died:
                pass

    def _write(self) -> None:
        if self._writes_left is not None:
            if self._writes_left == 0:
                raise Died
            self._writes_left -= 1

    def _carry_out(self, decision: Decision) -> None:
        for wanted in decision.create:
            self._write()
            body = build(self.job, wanted.index, wanted.name, wanted.failures)
            uid = f"uid-{next(self._uids)}"
            body["metadata"] |= {"uid": uid, "creationTimestamp": LONG_AGO}
            metadata = msgspec.convert(body["metadata"], ObjectMeta)
            self.pods[uid] = ApiObject(metadata, body["spec"], {"phase": "Pending"})
        for pod in decision.delete:
            if decision.uncounted:
                self._write()
                self._release(pod)
            self._write()
            self.delete(self.pods[pod.metadata.uid], by_hand=False)
        self._store(decision.status)
        for pod in decision.release:
            self._write()
            self._release(pod)
        self._store(decision.counted([pod.metadata.uid for pod in decision.release], NOW)[0])

    def _release(self, pod: ApiObject) -> None:
        now = self.pods.get(pod.metadata.uid)
        if now is not None:
            left = [name for name in now.metadata.finalizers or () if name != FINALIZER]
            metadata = msgspec.structs.replace(now.metadata, finalizers=left)
            self.pods[pod.metadata.uid] = msgspec.structs.replace(now, metadata=metadata)
            self._sweep()

    def _store(self, status: Json) -> None:
        if status != self.job.status:
            self._write()
            self.job = msgspec.structs.replace(self.job, status=status)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["succeed", "fail", "delete", "nothing"]), st.integers(0, 9), st.none() | st.integers(0, 8)
    ),
    max_size=14,
)


def live(world: World, events: list[tuple[str, int, int | None]]) -> None:
    world.reconcile()
    for what, which, writes in events:
        open_pods = [pod for pod in world.pods.values() if pod.phase == "Pending" and not pod.is_being_deleted]
        if open_pods and not is_finished(world.job):
            chosen = open_pods[which % len(open_pods)]
            if what == "delete":
                world.delete(chosen)
            elif what != "nothing":
                world.end(chosen, "Succeeded" if what == "succeed" else "Failed")
        world.reconcile(writes)
    for _ in range(6):
        world.reconcile()


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 3))
def test_no_pod_is_counted_twice_or_lost(events: list[tuple[str, int, int | None]], parallelism: int) -> None:
    world = World(parallelism=parallelism, completions=100, backoffLimit=100)
    live(world, events)
    status = world.job.status
    assert status.get("succeeded", 0) == len(world.succeeded)
    assert status.get("failed", 0) == len(world.failed)
    assert status["uncountedTerminatedPods"] == {}
    assert status["active"] == parallelism == sum(pod.phase == "Pending" for pod in world.pods.values())
    assert all(is_tracked(pod) == (pod.phase == "Pending") for pod in world.pods.values())


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.booleans())
def test_nor_of_an_indexed_job(events: list[tuple[str, int, int | None]], per_index: bool) -> None:
    limits = {"backoffLimitPerIndex": 100} if per_index else {"backoffLimit": 100}
    world = World(parallelism=3, completions=5, completionMode="Indexed", **limits)
    live(world, events)
    status = world.job.status
    assert status.get("failed", 0) == len(world.failed)
    assert status.get("succeeded", 0) == len(world.succeeded), "each index succeeds once"
    assert status["uncountedTerminatedPods"] == {}
    assert is_finished(world.job) == (len(world.succeeded) == 5)


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.integers(0, 8))
def test_pods_of_a_suspended_job_are_not_failures(events: list[tuple[str, int, int | None]], writes: int) -> None:
    world = World(parallelism=3, completions=100, backoffLimit=100)
    live(world, events)
    suspended = {**world.job.spec, "suspend": True}
    world.job = msgspec.structs.replace(world.job, spec=suspended)
    world.reconcile(writes)
    for _ in range(4):
        world.reconcile()
    assert world.job.status.get("failed", 0) == len(world.failed)
    assert "active" not in world.job.status
    assert not any(pod.phase == "Pending" for pod in world.pods.values())
