"""Which operation a call is: by its method, by whether it names an object, by its subresource.

In: a `Call` that may be made. Out: what the operation answers. Methods that a path does not have are refused here, in
the words that kube-apiserver has for built-in kinds and for custom ones.
"""

from __future__ import annotations

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.reviews import Reviews
from trainwright.embedded.apiserver.access.tokenrequests import TokenRequests
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import review_kinds
from trainwright.embedded.apiserver.builtin.metrics import METRICS
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import Answer, Call, PageNotFound, StreamedAnswer, UpgradedAnswer
from trainwright.embedded.apiserver.operations import (
    logs,
    mutations,
    patching,
    podactions,
    reading,
    streams,
    subresources,
    usage,
    watching,
)
from trainwright.embedded.apiserver.operations.logs import Kubelet
from trainwright.embedded.apiserver.operations.subresources import Operation

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
READING = ("GET", "HEAD")

ON_OBJECTS: dict[str, Operation] = {"PUT": mutations.update, "PATCH": patching.patch, "DELETE": mutations.delete}
ON_SUBRESOURCES: dict[str, Operation] = {"GET": reading.get, "PUT": mutations.update, "PATCH": patching.patch}


class Operations:
    """Carries out calls."""

    def __init__(self, api: Api, reviews: Reviews, token_requests: TokenRequests, kubelet: Kubelet | None) -> None:
        self.api = api
        self.reviews = reviews
        self.token_requests = token_requests
        self.kubelet = kubelet
        self._review_kinds = review_kinds()

    async def perform(self, call: Call) -> Answer | StreamedAnswer | UpgradedAnswer:
        served = call.served
        if served.group == METRICS and self.kubelet is not None:
            return await usage.metrics(self.api, self.kubelet, call)
        if call.subresource:
            return await self._subresource(call)
        if served.plural in self._review_kinds and not served.custom and "list" not in served.verbs:
            _only_create(call)
            return self.reviews.answer(call)
        if served.resource == "bindings":
            _only_create(call)
            return await podactions.bind_by_body(self.api, call)
        if call.watch and call.method in READING:
            return watching.watch(self.api, call)
        return await (self._object(call) if call.name else self._collection(call))

    async def _collection(self, call: Call) -> Answer:
        method, served = call.method, call.served
        if method in READING:
            return await reading.list_objects(self.api, call)
        everywhere = served.namespaced and not call.namespace
        if method == "POST":
            if everywhere:
                raise PageNotFound if served.custom else errors.method_not_allowed()
            return await mutations.create(self.api, call)
        if method == "DELETE" and "deletecollection" in served.verbs and not everywhere:
            return await mutations.delete_collection(self.api, call)
        if served.custom and method in ("PUT", "PATCH"):
            raise errors.bad_request("name must be provided")
        raise errors.method_not_allowed()

    async def _object(self, call: Call) -> Answer:
        if call.method in READING:
            return await reading.get(self.api, call)
        if call.method == "POST" and call.served.custom:
            return await mutations.create(self.api, call)
        operation = ON_OBJECTS.get(call.method)
        if operation is None:
            raise errors.method_not_allowed()
        return await operation(self.api, call)

    async def _subresource(self, call: Call) -> Answer | StreamedAnswer | UpgradedAnswer:
        served = call.served
        if served.resource == "pods" and call.subresource == "log":
            if call.method != "GET":
                raise errors.method_not_allowed()
            return await logs.log(self.api, self.kubelet, call)
        if served.resource == "pods" and call.subresource in streams.STREAMS:
            return await streams.stream(self.api, self.kubelet, call)
        if served.resource == "serviceaccounts" and call.subresource == "token":
            return self.token_requests.answer(call)
        operation = subresources.operation_of(call)
        if operation is not None:
            return await operation(self.api, call)
        if call.subresource not in served.subresources:
            raise errors.not_found(served.group, served.plural, call.name)
        operation = ON_SUBRESOURCES.get(call.method)
        if operation is None:
            raise _unsupported(call)
        return await operation(self.api, call)


def _only_create(call: Call) -> None:
    """Reviews and bindings are questions and orders: they can be posted, and nothing else."""
    if call.name:
        raise errors.unknown_resource()
    if call.method != "POST":
        raise errors.method_not_allowed()


def _unsupported(call: Call) -> StatusError:
    served = call.served
    if served.custom and call.method in VERBS:
        text = f'{VERBS[call.method]} is not supported on resources of kind "{served.plural}.{served.group}"'
        return StatusError(405, text, details={"group": served.group, "kind": served.plural})
    return errors.method_not_allowed()
