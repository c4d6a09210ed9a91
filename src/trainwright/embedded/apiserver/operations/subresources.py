"""Subresources with a life of their own: scale, log, binding, eviction, finalize. `status` is read and written like the
object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.pods import UNSUPPORTED
from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import parse_json, unsupported_body
from trainwright.embedded.apiserver.http.decoding import parse_body, read_object, report_unknown_in_patch
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.embedded.apiserver.operations import deletion, finalizing, patching, reading, writing
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import errors as field
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import PatchError, json_patch, merge_patch

Handler = Callable[[Api, Call], Awaitable[Answer]]


def _stored(api: Api, call: Call) -> Json:
    stored = api.state.get(Key(call.served.resource, call.namespace, call.name))
    if stored is None:
        raise errors.not_found(call.served.group, call.served.plural, call.name)
    return call.served.whole_object(stored.data)


def refuse(call: Call) -> StatusError:
    """Known to Kubernetes, not to this server: said plainly."""
    text = f"the subresource {call.served.plural}/{call.subresource} is not supported by the embedded API server"
    return StatusError(405, text, details={})


# ---------------------------------------------------------------------------------------------------------- scale


def _scale_of(call: Call, obj: Json) -> Json:
    paths = call.served.subresources["scale"]["paths"]
    meta = obj["metadata"]
    kept = {
        name: meta[name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in meta
    }
    spec_values = jsonpath.find(paths["specReplicasPath"], obj)
    status_values = jsonpath.find(paths["statusReplicasPath"], obj)
    status: Json = {"replicas": status_values[0] if status_values else 0}
    if paths.get("labelSelectorPath"):
        selector = jsonpath.find(paths["labelSelectorPath"], obj)
        if selector and selector[0]:
            status["selector"] = selector[0]
    spec: Json = {"replicas": spec_values[0]} if spec_values and spec_values[0] else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status}


async def scale(api: Api, call: Call) -> Answer:
    if call.method == "GET":
        return json_answer(200, _scale_of(call, _stored(api, call)))
    options = call.write_options("PatchOptions" if call.method == "PATCH" else "UpdateOptions")
    path = call.served.subresources["scale"]["paths"]["specReplicasPath"].strip(".").split(".")

    def compute(obj: Json | None) -> Json:
        assert obj is not None
        wanted = _wanted_scale(call, _scale_of(call, obj), options.validation)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        target = obj
        for name in path[:-1]:
            target = target.setdefault(name, {})
        target[path[-1]] = replicas
        return obj

    written = await writing.update(
        api,
        call.served,
        Key(call.served.resource, call.namespace, call.name),
        compute,
        options,
        call.user,
        subresource="scale",
        retry=call.method == "PATCH",
    )
    return json_answer(200, _scale_of(call, written.obj))


UNREGISTERED = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'


def _wanted_scale(call: Call, current: Json, validation: str) -> Json:
    if call.method == "PUT":
        value, _ = parse_body(call, call.served)
        if (value.get("apiVersion") or "autoscaling/v1", value.get("kind") or "Scale") != ("autoscaling/v1", "Scale"):
            raise bad_request(UNREGISTERED)
        try:
            wanted: Json = table.decode("autoscaling/v1.Scale", value)[0]
        except ValueError:
            raise bad_request(UNREGISTERED) from None
        wanted.setdefault("metadata", {})
        patching.check_names(call, wanted)
        return wanted
    try:
        change, duplicates = parse_json(call.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if call.content_type == patching.MERGE_PATCH and isinstance(change, dict):
        patched = merge_patch(current, change)
    elif call.content_type == patching.JSON_PATCH:
        try:
            patched = json_patch(current, change)
        except PatchError as error:
            raise StatusError(422, patching.REJECTED, details={}) from error
    else:
        raise unsupported_body(f"{patching.JSON_PATCH}, {patching.MERGE_PATCH}, {patching.APPLY_YAML}")
    if not isinstance(patched, dict):
        raise bad_request("the patch does not leave an object")
    try:
        wanted, unknown = table.decode("autoscaling/v1.Scale", patched)
    except ValueError as error:
        raise errors.invalid("", "", "", [field.invalid("patch", json_text(patched), str(error))]) from None
    report_unknown_in_patch(duplicates, unknown, validation, json_text(patched))
    return wanted


# ---------------------------------------------------------------------------------------------------------- namespaces


async def finalize(api: Api, call: Call) -> Answer:
    if call.method != "PUT":
        raise errors.method_not_allowed()
    options = call.write_options("UpdateOptions")
    obj = read_object(call, call.served, options.validation)
    patching.check_names(call, obj)
    done = await finalizing.finalize(api, call.served, call.name, lambda old: obj, options)
    return reading.object_answer(api, call, done)


# ---------------------------------------------------------------------------------------------------------- pods


async def binding(api: Api, call: Call) -> Answer:
    """Assign a pod to a node, once."""
    if call.method != "POST":
        raise errors.method_not_allowed()
    options = call.write_options("CreateOptions")
    value, _ = parse_body(call, call.served)
    try:
        bound, _ = table.decode("core/v1.Binding", value)
    except ValueError as error:
        raise bad_request(f'Binding in version "v1" cannot be handled as a Binding: {error}') from None
    _same_name(call, bound, "Binding")
    target = bound.get("target") or {}
    node = target.get("name", "")
    faults = [] if node else [field.required("target.name")]
    if target.get("kind", "") not in ("", "Node"):
        faults.append(field.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if faults:
        raise errors.invalid("", "Binding", call.name, faults)

    def compute(obj: Json | None) -> Json:
        assert obj is not None
        meta, spec = obj["metadata"], obj["spec"]
        wanted = bound.get("metadata") or {}
        if wanted.get("uid") and wanted["uid"] != meta.get("uid"):
            raise errors.conflict("", "pods", call.name, f"Precondition failed: UID in precondition: {wanted['uid']}")
        if meta.get("deletionTimestamp"):
            raise errors.conflict(
                "", "pods/binding", call.name, f"pod {call.name} is being deleted, cannot be assigned to a host"
            )
        if spec.get("nodeName"):
            text = f'pod {call.name} is already assigned to node "{spec["nodeName"]}"'
            raise errors.conflict("", "pods/binding", call.name, text)
        if spec.get("schedulingGates"):
            text = f"pod {call.name} has non-empty .spec.schedulingGates"
            raise errors.conflict("", "pods/binding", call.name, text)
        spec["nodeName"] = node
        if wanted.get("annotations"):
            meta.setdefault("annotations", {}).update(wanted["annotations"])
        conditions = obj.setdefault("status", {}).setdefault("conditions", [])
        kept = [c for c in conditions if c.get("type") != "PodScheduled"]
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": api.now(),
        }
        obj["status"]["conditions"] = [*kept, scheduled]
        return obj

    await writing.bind(api, call.served, Key("pods", call.namespace, call.name), compute, options)
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return json_answer(201, body)


def _same_name(call: Call, body: Json, kind: str) -> None:
    if (body.get("metadata") or {}).get("name", "") != call.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


async def bind_by_body(api: Api, call: Call) -> Answer:
    """The older path of a binding: the pod is named in the body."""
    value, _ = parse_body(call, call.served)
    name = (value.get("metadata") or {}).get("name") if isinstance(value.get("metadata"), dict) else None
    pods = api.registry.find("", "v1", "pods")
    if not isinstance(name, str) or not name:
        raise errors.invalid("", "Binding", "", [field.required("metadata.name")])
    assert pods is not None
    return await binding(api, msgspec.structs.replace(call, served=pods, name=name, subresource="binding"))


def _disrupted(obj: Json | None, now: str) -> Json:
    assert obj is not None
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    if not any(condition.get("type") == "DisruptionTarget" for condition in conditions):
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": now,
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }
        )
    return obj


async def eviction(api: Api, call: Call) -> Answer:
    """A delete by another name: there are no disruption budgets here."""
    if call.method != "POST":
        raise errors.method_not_allowed()
    value, _ = parse_body(call, call.served)
    _same_name(call, value, "Eviction")
    _stored(api, call)
    options = value.get("deleteOptions") or {}
    if not isinstance(options, dict):
        raise bad_request("deleteOptions must be an object")
    grace = options.get("gracePeriodSeconds")
    preconditions = options.get("preconditions") or {}
    dry_run = bool(options.get("dryRun")) or bool(call.query.get("dryRun"))
    chosen = deletion.DeleteOptions(
        grace=grace if isinstance(grace, int) else None,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        dry_run=dry_run,
    )
    key = Key("pods", call.namespace, call.name)
    if not dry_run:
        await writing.bind(api, call.served, key, lambda obj: _disrupted(obj, api.now()), WriteOptions())
    await deletion.delete(api, deletion.Deletion(call.served, key, call.user, chosen))
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return json_answer(201, body)


HANDLERS: dict[tuple[str, str], Handler] = {
    ("namespaces", "finalize"): finalize,
    ("pods", "binding"): binding,
    ("pods", "eviction"): eviction,
}


def handler_of(call: Call) -> Handler | None:
    """The handler of a subresource that is not `status` or `log`."""
    if call.subresource == "scale" and "scale" in call.served.subresources:
        return scale if call.method in ("GET", "PUT", "PATCH") else None
    found = HANDLERS.get((call.served.resource, call.subresource))
    if found is None and call.served.resource == "pods" and call.subresource in UNSUPPORTED:
        raise refuse(call)
    return found
