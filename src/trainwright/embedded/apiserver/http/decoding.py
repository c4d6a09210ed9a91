"""A request's body as an object of the type the path names: kind checked, unknown fields found, defaults filled in."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.errors import StatusError, bad_request, invalid
from trainwright.embedded.apiserver.http.bodies import json_kind, parse_json, parse_yaml, unsupported_body
from trainwright.embedded.apiserver.http.requests import Call
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.types import Type
from trainwright.embedded.apiserver.wire.protobuf import ProtobufError, decode_unknown
from trainwright.schema import errors as field
from trainwright.schema import kubernetes
from trainwright.schema.jsonobject import Json

JSON_TYPES = ("", "application/json")
YAML_TYPES = ("application/yaml",)
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


def parse_body(call: Call, served: Type) -> tuple[Json, list[str]]:
    """The body as a JSON object, and its duplicate fields."""
    content_type = call.content_type
    try:
        if content_type in JSON_TYPES:
            value, duplicates = parse_json(call.body)
        elif content_type in YAML_TYPES:
            value, duplicates = parse_yaml(call.body)
        elif content_type == PROTOBUF and not served.custom:
            value, duplicates = decode_unknown(call.body), []
        else:
            raise unsupported_body(MERGES)
    except ProtobufError as error:
        raise unrecognized(call, served, str(error)) from None
    except ValueError as error:
        what = "" if content_type in YAML_TYPES else "couldn't get version/kind; json parse error: "
        raise unrecognized(call, served, f"{what}{error}") from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise unrecognized(call, served, f"couldn't get version/kind; json parse error: {not_a_head(value)}")
    return value, duplicates


def not_a_head(value: object) -> str:
    return f"json: cannot unmarshal {json_kind(value)} into Go value of type {HEAD}"


HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
SHOWN = 30


def unrecognized(call: Call, served: Type, why: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {served.kind}): {why} ({_summary(call.body)})"
    )


def _summary(body: bytes) -> str:
    """The start of the body: text if it looks like JSON, else its bytes in hex."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > SHOWN else ""
    start = body[:SHOWN]
    return (start.decode(errors="replace") if body[:1] == b"{" else start.hex()) + more


def read_object(call: Call, served: Type, validation: str) -> Json:
    """For creates and updates. Raises 400 for what cannot be decoded."""
    value, duplicates = parse_body(call, served)
    wrong_version = check_kind(call, served, value)
    obj, unknown = decode_object(served, value)
    if wrong_version:  # of an object of another type only the metadata is known
        report_unknown(served, duplicates, [path for path in unknown if path.startswith("metadata.")], validation)
        raise wrong_version
    report_unknown(served, duplicates, unknown, validation)
    served.strategy.default(obj)
    return obj


def check_kind(call: Call, served: Type, value: Json) -> Any:
    """Fill in or check apiVersion and kind; returns the error for a version mismatch, which comes after decoding."""
    version, kind = value.get("apiVersion", ""), value.get("kind", "")
    for name, found in value.items():
        if name in ("apiVersion", "kind") and found is not None and not isinstance(found, str):
            why = f"json: cannot unmarshal {json_kind(found)} into Go struct field .{name} of type string"
            raise unrecognized(call, served, f"couldn't get version/kind; json parse error: {why}")
    version, kind = version or "", kind or ""
    if served.custom:
        if not kind:
            why = f"Object 'Kind' is missing in '{call.body.decode(errors='replace').strip()}'"
            # Only the lenient decoder goes on with the kind of the path.
            if call.query.get("fieldValidation") == "Ignore":
                raise _unhandled(served, served.kind, why)
            raise unrecognized(call, served, why)
        if version != served.api_version:
            ours = version.rpartition("/")[0] == served.group and version not in served.sibling_versions
            if ours and call.query.get("fieldValidation") != "Ignore":
                warn(f'unknown field "{name}"' for name in sorted(set(value) - {"apiVersion", "kind", "metadata"}))
            return version_mismatch(version, served.api_version)
        return None
    why = wrong_type(served, version or served.api_version, kind or served.kind)
    if why:
        raise _unhandled(served, kind or served.kind, why, (version or served.api_version).rpartition("/")[2])
    if version and version != served.api_version:
        return version_mismatch(version, served.api_version)
    value["apiVersion"], value["kind"] = served.api_version, served.kind
    return None


def wrong_type(served: Type, version: str, kind: str) -> str:
    """Why a built-in type does not take this kind, in the words of Go's conversion; empty if it does."""
    if not kubernetes.has_kind(version, kind):
        return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    group, _, bare = version.rpartition("/")
    if (kind, group) == (served.kind, served.group):
        return ""
    inner = served.group.partition(".")[0] or "core"
    return f"converting ({bare}.{kind}) to ({inner}.{served.kind}): unknown conversion"


def _unhandled(served: Type, kind: str, why: str, version: str = "") -> StatusError:
    return bad_request(f'{kind} in version "{version or served.version}" cannot be handled as a {served.kind}: {why}')


def version_mismatch(found: str, expected: str) -> Any:
    return bad_request(f"the API version in the data ({found}) does not match the expected API version ({expected})")


def decode_object(served: Type, value: Json) -> tuple[Json, list[str]]:
    """The kind's own decoding; a wrong type becomes the 400 that Go's decoder causes."""
    if "metadata" in value and value["metadata"] is None:
        value["metadata"] = {}
    meta = value.setdefault("metadata", {})
    if served.custom and not isinstance(meta, dict):
        raise bad_request(
            f'{served.kind} in version "{served.version}" cannot be handled as a {served.kind}: json: cannot unmarshal'
            f" {json_kind(meta)} into Go value of type v1.ObjectMeta"
        )
    try:
        return served.strategy.decode(value)
    except ValueError as error:
        raise _unhandled(served, value.get("kind") or served.kind, str(error), _bare_version(value)) from None


def _bare_version(value: Json) -> str:
    return str(value.get("apiVersion") or "").rpartition("/")[2]


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


def strict_texts(duplicates: list[str], unknown: list[str]) -> list[str]:
    return duplicates + [f'unknown field "{name}"' for name in unknown]


def refusal(duplicates: list[str], unknown: list[str]) -> str:
    """All in one text. What YAML's decoder found comes as the list it makes of it."""
    lines = [text for text in duplicates if text.startswith("line ")]
    if lines:
        duplicates = ["yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines)]
    return ", ".join(strict_texts(duplicates, unknown))


def report_unknown(served: Type, duplicates: list[str], unknown: list[str], validation: str) -> None:
    texts = strict_texts(duplicates, unknown)
    if not texts or validation == "Ignore":
        return
    if validation == "Warn":
        warn(texts)
        return
    raise bad_request(
        f'{served.kind} in version "{served.version}" cannot be handled as a {served.kind}: strict decoding error:'
        f" {refusal(duplicates, unknown)}"
    )


def report_unknown_in_patch(duplicates: list[str], unknown: list[str], validation: str, shown: str) -> None:
    """A patch is judged by the object it makes, and refused with another status than an update."""
    texts = strict_texts(duplicates, unknown)
    if not texts or validation == "Ignore":
        return
    if validation == "Warn":
        warn(texts)
        return
    fault = field.invalid("patch", shown, f"strict decoding error: {refusal(duplicates, unknown)}")
    raise invalid("", "", "", [fault])
