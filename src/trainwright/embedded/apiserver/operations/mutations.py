"""POST, PUT and DELETE on resources: from the call to a write or a deletion, and back to an answer."""

from __future__ import annotations

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import json_kind, parse_json, parse_yaml, unsupported_body
from trainwright.embedded.apiserver.http.decoding import (
    JSON_TYPES,
    PROTOBUF,
    YAML_TYPES,
    check_names,
    not_a_head,
    read_object,
)
from trainwright.embedded.apiserver.http.negotiation import render
from trainwright.embedded.apiserver.http.requests import Answer, Call
from trainwright.embedded.apiserver.operations import creating, deletion, reading, updating
from trainwright.embedded.apiserver.operations.deletion import DeleteOptions, Deletion
from trainwright.embedded.apiserver.operations.writes import Write, replacing
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire.protobuf import ProtobufError, decode_unknown
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json


async def create(api: Api, call: Call) -> Answer:
    served = call.served
    options = call.write_options("CreateOptions")
    form = reading.form_of(call)
    obj = read_object(call, served, options.validation)
    namespace = obj["metadata"].get("namespace") or ""
    if served.namespaced and namespace and namespace != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if call.name and obj["metadata"].get("name") not in (None, "", call.name):
        raise bad_request(
            f"the name of the object ({obj['metadata']['name']}) does not match the name on the URL ({call.name})"
        )
    key = Key(served.resource, call.namespace, "")
    made = await creating.create(api, Write(served, key, call.user, options, replacing(obj), method="create"))
    return reading.object_answer(api, call, made, 201, form)


async def update(api: Api, call: Call) -> Answer:
    served = call.served
    options = call.write_options("UpdateOptions")
    form = reading.form_of(call)
    obj = read_object(call, served, options.validation)
    check_names(call, obj)
    write = Write(
        served,
        Key(served.resource, call.namespace, call.name),
        call.user,
        options,
        replacing(obj),
        subresource=call.subresource,
        uid=obj["metadata"].get("uid") or "",
    )
    written = await updating.update(api, write)
    return reading.object_answer(api, call, written.obj, 201 if written.created else 200, form)


async def delete(api: Api, call: Call) -> Answer:
    served = call.served
    form = reading.form_of(call)
    options = delete_options(call)
    key = Key(served.resource, call.namespace, call.name)
    done = await deletion.delete(api, Deletion(served, key, call.user, options))
    status = 200
    if not done.gone and options.orphan is False:
        status = 202
    if done.as_object:
        return reading.object_answer(api, call, done.obj, status, form)
    details = errors.details_of(call.name, served.group, served.plural, uid=done.obj["metadata"].get("uid", ""))
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Answer(status, render(form, body), form.content_type)


async def delete_collection(api: Api, call: Call) -> Answer:
    options = delete_options(call)
    options.check()
    # Warn about the options even if there is nothing to delete.
    call.served.strategy.check_delete({"metadata": {}}, options.policy or options.orphan)
    chosen = reading.list_selection(call)
    form = reading.form_of(call)
    page = await reading.collect(api, call, chosen)
    await deletion.delete_all(api, (Deletion(call.served, stored.key, call.user, options) for stored in page.found))
    return reading.list_answer(api, call, page, form)


def delete_options(call: Call) -> DeleteOptions:
    """From the body if there is one, else from the query; the two are not mixed."""
    dry_run: list[str] = []
    if not call.body:
        options = _from_query(call)
        dry_run = call.query.all("dryRun")
    else:
        value = _body(call)
        if value.get("kind") not in (None, "", "DeleteOptions"):
            version = value.get("apiVersion") or "meta.k8s.io/v1"
            scheme = "pkg/runtime/scheme.go:111"
            raise bad_request(f'no kind "{value["kind"]}" is registered for version "{version}" in scheme "{scheme}"')
        options = _from_body(value)
        sent = value.get("dryRun")
        if isinstance(sent, list):
            dry_run = [str(entry) for entry in sent]
    if any(entry != "All" for entry in dry_run):
        raise errors.invalid_options("DeleteOptions", [field.not_supported("dryRun", dry_run, ["All"])])
    return DeleteOptions(options.grace, options.policy, options.orphan, options.uid, options.version, bool(dry_run))


def _body(call: Call) -> Json:
    try:
        if call.content_type in JSON_TYPES:
            value, _ = parse_json(call.body)
        elif call.content_type in YAML_TYPES:
            value, _ = parse_yaml(call.body)
        elif call.content_type == PROTOBUF:
            value = decode_unknown(call.body)
        else:
            raise unsupported_body("application/json, application/yaml, application/vnd.kubernetes.protobuf")
    except ProtobufError as error:
        raise bad_request(f"the protobuf body cannot be read: {error}") from None
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: {not_a_head(value)}")
    return value


def _from_query(call: Call) -> DeleteOptions:
    query = call.query
    orphan = query.flag("orphanDependents") if query.has("orphanDependents") else None
    return DeleteOptions(query.integer("gracePeriodSeconds"), query.get("propagationPolicy") or None, orphan)


def _from_body(value: Json) -> DeleteOptions:
    preconditions = value.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("preconditions must be an object")
    grace, policy, orphan = (
        value.get("gracePeriodSeconds"),
        value.get("propagationPolicy"),
        value.get("orphanDependents"),
    )
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise _wrong_type(grace, "gracePeriodSeconds", "int64")
    if orphan is not None and not isinstance(orphan, bool):
        raise _wrong_type(orphan, "orphanDependents", "bool")
    if policy is not None and not isinstance(policy, str):
        raise _wrong_type(policy, "propagationPolicy", "v1.DeletionPropagation")
    for name, text, kind in (("uid", uid, "types.UID"), ("resourceVersion", version, "string")):
        if text is not None and not isinstance(text, str):
            raise _wrong_type(text, f"preconditions.{name}", kind)
    return DeleteOptions(grace, policy, orphan, uid, version)


def _wrong_type(value: object, name: str, kind: str) -> StatusError:
    text = f"json: cannot unmarshal {json_kind(value)} into Go struct field DeleteOptions.{name} of type {kind}"
    return bad_request(text)
