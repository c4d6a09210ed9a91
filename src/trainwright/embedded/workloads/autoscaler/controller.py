"""Carries out what `decision` decides for a HorizontalPodAutoscaler, every fifteen seconds.

In: autoscalers and pods by watch; scale and metrics asked for at each look. Out: the target's scale, by its `scale`
subresource, the autoscaler's status and events. What was recommended is kept in memory, as kube-controller-manager
does: after a start nothing shrinks for five minutes.
"""

from __future__ import annotations

import msgspec

from trainwright.api.events import EventType
from trainwright.api.resources import HORIZONTAL_POD_AUTOSCALERS, POD_METRICS, Resource
from trainwright.client import ApiError, Client, ClientError, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.autoscaler.decision import Seen, decide, unreachable
from trainwright.embedded.workloads.autoscaler.limits import Memory
from trainwright.embedded.workloads.objects import ApiObject, changed_status
from trainwright.schema.jsonobject import Json
from trainwright.schema.selectors import SelectorError, parse_label_selector

PERIOD_SECONDS = 15.0


class Autoscalers:
    """Reads the shared sources. `controller()` returns the `Controller` for a `Manager`."""

    def __init__(
        self,
        client: Client,
        autoscalers: Source[ApiObject],
        pods: Source[ApiObject],
        clock: Clock,
        period: float = PERIOD_SECONDS,
    ) -> None:
        self._client = client
        self._autoscalers = autoscalers
        self._pods = pods
        self._clock = clock
        self._period = period
        self._events = EventRecorder(client, "horizontal-pod-autoscaler", clock)
        self._memories: dict[str, Memory] = {}
        self._next: dict[str, float] = {}
        """When each autoscaler looks again: its own status, which it writes, does not make it look earlier."""

    def controller(self) -> Controller:
        return Controller("autoscaler", self.reconcile, [Watches(self._autoscalers)], workers=1, clock=self._clock)

    async def reconcile(self, key: Key) -> Outcome:
        autoscaler = self._autoscalers.store.get(key)
        if autoscaler is None or autoscaler.is_being_deleted:
            self._forget()
            return Done()
        uid, now = autoscaler.metadata.uid, self._clock.now()
        if (due := self._next.get(uid, now)) > now:
            return After(due - now)
        self._next[uid] = now + self._period
        await self._look(autoscaler)
        return After(self._period)

    async def _look(self, autoscaler: ApiObject) -> None:
        uid, namespace = autoscaler.metadata.uid, autoscaler.metadata.namespace
        reference = autoscaler.spec.get("scaleTargetRef") or {}
        name = str(reference.get("name", ""))
        try:
            resource = await self._resource_of(reference)
            scale = await self._client.get(resource, name, namespace, subresource="scale")
            selector = str((scale.get("status") or {}).get("selector") or "")
            wanted = parse_label_selector(selector)
        except (ApiError, SelectorError) as error:
            status = unreachable(autoscaler, str(error), self._clock.wall())
            if await self._write(autoscaler, status):
                await self._tell(autoscaler, "Warning", "FailedGetScale", str(error))
            return
        if not selector:
            return  # the target has not said yet which pods are its own
        pods = [
            pod
            for pod in self._pods.store
            if pod.metadata.namespace == namespace and wanted.matches(pod.metadata.labels or {})
        ]
        seen = Seen(int((scale.get("spec") or {}).get("replicas") or 0), pods, await self._metrics(namespace, selector))
        decision = decide(autoscaler, seen, self._memories.get(uid, Memory()), self._clock.wall())
        if decision.replicas is not None:
            body = {"spec": {"replicas": decision.replicas}}
            await self._client.patch(
                resource, body, name=name, namespace=namespace, subresource="scale", decode=msgspec.Raw
            )
        self._memories[uid] = decision.memory
        if await self._write(autoscaler, decision.status):
            for type, reason, message in decision.events:
                await self._tell(autoscaler, type, reason, message)

    async def _metrics(self, namespace: str, selector: str) -> list[Json] | str:
        try:
            listed = await self._client.list(POD_METRICS, namespace, label_selector=selector)
        except ClientError as error:
            return f"unable to fetch metrics from resource metrics API: {error}"
        return list(listed.items or ())

    async def _resource_of(self, reference: Json) -> Resource:
        group, _, version = str(reference.get("apiVersion", "")).rpartition("/")
        served = await self._client.raw(f"/apis/{group}/{version}" if group else f"/api/{version}")
        for item in served["resources"]:
            if item["kind"] == reference.get("kind") and "/" not in item["name"]:
                return Resource(group, version, item["name"], item["kind"], item["namespaced"])
        return Resource(group, version, f"{str(reference.get('kind', '')).lower()}s", str(reference.get("kind", "")))

    async def _tell(self, autoscaler: ApiObject, type: EventType, reason: str, message: str) -> None:
        await self._events.record(HORIZONTAL_POD_AUTOSCALERS, autoscaler.metadata, type, reason, message)

    async def _write(self, autoscaler: ApiObject, status: Json) -> bool:
        """Whether there was anything new; what is the same as before is told once, not every fifteen seconds."""
        patch = changed_status(autoscaler, status)
        if patch is None:
            return False
        try:
            await self._client.patch(
                HORIZONTAL_POD_AUTOSCALERS,
                patch,
                name=autoscaler.name,
                namespace=autoscaler.metadata.namespace,
                subresource="status",
                decode=msgspec.Raw,
            )
        except NotFound:
            return False
        return True

    def _forget(self) -> None:
        """What is remembered of autoscalers that are gone."""
        living = {it.metadata.uid for it in self._autoscalers.store}
        self._memories = {uid: memory for uid, memory in self._memories.items() if uid in living}
        self._next = {uid: due for uid, due in self._next.items() if uid in living}
