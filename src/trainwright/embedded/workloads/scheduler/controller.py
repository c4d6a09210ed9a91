"""Binds pods to nodes, one at a time.

In: pods and nodes by watch. Out: a binding, or the condition PodScheduled=False with the reason. A pod that was just
bound is assumed to be on its node until the store shows it there, so that no resources are allocated twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trainwright.api.resources import NODES, PODS
from trainwright.api.times import rfc3339
from trainwright.client import Client, Conflict, NotFound
from trainwright.controlloop import Clock, Controller, Done, Key, Outcome, Source, Watches, key_of
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.embedded.workloads.scheduler import fit
from trainwright.schema.jsonobject import Json

NAME = "default-scheduler"


def waits_for_node(pod: ApiObject) -> bool:
    return not pod.spec.get("nodeName") and not pod.is_being_deleted and pod.phase == "Pending"


def node_and_waiting(pod: ApiObject) -> list[str]:
    """Index: the pods of a node by `node/<name>`, those without one under `waiting`."""
    if pod.spec.get("nodeName"):
        return [] if pod.phase in ("Succeeded", "Failed") else [f"node/{pod.spec['nodeName']}"]
    return ["waiting"] if waits_for_node(pod) else []


class Scheduler:
    """Binds waiting pods. The pods' source needs the index `node` (`node_and_waiting`)."""

    def __init__(self, client: Client, pods: Source[ApiObject], nodes: Source[ApiObject], clock: Clock) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._events = EventRecorder(client, NAME, clock)
        self._assumed: dict[str, tuple[Key, str]] = {}

    def controller(self) -> Controller:
        watches = [Watches(self._pods, self._woken_by_pod), Watches(self._nodes, self._waiting)]
        # One worker: two could each allocate the same resources.
        return Controller("scheduler", self.reconcile, watches, workers=1, clock=self._clock)

    def _waiting(self, _: object = None) -> Iterable[Key]:
        return [key_of(pod) for pod in self._pods.store.by("node", "waiting")]

    def _woken_by_pod(self, pod: ApiObject) -> Iterable[Key]:
        """The pod itself while it has no node; all waiting pods when it ends and frees resources."""
        if not pod.spec.get("nodeName"):
            return [key_of(pod)]
        if pod.phase in ("Succeeded", "Failed") or pod.is_being_deleted:
            return self._waiting()
        return ()

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._pods.store.get(key)
        if pod is None or not waits_for_node(pod) or pod.spec.get("schedulerName", NAME) != NAME:
            return Done()
        if pod.metadata.uid in self._assumed:
            return Done()  # bound already; the store does not show it yet
        if pod.spec.get("schedulingGates"):
            blocked = "Scheduling is blocked due to non-empty scheduling gates"
            await self._tell(pod, "SchedulingGated", blocked)
            return Done()
        nodes = list(self._nodes.store)
        against: list[list[str]] = []
        for node in nodes:
            reasons = fit.reasons_against(pod, node, self._on(node))
            if not reasons:
                await self._bind(pod, node)
                return Done()
            against.append(reasons)
        await self._tell(pod, "Unschedulable", fit.message(len(nodes), against))
        return Done()

    def _on(self, node: ApiObject) -> list[ApiObject]:
        """The pods on a node, including those that were just bound to it."""
        there = self._pods.store.by("node", f"node/{node.name}")
        for uid, (key, name) in list(self._assumed.items()):
            pod = self._pods.store.get(key)
            if pod is None or pod.metadata.uid != uid or pod.spec.get("nodeName"):
                del self._assumed[uid]
            elif name == node.name:
                there.append(pod)
        return there

    async def _bind(self, pod: ApiObject, node: ApiObject) -> None:
        namespace = pod.metadata.namespace
        binding: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": namespace, "uid": pod.metadata.uid},
            "target": {"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node.name},
        }
        try:
            await self._client.create(
                PODS, binding, namespace, name=pod.name, subresource="binding", decode=msgspec.Raw
            )
        except (NotFound, Conflict):
            return  # deleted, or bound by another scheduler; the watch will show it
        self._assumed[pod.metadata.uid] = (key_of(pod), node.name)
        message = f"Successfully assigned {namespace}/{pod.name} to {node.name}"
        await self._events.record(PODS, pod.metadata, "Normal", "Scheduled", message)

    async def _tell(self, pod: ApiObject, reason: str, message: str) -> None:
        """Writes why the pod waits into its status and, if the reason is new, as an event."""
        conditions = [dict(condition) for condition in pod.status.get("conditions") or ()]
        before = find_condition(conditions, "PodScheduled")
        if before is not None and (before.get("reason"), before.get("message")) == (reason, message):
            return
        now = rfc3339(self._clock.wall())
        told = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        conditions = [condition for condition in conditions if condition["type"] != "PodScheduled"]
        body = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"conditions": [*conditions, {**told, "lastTransitionTime": now}]},
        }
        try:
            await self._client.patch(
                PODS, body, name=pod.name, namespace=pod.metadata.namespace, subresource="status", decode=msgspec.Raw
            )
        except NotFound:
            return
        if reason == "Unschedulable":
            await self._events.record(PODS, pod.metadata, "Warning", "FailedScheduling", message)
