"""The chain of admission: mutating webhooks one after the other, then validating ones side by side.

In: the operation, the object and what it was. Out: the object as webhooks changed it, or the refusal of one of them.
With no webhook that wants the request, nothing is awaited: the write stays one step of the event loop.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from typing import TYPE_CHECKING

import msgspec

from trainwright.embedded.apiserver.admission.limitranges import check_limits
from trainwright.embedded.apiserver.admission.matching import Webhook
from trainwright.embedded.apiserver.admission.pods import admit_pod
from trainwright.embedded.apiserver.admission.webhooks import ServiceResolver, WebhookCaller, WebhookFailed
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations.writing import User, WriteOptions
from trainwright.embedded.apiserver.storage.state import Event
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import PatchError, json_patch

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
LIMITED = {"pods": ("CREATE",), "persistentvolumeclaims": ("CREATE", "UPDATE")}
OPTION_KINDS = {
    "CREATE": "CreateOptions",
    "UPDATE": "UpdateOptions",
    "DELETE": "DeleteOptions",
    "CONNECT": "ConnectOptions",
}


class Call(msgspec.Struct, frozen=True):
    """What is about to happen, apart from the objects."""

    served: Type
    operation: str
    subresource: str
    key: Key
    user: User
    options: WriteOptions


class Admission:
    def __init__(self, api: Api) -> None:
        self.api = api
        self._caller = WebhookCaller(None)
        self._compiled: dict[str, list[Webhook]] = {}

    def start(self, resolve: ServiceResolver | None) -> None:
        self._caller = WebhookCaller(resolve)
        self.api.state.listeners.append(self._observe)

    async def close(self) -> None:
        """End connections to webhooks."""
        await self._caller.close()

    def _observe(self, event: Event) -> None:
        self._compiled.pop(event.current.key.resource, None)

    def _webhooks(self, resource: str) -> list[Webhook]:
        found = self._compiled.get(resource)
        if found is None:
            found = []
            table = self.api.state.tables.get(resource)
            for stored in table.select("") if table is not None else ():
                configuration = stored.decode()
                found += [Webhook(stored.key.name, spec) for spec in configuration.get("webhooks") or ()]
            self._compiled[resource] = found
        return found

    def call(self, served: Type, operation: str, subresource: str, key: Key, user: User, options: WriteOptions) -> Call:
        return Call(served, operation, subresource, key, user, options)

    def concerned(self, call: Call) -> bool:
        """Whether any webhook wants to hear of this."""
        return bool(self._wanted(MUTATING, call) or self._wanted(VALIDATING, call))

    # ------------------------------------------------------------------------------------------------ the two phases

    async def mutate(self, call: Call, obj: Json, old: Json | None) -> Json | None:
        """The changed object, or None if no webhook changed it. Built-in admission works in place, and comes first."""
        if call.served.resource == "pods" and not call.subresource:
            admit_pod(self.api, obj, create=call.operation == "CREATE")
        wanted = self._wanted(MUTATING, call)
        if not wanted:
            return None
        current = obj
        before: dict[Webhook, Json] = {}
        for webhook in wanted:
            before[webhook] = current
            current = await self._mutate_once(webhook, call, current, old)
        for webhook in wanted:
            # Asked again if others changed the object after it and it wants to know.
            if webhook.reinvoke and current is not obj and current != before[webhook]:
                current = await self._mutate_once(webhook, call, current, old)
        return None if current is obj else current

    async def _mutate_once(self, webhook: Webhook, call: Call, obj: Json, old: Json | None) -> Json:
        request = self._request(webhook, call, obj, old)
        if request is None:
            return obj
        try:
            operations = await self._caller.call(webhook, request)
            if not operations:
                return obj
            patched = json_patch(copy.deepcopy(obj), operations)
            if not isinstance(patched, dict):
                raise WebhookFailed("the patch does not leave an object")
        except PatchError as error:
            return self._failed(webhook, WebhookFailed(f"the patch does not apply: {error}"), obj)
        except WebhookFailed as error:
            return self._failed(webhook, error, obj)
        managed = obj["metadata"].get("managedFields")
        try:
            decoded, _ = call.served.strategy.decode(copy.deepcopy(patched))
        except ValueError as error:
            raise StatusError(
                500, f'Internal error occurred: webhook "{webhook.name}" made an object that cannot be read: {error}'
            ) from None
        call.served.strategy.default(decoded)
        if managed is not None:
            decoded["metadata"]["managedFields"] = managed
        return decoded

    def _failed(self, webhook: Webhook, error: WebhookFailed, obj: Json) -> Json:
        if webhook.fails_closed:
            raise failure(webhook, error) from None
        return obj

    async def validate(self, call: Call, obj: Json | None, old: Json | None) -> None:
        """Raises the refusal of the first webhook, in order, that refuses."""
        limited = LIMITED.get(call.served.resource, ())
        if obj is not None and call.operation in limited and not call.subresource:
            check_limits(self.api, call.served.resource, obj)
        wanted = self._wanted(VALIDATING, call)
        if call.operation == "DELETE":
            wanted = [*self._wanted(MUTATING, call), *wanted]
        if not wanted:
            return
        results = await asyncio.gather(
            *(self._validate_once(webhook, call, obj, old) for webhook in wanted), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _validate_once(self, webhook: Webhook, call: Call, obj: Json | None, old: Json | None) -> None:
        request = self._request(webhook, call, obj, old)
        if request is None:
            return
        try:
            await self._caller.call(webhook, request)
        except WebhookFailed as error:
            if webhook.fails_closed:
                raise failure(webhook, error) from None

    # ------------------------------------------------------------------------------------------------ selecting

    def _wanted(self, resource: str, call: Call) -> list[Webhook]:
        if call.served.group == GROUP:
            return []  # webhooks never guard webhooks
        return [
            webhook
            for webhook in self._webhooks(resource)
            if webhook.wants(call.served, call.operation, call.subresource)
        ]

    def _namespace_labels(self, call: Call, obj: Json | None, old: Json | None) -> dict[str, str] | None:
        if call.served.resource == "namespaces":
            shown = obj if obj is not None else old
            return dict((shown or {"metadata": {}})["metadata"].get("labels") or {})
        if not call.served.namespaced:
            return None
        stored = self.api.state.head(Key("namespaces", "", call.key.namespace))
        return {} if stored is None else dict(stored.labels or {})

    def _request(self, webhook: Webhook, call: Call, obj: Json | None, old: Json | None) -> Json | None:
        """The request to send, or None if the webhook's selectors or conditions leave it out."""
        labels = self._namespace_labels(call, obj, old)
        if not webhook.selects(call.key, labels, obj, old):
            return None
        served = call.served
        kind = {"group": served.group, "version": served.version, "kind": served.kind}
        resource = {"group": served.group, "version": served.version, "resource": served.plural}
        options: Json = {"kind": OPTION_KINDS[call.operation], "apiVersion": "meta.k8s.io/v1"}
        if call.operation != "DELETE":
            options["fieldManager"] = call.options.manager
        if call.options.dry_run:
            options["dryRun"] = ["All"]
        request: Json = {
            "uid": str(uuid.uuid4()),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": call.operation,
            "userInfo": call.user.info(),
            "object": obj,
            "oldObject": old,
            "dryRun": call.options.dry_run,
            "options": options,
        }
        if call.key.name:
            request["name"] = call.key.name
        if call.key.namespace:
            request["namespace"] = call.key.namespace
        if call.subresource:
            request["subResource"] = request["requestSubResource"] = call.subresource
        return request if webhook.meets_conditions(request) else None


def failure(webhook: Webhook, error: WebhookFailed) -> StatusError:
    text = f'Internal error occurred: failed calling webhook "{webhook.name}": {error}'
    cause = {"message": f'failed calling webhook "{webhook.name}": {error}'}
    return StatusError(500, text, details={"causes": [cause]})
