"""What is done to a pod by posting to it: binding to a node, and eviction."""

from __future__ import annotations

import msgspec

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.decoding import parse_body
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import DeleteOptions, Deletion
from trainwright.embedded.apiserver.operations.reading import stored_object
from trainwright.embedded.apiserver.operations.updating import override
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, in_place
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

DONE: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def binding(api: Api, call: Call) -> Answer:
    """Assign a pod to a node, once."""
    if call.method != "POST":
        raise errors.method_not_allowed()
    options = call.write_options("CreateOptions")
    bound = _read_binding(call)

    def assign(pod: Json) -> None:
        _check_assignable(call, pod, bound)
        meta, status = pod["metadata"], pod.setdefault("status", {})
        pod["spec"]["nodeName"] = bound["target"]["name"]
        annotations = (bound.get("metadata") or {}).get("annotations")
        if annotations:
            meta.setdefault("annotations", {}).update(annotations)
        kept = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": api.now(),
        }
        status["conditions"] = [*kept, scheduled]

    await override(api, Write(call.served, _key(call), call.user, options, in_place(assign)))
    return json_answer(201, DONE)


def _read_binding(call: Call) -> Json:
    value, _ = parse_body(call, call.served)
    try:
        bound, _ = table.decode("core/v1.Binding", value)
    except ValueError as error:
        raise bad_request(f'Binding in version "v1" cannot be handled as a Binding: {error}') from None
    _check_name(call, bound, "Binding")
    target = bound.get("target") or {}
    faults = [] if target.get("name") else [field.required("target.name")]
    if target.get("kind", "") not in ("", "Node"):
        faults.append(field.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if faults:
        raise errors.invalid("", "Binding", call.name, faults)
    binding: Json = bound
    return binding


def _check_assignable(call: Call, pod: Json, bound: Json) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    uid = (bound.get("metadata") or {}).get("uid")
    if uid and uid != meta.get("uid"):
        raise errors.conflict("", "pods", call.name, f"Precondition failed: UID in precondition: {uid}")
    if meta.get("deletionTimestamp"):
        raise _unassignable(call, "is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _unassignable(call, f'is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _unassignable(call, "has non-empty .spec.schedulingGates")


def _unassignable(call: Call, why: str) -> StatusError:
    return errors.conflict("", "pods/binding", call.name, f"pod {call.name} {why}")


async def bind_by_body(api: Api, call: Call) -> Answer:
    """The older path of a binding: the pod is named in the body."""
    value, _ = parse_body(call, call.served)
    name = (value.get("metadata") or {}).get("name") if isinstance(value.get("metadata"), dict) else None
    pods = api.registry.find("", "v1", "pods")
    if not isinstance(name, str) or not name:
        raise errors.invalid("", "Binding", "", [field.required("metadata.name")])
    assert pods is not None
    return await binding(api, msgspec.structs.replace(call, served=pods, name=name, subresource="binding"))


async def eviction(api: Api, call: Call) -> Answer:
    """A delete by another name: there are no disruption budgets here."""
    if call.method != "POST":
        raise errors.method_not_allowed()
    value, _ = parse_body(call, call.served)
    _check_name(call, value, "Eviction")
    stored_object(api, call)
    options = _eviction_options(call, value)

    def disrupt(pod: Json) -> None:
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        if not any(condition.get("type") == "DisruptionTarget" for condition in conditions):
            conditions.append(
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": api.now(),
                    "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                }
            )

    if not options.dry_run:
        await override(api, Write(call.served, _key(call), call.user, WriteOptions(), in_place(disrupt)))
    await deletion.delete(api, Deletion(call.served, _key(call), call.user, options))
    return json_answer(201, DONE)


def _eviction_options(call: Call, value: Json) -> DeleteOptions:
    options = value.get("deleteOptions") or {}
    if not isinstance(options, dict):
        raise bad_request("deleteOptions must be an object")
    grace = options.get("gracePeriodSeconds")
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace=grace if isinstance(grace, int) else None,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        dry_run=bool(options.get("dryRun")) or bool(call.query.get("dryRun")),
    )


def _check_name(call: Call, body: Json, kind: str) -> None:
    if (body.get("metadata") or {}).get("name", "") != call.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


def _key(call: Call) -> Key:
    return Key("pods", call.namespace, call.name)
