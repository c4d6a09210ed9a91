"""The `token` subresource of service accounts: a token is issued, nothing is stored."""

from __future__ import annotations

from trainwright.api.times import rfc3339
from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.tokens import (
    AUDIENCE,
    DEFAULT_SECONDS,
    MAX_SECONDS,
    MIN_SECONDS,
    ServiceAccountTokens,
)
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager
from trainwright.embedded.apiserver.fieldmanager.nodes import object_node
from trainwright.embedded.apiserver.http.decoding import parse_body
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

GROUP, VERSION, KIND = "authentication.k8s.io", "authentication.k8s.io/v1", "TokenRequest"
SPEC: Json = {
    "type": "object",
    "properties": {
        "audiences": {"type": "array", "items": {"type": "string"}},
        "expirationSeconds": {"type": "integer"},
        "boundObjectRef": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
EMPTY: Json = {"metadata": {}, "spec": {"audiences": None, "expirationSeconds": None, "boundObjectRef": None}}
BOUND_RESOURCES = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class TokenRequests:
    def __init__(self, api: Api, tokens: ServiceAccountTokens) -> None:
        self.api = api
        self.tokens = tokens
        node = object_node({"type": "object", "properties": {"spec": SPEC}})
        self._fields = FieldManager(node, VERSION, KIND, subresource="token", empty=EMPTY)

    def answer(self, call: Call) -> Answer:
        if call.method != "POST":
            raise errors.method_not_allowed()
        account = self.api.state.get(Key("serviceaccounts", call.namespace, call.name))
        if account is None:
            raise errors.not_found("", "serviceaccounts", call.name)
        spec = _read(call).get("spec") or {}
        seconds = _seconds(spec)
        bound = self._bound(call, spec.get("boundObjectRef"))
        audiences = spec.get("audiences") or [AUDIENCE]
        token, end = self.tokens.issue(call.served.whole_object(account.data), audiences, seconds, bound)
        body: Json = {
            "kind": KIND,
            "apiVersion": VERSION,
            "metadata": self._metadata(call, account.uid, spec, seconds),
            "spec": {
                **spec,
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": rfc3339(end)},
        }
        return json_answer(201, body)

    def _metadata(self, call: Call, uid: str, spec: Json, seconds: int) -> Json:
        now = self.api.now()
        given = {name: value for name, value in spec.items() if value is not None}
        owned: Json = {"metadata": {}, "spec": {**given, "expirationSeconds": seconds}}
        self._fields.update(None, owned, call.write_options("CreateOptions").manager, now)
        return {
            "name": call.name,
            "namespace": call.namespace,
            "uid": uid,
            "creationTimestamp": now,
            "managedFields": owned["metadata"].get("managedFields"),
        }

    def _bound(self, call: Call, reference: Json | None) -> Json | None:
        """The object that the token is bound to, if it is there and the one that is meant."""
        if not reference:
            return None
        kind, name = reference.get("kind", ""), reference.get("name", "")
        resource = BOUND_RESOURCES.get(kind)
        if resource is None or reference.get("apiVersion") != "v1":
            group, _, version = reference.get("apiVersion", "").rpartition("/")
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        stored = self.api.state.get(Key(resource, "" if kind == "Node" else call.namespace, name))
        if stored is None:
            raise errors.not_found("", resource, name)
        if reference.get("uid") and reference["uid"] != stored.uid:
            text = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
                " The object might have been deleted and then recreated"
            )
            raise errors.conflict("", kind, name, text)
        if kind == "Pod" and _account_of(stored.decode()) != call.name:
            raise bad_request(
                f'cannot bind token for serviceaccount "{call.name}" to pod running with different serviceaccount name.'
            )
        return {"kind": kind, "name": stored.key.name, "uid": stored.uid}


def _account_of(pod: Json) -> str:
    name: str = (pod.get("spec") or {}).get("serviceAccountName") or "default"
    return name


def _read(call: Call) -> Json:
    value, _ = parse_body(call, call.served)
    try:
        request, _ = table.decode("authentication/v1.TokenRequest", value)
    except ValueError as error:
        raise bad_request(f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {error}') from None
    named = (request.get("metadata") or {}).get("name")
    if named and named != call.name:
        raise _invalid(
            call.name, field.invalid("metadata.name", named, "must match the service account name if specified")
        )
    found: Json = request
    return found


def _seconds(spec: Json) -> int:
    wanted = spec.get("expirationSeconds")
    seconds: int = DEFAULT_SECONDS if wanted is None else wanted
    at = "spec.expirationSeconds"
    if seconds < MIN_SECONDS:
        raise _invalid("", field.invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > MAX_SECONDS:
        raise _invalid("", field.invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    return seconds


def _invalid(name: str, fault: FieldError) -> StatusError:
    return errors.invalid(GROUP, KIND, name, [fault])
