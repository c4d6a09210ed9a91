"""Get and list: bytes from memory, in the form the client asked for."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Iterable

import msgspec

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http import tables
from trainwright.embedded.apiserver.http.bodies import parse_json
from trainwright.embedded.apiserver.http.negotiation import (
    PARTIAL,
    PARTIAL_LIST,
    PLAIN,
    TABLE,
    YAML_TYPE,
    Form,
    negotiate,
    render,
)
from trainwright.embedded.apiserver.http.requests import Answer, Call, Query
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.selection import Selection, selection
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

WAIT_SECONDS = 3.0
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")
STALE_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


def form_of(call: Call) -> Form:
    collection = not call.name and call.method == "GET"
    return negotiate(call.headers.get("Accept", ""), custom=call.served.custom, collection=collection)


def object_answer(api: Api, call: Call, obj: Json, status: int = 200, form: Form | None = None) -> Answer:
    """An object the handler holds, such as the result of a write."""
    form = form or form_of(call)
    if form.kind == TABLE:
        value: Json = tables.table(call.served, [obj], call.query.get("includeObject"), api.clock.wall(), form.version)
        if "resourceVersion" in obj["metadata"]:
            value["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        return Answer(status, render(form, value), form.content_type)
    if form.kind == PARTIAL:
        return Answer(status, render(form, partial(obj, form.version)), form.content_type)
    if form.kind == PARTIAL_LIST:
        raise _not_a_list(call.served)
    return Answer(status, render(form, obj), form.content_type)


def _not_a_list(served: Type) -> StatusError:
    text = f"you requested PartialObjectMetadataList, but the requested object is not a list ({served.go_type})"
    return StatusError(406, text)


def partial(obj: Json, version: str = "v1") -> Json:
    return {"kind": PARTIAL, "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def stored_object(api: Api, call: Call) -> Json:
    """The object that the call names."""
    stored = api.state.get(Key(call.served.resource, call.namespace, call.name))
    if stored is None:
        raise errors.not_found(call.served.group, call.served.plural, call.name)
    return call.served.whole_object(stored.data)


async def get(api: Api, call: Call) -> Answer:
    served = call.served
    wanted = call.query.get("resourceVersion")
    if wanted and wanted != "0":
        await _reach(api, wanted)
    form = form_of(call)
    stored = api.state.get(Key(served.resource, call.namespace, call.name))
    if stored is None:
        raise errors.not_found(served.group, served.plural, call.name)
    if form is PLAIN or (not form.kind and form.media_type != YAML_TYPE):
        return Answer(200, served.whole(stored.data))
    return object_answer(api, call, served.whole_object(stored.data), form=form)


async def _reach(api: Api, text: str) -> int:
    """Wait until the state is at least as new as asked for."""
    version = parse_version(text)
    if version > api.state.version and not await api.state.wait_for(version, WAIT_SECONDS):
        found = StatusError(504, f"Timeout: Too large resource version: {version}, current: {api.state.version}")
        found.details = {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }
        found.retry_after = 1
        raise found
    return version


def parse_version(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise errors.bad_request(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    if len(text) > 20 or int(text) >= 2**64:
        raise errors.bad_request(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": value out of range'
        )
    return int(text)


class Page(msgspec.Struct):
    """The objects of one answer, and how to go on."""

    found: list[Stored]
    version: int
    after: str = ""  # the key to go on behind; empty if this is all
    remaining: int | None = None


def list_selection(call: Call) -> Selection:
    """The selectors of a list. Its other options are judged between reading them and asking what their fields mean."""
    return selection(call.served, call.query, lambda: _check_list_options(call.query))


async def list_objects(api: Api, call: Call) -> Answer:
    chosen = list_selection(call)
    form = form_of(call)
    page = await collect(api, call, chosen)
    return list_answer(api, call, page, form)


async def collect(api: Api, call: Call, chosen: Selection) -> Page:
    """What the parameters ask for: the present, or the past within the window; all, or a page."""
    query = call.query
    # What may come from a cache of any age is not paged.
    any_age = query.get("resourceVersion") == "0" and not query.get("continue")
    limit = 0 if any_age else query.integer("limit") or 0
    exact, after = await _moment(api, query, paged=bool(limit))
    if exact is None:
        return _page(list(_candidates(api, call, chosen, after)), chosen, api.state.version, limit)
    table = api.state.table(call.served.resource)
    if exact < table.floor:
        stale = STALE_CONTINUE if query.get("continue") else "The resourceVersion for the provided list is too old."
        raise errors.expired(stale)
    return _page(table.at(exact, call.namespace, after), chosen, exact, limit)


async def _moment(api: Api, query: Query, *, paged: bool) -> tuple[int | None, str]:
    """The version to show, None for the present, and the key to go on behind."""
    token, wanted, match = query.get("continue"), query.get("resourceVersion"), query.get("resourceVersionMatch")
    if token:
        exact, after = _read_token(token)
        if wanted and wanted != "0":
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return (api.state.version if exact == -1 else exact), after
    if not wanted or wanted == "0":
        return None, ""
    try:
        version = await _reach(api, wanted)
    except StatusError as error:
        raise _invalid_version(error) if error.code == 400 else error from None
    return (version if match == "Exact" or (paged and not match) else None), ""


def _invalid_version(error: StatusError) -> StatusError:
    return errors.bad_request(f"invalid resource version: {error.message}")


def _candidates(api: Api, call: Call, chosen: Selection, after: str) -> Iterable[Stored]:
    if chosen.name and (call.namespace or not call.served.namespaced):
        stored = api.state.get(Key(call.served.resource, call.namespace, chosen.name))
        return [] if stored is None else [stored]
    return api.state.table(call.served.resource).select(call.namespace, after)


def _page(source: list[Stored], chosen: Selection, version: int, limit: int) -> Page:
    if not limit:
        found = source if chosen.everything else [stored for stored in source if chosen.matches(stored)]
        return Page(found, version)
    found = []
    for index, stored in enumerate(source):
        if len(found) == limit:  # whether what follows matches is for the next page to find out
            last = found[-1].key
            remaining = len(source) - index if chosen.everything else None
            return Page(found, version, f"{last.namespace}/{last.name}", remaining)
        if chosen.matches(stored):
            found.append(stored)
    return Page(found, version)


def _check_list_options(query: Query) -> None:
    query.integer("limit")
    query.integer("timeoutSeconds")
    token, wanted, match = query.get("continue"), query.get("resourceVersion"), query.get("resourceVersionMatch")
    faults: list[field.FieldError] = []
    at = "resourceVersionMatch"
    if match:
        if not wanted:
            faults.append(field.forbidden(at, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if token:
            faults.append(field.forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            faults.append(field.not_supported(at, match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and wanted == "0":
            faults.append(field.forbidden(at, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if query.has("sendInitialEvents"):
        faults.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if faults:
        raise errors.invalid_options("ListOptions", faults)


def _token(version: int, after: str) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": after}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        return _decode_token(token)
    except ValueError as error:
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from None


def _decode_token(token: str) -> tuple[int, str]:
    strange = next((index for index, char in enumerate(token) if char not in _BASE64), None)
    if strange is None and len(token) % 4 == 1:
        strange = len(token) - 1
    if strange is not None:
        raise ValueError(f"illegal base64 data at input byte {strange}")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    value, _ = parse_json(raw.decode("latin-1").encode())  # messages show a byte as the character of its number
    if not isinstance(value, dict) or value.get("v") != "meta.k8s.io/v1":
        found = value.get("v", "") if isinstance(value, dict) else ""
        raise ValueError(f"server does not recognize this encoded version {found}")
    version, after = value.get("rv"), value.get("start")
    if not isinstance(version, int) or not version:
        raise ValueError("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(after, str) or not after:
        raise ValueError("encoded start key empty (version meta.k8s.io/v1)")
    return version, after


def list_metadata(call: Call, page: Page) -> Json:
    meta: Json = {"resourceVersion": str(page.version)}
    if page.after:
        meta["continue"] = _token(page.version, page.after)
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta


def list_answer(api: Api, call: Call, page: Page, form: Form, status: int = 200) -> Answer:
    served = call.served
    meta = list_metadata(call, page)
    if form.kind == TABLE:
        objs = [served.whole_object(stored.data) for stored in page.found]
        value = tables.table(served, objs, call.query.get("includeObject"), api.clock.wall(), form.version)
        value["metadata"] = meta
        return Answer(status, render(form, value), form.content_type)
    if form.kind in (PARTIAL, PARTIAL_LIST):
        if form.kind == PARTIAL:
            text = f"you requested PartialObjectMetadata, but the requested object is a list ({served.go_type}List)"
            raise StatusError(406, text)
        items = [partial(served.whole_object(stored.data), form.version) for stored in page.found]
        whole: Json = {
            "kind": PARTIAL_LIST,
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": meta,
            "items": items or None,  # a list made item by item: with none, Go leaves it nil
        }
        return Answer(status, render(form, whole), form.content_type)
    if served.custom:
        meta = {"continue": "", **meta}
    if form.media_type == YAML_TYPE:
        encoded = list_bytes(served, [stored.data for stored in page.found], meta)
        objects = msgspec.json.decode(encoded)["items"]
        whole = {"kind": served.list_kind, "apiVersion": served.api_version, "metadata": meta, "items": objects}
        return Answer(status, render(form, whole), form.content_type)
    return Answer(status, list_bytes(served, [stored.data for stored in page.found], meta))


def list_bytes(served: Type, items: list[bytes], meta: Json) -> bytes:
    """Items of custom resources carry apiVersion and kind, those of built-in lists do not."""
    if served.custom:
        items = [served.whole(data) for data in items]
    elif served.from_storage is not None:
        items = [msgspec.json.encode(served.from_storage(msgspec.json.decode(data))) for data in items]
    head = msgspec.json.encode({"kind": served.list_kind, "apiVersion": served.api_version, "metadata": meta})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"
