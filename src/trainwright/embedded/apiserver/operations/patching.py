"""PATCH: JSON patch, merge patch, strategic merge patch, server-side apply.

Each becomes a function from the stored object to the wanted one, which `updating.update` runs (again if the object
moved meanwhile).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import json_kind, parse_json, unsupported_body
from trainwright.embedded.apiserver.http.decoding import check_names, report_unknown_in_patch, wrong_type
from trainwright.embedded.apiserver.http.requests import Answer, Call
from trainwright.embedded.apiserver.operations import reading
from trainwright.embedded.apiserver.operations.applying import applying, decode_patched
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Compute, Wanted, Write, WriteOptions
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
    _check_type(call)
    options = call.write_options("PatchOptions")
    form = reading.form_of(call)
    key = Key(served.resource, call.namespace, call.name)
    applies = call.content_type == APPLY_YAML
    if api.state.head(key) is None and (not applies or call.subresource):
        # The patch is read only once there is an object to use it on.
        raise errors.not_found(served.group, served.plural, call.name)
    write = Write(
        served,
        key,
        call.user,
        options,
        applying(api, call, options) if applies else _patching(call, options),
        subresource=call.subresource,
        method="apply" if applies else "patch",
        creates=applies,
        recomputes=True,
    )
    written = await update(api, write)
    return reading.object_answer(api, call, written.obj, 201 if written.created else 200, form)


def _check_type(call: Call) -> None:
    if call.content_type in (JSON_PATCH, MERGE_PATCH, APPLY_YAML):
        return
    if call.served.custom:
        raise unsupported_body(f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_YAML}")
    if call.content_type != STRATEGIC_PATCH:
        raise StatusError(415, "415: Unsupported Media Type", details={})


class _Patch(NamedTuple):
    """A body that was read: its kind, its value, and what strict decoding says of it."""

    kind: str
    value: Any
    duplicates: list[str]


def _patching(call: Call, options: WriteOptions) -> Compute:
    served = call.served
    change = _read(call)

    def compute(old: Json | None) -> Wanted:
        if old is None:  # a PUT may create some kinds, a patch has nothing to start from
            raise errors.not_found(served.group, served.plural, call.name)
        patched = _run(served, change, old)
        if not isinstance(patched, dict):
            raise bad_request("the patch does not leave an object")
        _keep_type(served, change.kind, patched)
        if not isinstance(patched.get("metadata"), dict):
            patched["metadata"] = {}
        obj, unknown = decode_patched(served, patched)
        if change.duplicates or unknown:
            shown = plain_text(change.value) if change.kind == STRATEGIC_PATCH else json_text(patched)
            report_unknown_in_patch(change.duplicates, unknown, options.validation, shown)
        check_names(call, obj)
        served.strategy.default(obj)
        return Wanted(obj)

    return compute


def _read(call: Call) -> _Patch:
    try:
        value, duplicates = parse_json(call.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if call.content_type != JSON_PATCH:
        if not isinstance(value, dict):
            what = f"json: cannot unmarshal {json_kind(value)} into Go value of type map[string]interface {{}}"
            raise bad_request(f"error decoding patch: {what}")
        return _Patch(call.content_type, value, duplicates)
    if not isinstance(value, list):
        what = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {what}")
    if len(value) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(value)}"
        raise StatusError(413, text)
    named = [f"json patch {text}" for text in duplicates]
    return _Patch(JSON_PATCH, value, named + _unknown_members(value))


def _unknown_members(operations: list[Any]) -> list[str]:
    known = ("op", "path", "from", "value")
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in known
    ]


def _run(served: Type, change: _Patch, old: Json) -> Any:
    try:
        if change.kind == MERGE_PATCH:
            return merge_patch(old, change.value)
        if change.kind == JSON_PATCH:
            return json_patch(old, change.value)
        return strategic_merge(old, change.value, served.strategy.merge_schema())
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
