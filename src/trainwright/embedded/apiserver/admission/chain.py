"""The admission chain: built-in plugins, then mutating webhooks in turn, then validating webhooks at once.

In: the request, the object and its old version. Out: the object as admission changed it, or the refusal of a webhook.
If no webhook matches the request, nothing is awaited, and the write stays one step of the event loop.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.admission.limitranges import check_limits
from trainwright.embedded.apiserver.admission.matching import Webhook
from trainwright.embedded.apiserver.admission.pods import admit_pod
from trainwright.embedded.apiserver.admission.request import AdmissionRequest
from trainwright.embedded.apiserver.admission.webhooks import ServiceResolver, WebhookCaller, WebhookFailed
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.storage.table import Event
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


class Admission:
    def __init__(self, api: Api) -> None:
        self.api = api
        self._caller = WebhookCaller(None)
        self._compiled: dict[str, list[Webhook]] = {}

    def start(self, resolve: ServiceResolver | None) -> None:
        self._caller = WebhookCaller(resolve)
        self.api.state.listeners.append(self._observe)

    async def close(self) -> None:
        """Close the connections to webhooks."""
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

    def concerned(self, request: AdmissionRequest) -> bool:
        """Whether the rules of any webhook match the request."""
        return bool(self._wanted(MUTATING, request) or self._wanted(VALIDATING, request))

    async def mutate(self, request: AdmissionRequest, obj: Json, old: Json | None) -> Json | None:
        """The object as webhooks changed it, or None. Built-in plugins run first, and change `obj` in place."""
        if request.served.resource == "pods" and not request.subresource:
            admit_pod(self.api, obj, create=request.operation == "CREATE")
        wanted = self._wanted(MUTATING, request)
        if not wanted:
            return None
        current = obj
        before: dict[Webhook, Json] = {}
        for webhook in wanted:
            before[webhook] = current
            current = await self._mutate_once(webhook, request, current, old)
        for webhook in wanted:
            # Reinvocation: others changed the object after this webhook saw it.
            if webhook.reinvoke and current is not obj and current != before[webhook]:
                current = await self._mutate_once(webhook, request, current, old)
        return None if current is obj else current

    async def _mutate_once(self, webhook: Webhook, request: AdmissionRequest, obj: Json, old: Json | None) -> Json:
        body = self._body(webhook, request, obj, old)
        if body is None:
            return obj
        try:
            operations = await self._caller.call(webhook, body)
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
            decoded, _ = request.served.strategy.decode(copy.deepcopy(patched))
        except ValueError as error:
            raise StatusError(
                500, f'Internal error occurred: webhook "{webhook.name}" made an object that cannot be read: {error}'
            ) from None
        request.served.strategy.default(decoded)
        if managed is not None:
            decoded["metadata"]["managedFields"] = managed
        return decoded

    def _failed(self, webhook: Webhook, error: WebhookFailed, obj: Json) -> Json:
        if webhook.fails_closed:
            raise failure(webhook, error) from None
        return obj

    async def validate(self, request: AdmissionRequest, obj: Json | None, old: Json | None) -> None:
        """Raise the refusal of the first webhook, in order, that refuses."""
        limited = LIMITED.get(request.served.resource, ())
        if obj is not None and request.operation in limited and not request.subresource:
            check_limits(self.api, request.served.resource, obj)
        wanted = self._wanted(VALIDATING, request)
        if request.operation == "DELETE":
            wanted = [*self._wanted(MUTATING, request), *wanted]
        if not wanted:
            return
        results = await asyncio.gather(
            *(self._validate_once(webhook, request, obj, old) for webhook in wanted), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _validate_once(
        self, webhook: Webhook, request: AdmissionRequest, obj: Json | None, old: Json | None
    ) -> None:
        body = self._body(webhook, request, obj, old)
        if body is None:
            return
        try:
            await self._caller.call(webhook, body)
        except WebhookFailed as error:
            if webhook.fails_closed:
                raise failure(webhook, error) from None

    def _wanted(self, resource: str, request: AdmissionRequest) -> list[Webhook]:
        if request.served.group == GROUP:
            return []  # webhooks are never called for webhook configurations
        return [
            webhook
            for webhook in self._webhooks(resource)
            if webhook.wants(request.served, request.operation, request.subresource)
        ]

    def _namespace_labels(self, request: AdmissionRequest, obj: Json | None, old: Json | None) -> dict[str, str] | None:
        if request.served.resource == "namespaces":
            shown = obj if obj is not None else old
            return dict((shown or {"metadata": {}})["metadata"].get("labels") or {})
        if not request.served.namespaced:
            return None
        stored = self.api.state.head(Key("namespaces", "", request.key.namespace))
        return {} if stored is None else dict(stored.labels or {})

    def _body(self, webhook: Webhook, request: AdmissionRequest, obj: Json | None, old: Json | None) -> Json | None:
        """The body to send, or None if the selectors or conditions of the webhook do not match."""
        labels = self._namespace_labels(request, obj, old)
        if not webhook.selects(labels, obj, old):
            return None
        served = request.served
        kind = {"group": served.group, "version": served.version, "kind": served.kind}
        resource = {"group": served.group, "version": served.version, "resource": served.plural}
        options: Json = {"kind": OPTION_KINDS[request.operation], "apiVersion": "meta.k8s.io/v1"}
        if request.operation != "DELETE":
            options["fieldManager"] = request.options.manager
        if request.options.dry_run:
            options["dryRun"] = ["All"]
        body: Json = {
            "uid": str(uuid.uuid4()),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": request.operation,
            "userInfo": request.user.info(),
            "object": obj,
            "oldObject": old,
            "dryRun": request.options.dry_run,
            "options": options,
        }
        if request.key.name:
            body["name"] = request.key.name
        if request.key.namespace:
            body["namespace"] = request.key.namespace
        if request.subresource:
            body["subResource"] = body["requestSubResource"] = request.subresource
        return body if webhook.meets_conditions(body) else None


def failure(webhook: Webhook, error: WebhookFailed) -> StatusError:
    text = f'Internal error occurred: failed calling webhook "{webhook.name}": {error}'
    cause = {"message": f'failed calling webhook "{webhook.name}": {error}'}
    return StatusError(500, text, details={"causes": [cause]})
