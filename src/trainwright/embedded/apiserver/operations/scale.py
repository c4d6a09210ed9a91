"""The scale subresource: an object's replicas, whatever their fields are called."""

from __future__ import annotations

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import parse_json, unsupported_body
from trainwright.embedded.apiserver.http.decoding import check_names, parse_body, report_unknown_in_patch
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.embedded.apiserver.operations.patching import APPLY_YAML, JSON_PATCH, MERGE_PATCH, REJECTED
from trainwright.embedded.apiserver.operations.reading import stored_object
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Write, in_place
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire import table
from trainwright.schema import errors as field
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import PatchError, json_patch, merge_patch

UNREGISTERED = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def scale(api: Api, call: Call) -> Answer:
    if call.method == "GET":
        return json_answer(200, _scale_of(call, stored_object(api, call)))
    patches = call.method == "PATCH"
    options = call.write_options("PatchOptions" if patches else "UpdateOptions")
    path = call.served.subresources["scale"]["paths"]["specReplicasPath"].strip(".").split(".")

    def set_replicas(obj: Json) -> None:
        current = _scale_of(call, obj)
        wanted = _patched(call, current, options.validation) if patches else _sent(call)
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        target = obj
        for name in path[:-1]:
            target = target.setdefault(name, {})
        target[path[-1]] = (wanted.get("spec") or {}).get("replicas", 0)

    write = Write(
        call.served,
        Key(call.served.resource, call.namespace, call.name),
        call.user,
        options,
        in_place(set_replicas),
        subresource="scale",
        method="patch" if patches else "update",
        recomputes=patches,
    )
    return json_answer(200, _scale_of(call, (await update(api, write)).obj))


def _scale_of(call: Call, obj: Json) -> Json:
    paths = call.served.subresources["scale"]["paths"]
    meta = obj["metadata"]
    spec_values = jsonpath.find(paths["specReplicasPath"], obj)
    status_values = jsonpath.find(paths["statusReplicasPath"], obj)
    status: Json = {"replicas": status_values[0] if status_values else 0}
    if paths.get("labelSelectorPath"):
        selector = jsonpath.find(paths["labelSelectorPath"], obj)
        if selector and selector[0]:
            status["selector"] = selector[0]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in SHOWN if name in meta},
        "spec": {"replicas": spec_values[0]} if spec_values and spec_values[0] else {},
        "status": status,
    }


def _sent(call: Call) -> Json:
    """The scale in the body of a PUT."""
    value, _ = parse_body(call, call.served)
    if (value.get("apiVersion") or "autoscaling/v1", value.get("kind") or "Scale") != ("autoscaling/v1", "Scale"):
        raise bad_request(UNREGISTERED)
    try:
        wanted: Json = table.decode("autoscaling/v1.Scale", value)[0]
    except ValueError:
        raise bad_request(UNREGISTERED) from None
    wanted.setdefault("metadata", {})
    check_names(call, wanted)
    return wanted


def _patched(call: Call, current: Json, validation: str) -> Json:
    """The present scale with the patch run on it."""
    try:
        change, duplicates = parse_json(call.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if call.content_type == MERGE_PATCH and isinstance(change, dict):
        patched = merge_patch(current, change)
    elif call.content_type == JSON_PATCH:
        try:
            patched = json_patch(current, change)
        except PatchError as error:
            raise StatusError(422, REJECTED, details={}) from error
    else:
        raise unsupported_body(f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_YAML}")
    if not isinstance(patched, dict):
        raise bad_request("the patch does not leave an object")
    try:
        wanted, unknown = table.decode("autoscaling/v1.Scale", patched)
    except ValueError as error:
        raise errors.invalid("", "", "", [field.invalid("patch", json_text(patched), str(error))]) from None
    report_unknown_in_patch(duplicates, unknown, validation, json_text(patched))
    scale: Json = wanted
    return scale
