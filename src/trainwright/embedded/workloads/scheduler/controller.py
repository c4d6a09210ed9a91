"""Carries out what `decision` decides for all waiting pods at once.

In: pods, nodes, pod groups and namespaces by watch. Out: bindings, evictions, the condition PodScheduled=False with
the reason, and PodGroupScheduled on Kubernetes' own PodGroups. A pod that was just bound is assumed to be on its node
until the store shows it there, so that no resources are allocated twice. A gang that this process bound only in part,
because it was killed, is the first that the next one completes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from trainwright.api.resources import KUBERNETES_POD_GROUPS, NODES, PODS
from trainwright.api.times import rfc3339
from trainwright.client import ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches, key_of
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.embedded.workloads.scheduler import gangs
from trainwright.embedded.workloads.scheduler.cluster import Cluster
from trainwright.embedded.workloads.scheduler.decision import Eviction, GroupNews, Plan, Refusal, Waiting, decide
from trainwright.embedded.workloads.scheduler.gangs import GroupKey
from trainwright.schema.jsonobject import Json

NAME = gangs.DEFAULT_SCHEDULER
QUEUE = Key("", "queue")
AT_ONCE = 32
ENDED = ("Succeeded", "Failed")
GROUP_SCHEDULED = "PodGroupScheduled"


def waits_for_node(pod: ApiObject) -> bool:
    return not pod.spec.get("nodeName") and not pod.is_being_deleted and pod.phase == "Pending"


def node_and_waiting(pod: ApiObject) -> list[str]:
    """Index: `bound` for pods that take room on a node, `waiting` for those without one, `gang/…` for started members
    of a group.
    """
    if not pod.spec.get("nodeName"):
        return ["waiting"] if waits_for_node(pod) else []
    found = [] if pod.phase in ENDED else ["bound"]
    group = gangs.group_of(pod)
    if group is not None and pod.phase != "Failed" and not pod.is_being_deleted:
        found.append(f"gang/{'/'.join(group)}")
    return found


class Scheduler:
    """Binds waiting pods. The pods' source needs the index `node` (`node_and_waiting`)."""

    def __init__(
        self,
        client: Client,
        pods: Source[ApiObject],
        nodes: Source[ApiObject],
        groups: Mapping[str, Source[ApiObject]],
        namespaces: Source[ApiObject],
        clock: Clock,
    ) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._groups = groups
        self._namespaces = namespaces
        self._clock = clock
        self._events = EventRecorder(client, NAME, clock)
        self._assumed: dict[str, tuple[Key, str]] = {}

    def controller(self) -> Controller:
        watches = [Watches(self._pods, self._woken_by), Watches(self._nodes, _always)]
        watches += [Watches(source, _always) for source in self._groups.values()]
        watches += [Watches(self._namespaces, _never)]
        # One worker: two could each allocate the same resources.
        return Controller("scheduler", self.reconcile, watches, workers=1, clock=self._clock)

    def _woken_by(self, pod: ApiObject) -> Iterable[Key]:
        """A pod that waits, and one that frees resources while others wait."""
        if not pod.spec.get("nodeName"):
            return [QUEUE]
        if (pod.phase in ENDED or pod.is_being_deleted) and self._pods.store.by("node", "waiting"):
            return [QUEUE]
        return ()

    async def reconcile(self, key: Key) -> Outcome:
        assumed = self._still_assumed()
        waiting = [
            pod
            for pod in self._pods.store.by("node", "waiting")
            if pod.metadata.uid not in self._assumed and gangs.is_ours(pod)
        ]
        if not waiting:
            return Done()
        bound = [(pod.spec["nodeName"], pod) for pod in self._pods.store.by("node", "bound")] + assumed
        names = {space.name: space.metadata.labels or {} for space in self._namespaces.store}
        groups = {
            GroupKey(kind, group.metadata.namespace, group.name): group
            for kind, source in self._groups.items()
            for group in source.store
        }
        started = {key: len(self._pods.store.by("node", f"gang/{'/'.join(key)}")) for key in groups}
        for _, pod in assumed:
            group = gangs.group_of(pod)
            if group in started:
                started[group] += 1
        cluster = Cluster.of(self._nodes.store, bound, names)
        plan = decide(waiting, cluster, groups, self._clock.wall(), started=started)
        await self._carry_out(plan)
        return After(plan.after) if plan.after is not None else Done()

    async def _carry_out(self, plan: Plan) -> None:
        for eviction in plan.evict:
            await self._evict(eviction)
        for start in range(0, len(plan.bind), AT_ONCE):
            await asyncio.gather(*(self._bind(pod, node) for pod, node in plan.bind[start : start + AT_ONCE]))
        for refusal in plan.refuse:
            await self._refuse(refusal)
        for start in range(0, len(plan.waiting), AT_ONCE):
            await asyncio.gather(*(self._tell(waiting) for waiting in plan.waiting[start : start + AT_ONCE]))
        for key, news in plan.groups.items():
            await self._tell_group(key, news)

    async def _tell_group(self, key: GroupKey, news: GroupNews) -> None:
        """Writes into a PodGroup of Kubernetes' own whether it has started. One that has never goes back."""
        group = self._groups[key.kind].store.get(Key(key.namespace, key.name)) if key.kind == gangs.NATIVE else None
        if group is None:
            return
        before = group.condition(GROUP_SCHEDULED) or {}
        status, reason = ("True", "Scheduled") if news.scheduled else ("False", "Unschedulable")
        if before.get("status") == "True" or (before.get("status"), before.get("message")) == (status, news.message):
            return
        told: Json = {"type": GROUP_SCHEDULED, "status": status, "reason": reason, "message": news.message}
        told["observedGeneration"] = group.metadata.generation
        same = before.get("status") == status
        told["lastTransitionTime"] = before["lastTransitionTime"] if same else rfc3339(self._clock.wall())
        others = [c for c in group.status.get("conditions") or () if c.get("type") != GROUP_SCHEDULED]
        body = {"metadata": {"uid": group.metadata.uid}, "status": {"conditions": [*others, told]}}
        try:
            await self._client.patch(
                KUBERNETES_POD_GROUPS,
                body,
                name=key.name,
                namespace=key.namespace,
                subresource="status",
                decode=msgspec.Raw,
            )
        except (NotFound, Conflict):
            return

    def _still_assumed(self) -> list[tuple[str, ApiObject]]:
        """Pods that were just bound and that the store does not show on their nodes yet."""
        found = []
        for uid, (key, node) in list(self._assumed.items()):
            pod = self._pods.store.get(key)
            if pod is None or pod.metadata.uid != uid or pod.spec.get("nodeName"):
                del self._assumed[uid]
            else:
                found.append((node, pod))
        return found

    async def _bind(self, pod: ApiObject, node: str) -> None:
        namespace = pod.metadata.namespace
        binding: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": namespace, "uid": pod.metadata.uid},
            "target": {"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node},
        }
        try:
            await self._client.create(
                PODS, binding, namespace, name=pod.name, subresource="binding", decode=msgspec.Raw
            )
        except (NotFound, Conflict):
            return  # deleted, or bound by another scheduler; the watch will show it
        self._assumed[pod.metadata.uid] = (key_of(pod), node)
        message = f"Successfully assigned {namespace}/{pod.name} to {node}"
        await self._events.record(PODS, pod.metadata, "Normal", "Scheduled", message, action="Binding")

    async def _evict(self, eviction: Eviction) -> None:
        """Deletes a pod for one of higher priority, with the condition by which others see why."""
        victim, uid = eviction.victim, eviction.preemptor.metadata.uid
        now = rfc3339(self._clock.wall())
        text = f"{NAME}: preempting to accommodate a higher priority pod"
        told = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": text}
        others = [dict(c) for c in victim.status.get("conditions") or () if c.get("type") != "DisruptionTarget"]
        body = {
            "metadata": {"uid": victim.metadata.uid},
            "status": {"conditions": [*others, {**told, "lastTransitionTime": now}]},
        }
        name, namespace = victim.name, victim.metadata.namespace
        try:
            if not victim.is_being_deleted:
                await self._client.patch(
                    PODS, body, name=name, namespace=namespace, subresource="status", decode=msgspec.Raw
                )
                await self._client.delete(PODS, name, namespace, DeleteOptions(uid=victim.metadata.uid))
        except (NotFound, Conflict):
            return
        message = f"Preempted by pod {uid} on node {victim.spec.get('nodeName', '')}"
        await self._events.record(PODS, victim.metadata, "Normal", "Preempted", message, action="Preempting")

    async def _refuse(self, refusal: Refusal) -> None:
        """Fails a pod that asks for more than there will ever be, as a kubelet does: nobody should wait for it."""
        pod, message, reason = refusal.pod, refusal.message, f"OutOf{refusal.resource}"
        now = rfc3339(self._clock.wall())
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        others = [c for c in pod.status.get("conditions") or () if c.get("type") != "PodScheduled"]
        status = {
            "phase": "Failed",
            "reason": reason,
            "message": message,
            "startTime": now,
            "conditions": [*others, {**unscheduled, "lastTransitionTime": now}],
        }
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        try:
            await self._client.patch(
                PODS, body, name=pod.name, namespace=pod.metadata.namespace, subresource="status", decode=msgspec.Raw
            )
        except NotFound:
            return
        await self._events.record(PODS, pod.metadata, "Warning", reason, message)

    async def _tell(self, waiting: Waiting) -> None:
        """Writes why the pod waits into its status and, if the reason is new, as an event."""
        pod, reason, message = waiting.pod, waiting.reason, waiting.message
        conditions = [dict(condition) for condition in pod.status.get("conditions") or ()]
        before = find_condition(conditions, "PodScheduled") or {}
        nominated = waiting.nominated or str(pod.status.get("nominatedNodeName", ""))
        same = (before.get("reason"), before.get("message")) == (reason, message)
        if same and nominated == pod.status.get("nominatedNodeName", ""):
            return
        now = rfc3339(self._clock.wall())
        told = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        told["lastTransitionTime"] = before.get("lastTransitionTime") or now
        conditions = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
        status: Json = {"conditions": [*conditions, told]}
        if nominated:
            status["nominatedNodeName"] = nominated
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        try:
            await self._client.patch(
                PODS, body, name=pod.name, namespace=pod.metadata.namespace, subresource="status", decode=msgspec.Raw
            )
        except (NotFound, Conflict):
            return
        except ApiError:
            if not nominated:
                raise
            return
        if reason == "Unschedulable" and not same:
            await self._events.record(PODS, pod.metadata, "Warning", "FailedScheduling", message, action="Scheduling")


def _always(_: object) -> Iterable[Key]:
    return [QUEUE]


def _never(_: object) -> Iterable[Key]:
    return ()
