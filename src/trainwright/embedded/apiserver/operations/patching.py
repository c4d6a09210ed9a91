"""PATCH: JSON patch, merge patch, strategic merge patch, server-side apply.

Each becomes a function from the stored object to the wanted one, which `writing.update` runs (again if the object
moved meanwhile).
"""

from __future__ import annotations

import collections
import json
from typing import Any

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager, refuse_managed_fields
from trainwright.embedded.apiserver.fieldmanager.updater import AppliedConfiguration
from trainwright.embedded.apiserver.http.bodies import json_kind, parse_json, parse_yaml, unsupported_body
from trainwright.embedded.apiserver.http.decoding import refusal, report_unknown_in_patch, wrong_type
from trainwright.embedded.apiserver.http.requests import Answer, Call
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.operations import reading, writing
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.gotext import json_text, plain_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import PatchError, PatchTestFailed, json_patch, merge_patch
from trainwright.schema.strategic import StrategicMergeError, strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
MAX_OPERATIONS = 10_000
REJECTED = "the server rejected our request due to an error in our request"  # all that the real one says, too


async def patch(api: Api, call: Call) -> Answer:
    served = call.served
    kind = call.content_type
    if kind not in (JSON_PATCH, MERGE_PATCH, APPLY_YAML) and (served.custom or kind != STRATEGIC_PATCH):
        if served.custom:
            raise unsupported_body(f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_YAML}")
        raise StatusError(415, "415: Unsupported Media Type", details={})
    options = call.write_options("PatchOptions")
    form = reading.form_of(call)
    key = Key(served.resource, call.namespace, call.name)
    if api.state.head(key) is None and (kind != APPLY_YAML or call.subresource):
        # The patch is read only once there is an object to use it on.
        raise errors.not_found(served.group, served.plural, call.name)
    applied = writing.Application() if kind == APPLY_YAML else None
    compute = _patch(call, kind, options) if applied is None else _apply(api, call, options, applied)
    written = await writing.update(
        api,
        served,
        key,
        compute,
        options,
        call.user,
        subresource=call.subresource,
        applied=applied,
        allow_create=applied is not None,
        retry=True,
    )
    return reading.object_answer(api, call, written.obj, 201 if written.created else 200, form)


# ---------------------------------------------------------------------------------------------------------- patches


def _patch(call: Call, kind: str, options: WriteOptions) -> writing.Compute:
    served = call.served
    duplicates: list[str] = []
    if kind == JSON_PATCH:
        try:
            value, found_twice = parse_json(call.body)
        except ValueError as error:
            raise bad_request(f"error decoding patch: {error}") from None
        duplicates = [f"json patch {text}" for text in found_twice]
        if not isinstance(value, list):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
            )
        if len(value) > MAX_OPERATIONS:
            text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(value)}"
            raise StatusError(413, text)
        duplicates += _unknown_members(value)
    else:
        try:
            value, duplicates = parse_json(call.body)
        except ValueError as error:
            raise bad_request(f"error decoding patch: {error}") from None
        if not isinstance(value, dict):
            what = f"json: cannot unmarshal {json_kind(value)} into Go value of type map[string]interface {{}}"
            raise bad_request(f"error decoding patch: {what}")

    def compute(old: Json | None) -> Json:
        if old is None:  # a PUT may create some kinds, a patch has nothing to start from
            raise errors.not_found(served.group, served.plural, call.name)
        patched = _run(served, kind, old, value)
        if not isinstance(patched, dict):
            raise bad_request("the patch does not leave an object")
        _keep_type(served, kind, patched)
        if not isinstance(patched.get("metadata"), dict):
            patched["metadata"] = {}
        obj, unknown = _decode_patched(served, patched)
        if duplicates or unknown:
            shown = plain_text(value) if kind == STRATEGIC_PATCH else json_text(patched)
            report_unknown_in_patch(duplicates, unknown, options.validation, shown)
        check_names(call, obj)
        served.strategy.default(obj)
        return obj

    return compute


def _unknown_members(operations: list[Any]) -> list[str]:
    known = ("op", "path", "from", "value")
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in known
    ]


def _run(served: Type, kind: str, old: Json, value: Any) -> Any:
    try:
        if kind == MERGE_PATCH:
            return merge_patch(old, value)
        if kind == JSON_PATCH:
            return json_patch(old, value)
        return strategic_merge(old, value, served.strategy.merge_schema())
    except (PatchTestFailed, PatchError) as error:
        raise errors.StatusError(422, REJECTED, details={}) from error
    except StrategicMergeError as error:
        raise bad_request(str(error)) from None


def _keep_type(served: Type, kind: str, patched: Json) -> None:
    """A patch cannot turn an object into one of another kind or version."""
    if served.custom:
        return  # the kind's own rules say so
    if kind != STRATEGIC_PATCH:  # that one is made on Go's types, which know what they are
        why = wrong_type(served, patched.get("apiVersion") or served.api_version, patched.get("kind") or served.kind)
        if why:
            raise errors.invalid("", "", "", [field.invalid("patch", json_text(patched), why)])
    patched["apiVersion"], patched["kind"] = served.api_version, served.kind


def _decode_patched(served: Type, patched: Json) -> tuple[Json, list[str]]:
    try:
        # Patches share what they leave alone with the stored object; decoding makes all of it our own.
        fresh = json.loads(json.dumps(patched)) if served.custom else patched
        return served.strategy.decode(fresh)
    except ValueError as error:
        raise errors.invalid("", "", "", [field.invalid("patch", json_text(patched), str(error))]) from None


def check_names(call: Call, obj: Json) -> None:
    """Name and namespace in the body must be those of the path."""
    meta = obj["metadata"]
    name = meta.get("name")
    if not name:
        raise bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    namespace = meta.get("namespace") or ""
    if call.served.namespaced:
        if namespace and namespace != call.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = call.namespace


# ---------------------------------------------------------------------------------------------------------- apply


def _apply(api: Api, call: Call, options: WriteOptions, application: writing.Application) -> writing.Compute:
    served = call.served
    manager = served.field_manager(call.subresource)
    applied, duplicates = _applied(call, manager)
    if duplicates and options.validation == "Strict":
        why = refusal(duplicates, [])
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {why}")
    if options.validation == "Warn":
        warn(duplicates)

    def compute(old: Json | None) -> Json:
        obj = manager.apply(old, applied, options.manager, api.now(), force=options.force)
        if obj is None:
            check_names(call, {"metadata": dict(applied.config["metadata"])})
            raise writing.Unchanged
        obj["apiVersion"], obj["kind"] = served.api_version, served.kind
        check_names(call, obj)
        # Unknown fields were refused by their absence from the schema; those it leaves free are dropped in silence.
        decoded, _ = _decode_patched(served, obj)
        application.settled = not served.custom or _says_the_same(decoded, obj)
        served.strategy.default_applied(decoded)
        return decoded

    return compute


def _says_the_same(decoded: Json, merged: Json) -> bool:
    """Whether decoding left all of an object as it was, but for metadata that the server fills in."""
    given = {name: value for name, value in merged["metadata"].items() if name not in metadata.SYSTEM_FIELDS}
    kept = {name: value for name, value in decoded["metadata"].items() if name not in metadata.SYSTEM_FIELDS}
    return same({**decoded, "metadata": kept}, {**merged, "metadata": given})


# Controllers apply the same bytes over and over; parsing and measuring them once makes that cheap.
_APPLIED: collections.OrderedDict[tuple[int, bytes], tuple[FieldManager, AppliedConfiguration, list[str]]] = (
    collections.OrderedDict()
)
APPLIED_KEPT, APPLIED_SIZE = 128, 64 * 1024


def _applied(call: Call, manager: FieldManager) -> tuple[AppliedConfiguration, list[str]]:
    key = (id(manager), call.body)
    found = _APPLIED.get(key)
    if found is not None and found[0] is manager:
        _APPLIED.move_to_end(key)
        return found[1], found[2]
    applied, duplicates = _read_applied(call, manager)
    if len(call.body) <= APPLIED_SIZE:
        _APPLIED[key] = (manager, applied, duplicates)
        while len(_APPLIED) > APPLIED_KEPT:
            _APPLIED.popitem(last=False)
    return applied, duplicates


def _read_applied(call: Call, manager: FieldManager) -> tuple[AppliedConfiguration, list[str]]:
    served = call.served
    try:
        config, duplicates = parse_yaml(call.body)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: the applied configuration is not an object")
    version, kind = config.get("apiVersion") or "", config.get("kind") or ""
    if version != served.api_version or kind != served.kind:
        group, _, bare = str(version).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{bare}, Kind={kind}")
    meta = config.get("metadata")
    if meta is None:
        meta = config["metadata"] = {}
    if not isinstance(meta, dict):
        raise bad_request("error decoding YAML: metadata is not an object")
    refuse_managed_fields(config)
    return manager.prepare(config), duplicates
