"""Server-side apply: from an applied configuration to a computation of the merged object."""

from __future__ import annotations

import functools
import json

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import bad_request
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager, refuse_managed_fields
from trainwright.embedded.apiserver.http.bodies import parse_yaml
from trainwright.embedded.apiserver.http.decoding import check_names, refusal
from trainwright.embedded.apiserver.http.requests import Call
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.operations.appliedcache import ParsedApply
from trainwright.embedded.apiserver.operations.writes import Compute, Wanted, WriteOptions
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json


def applying(api: Api, call: Call, options: WriteOptions) -> Compute:
    served = call.served
    manager = served.field_manager(call.subresource)
    parse = functools.partial(_parse, call, manager)
    configuration, duplicates = api.applied.get(manager, call.body, parse)
    if duplicates and options.validation == "Strict":
        why = refusal(duplicates, [])
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {why}")
    if options.validation == "Warn":
        warn(duplicates)

    def compute(old: Json | None) -> Wanted | None:
        obj = manager.apply(old, configuration, options.manager, api.now(), force=options.force)
        if obj is None:
            check_names(call, {"metadata": dict(configuration.config["metadata"])})
            return None
        obj["apiVersion"], obj["kind"] = served.api_version, served.kind
        check_names(call, obj)
        # Unknown fields were refused by their absence from the schema; those it leaves free are dropped in silence.
        decoded, _ = decode_patched(served, obj)
        canonical = not served.custom or _says_the_same(decoded, obj)
        served.strategy.default_applied(decoded)
        return Wanted(decoded, canonical)

    return compute


def _parse(call: Call, manager: FieldManager) -> ParsedApply:
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
    return ParsedApply(manager.prepare(config), duplicates)


def decode_patched(served: Type, patched: Json) -> tuple[Json, list[str]]:
    """What a patch or a merge made, as the kind knows it, and its unknown fields."""
    try:
        # Patches share what they leave alone with the stored object; decoding makes all of it our own.
        fresh = json.loads(json.dumps(patched)) if served.custom else patched
        return served.strategy.decode(fresh)
    except ValueError as error:
        raise errors.invalid("", "", "", [field.invalid("patch", json_text(patched), str(error))]) from None


def _says_the_same(decoded: Json, merged: Json) -> bool:
    """Whether decoding left all of an object as it was, but for metadata that the server fills in."""
    given = {name: value for name, value in merged["metadata"].items() if name not in metadata.SYSTEM_FIELDS}
    kept = {name: value for name, value in decoded["metadata"].items() if name not in metadata.SYSTEM_FIELDS}
    return same({**decoded, "metadata": kept}, {**merged, "metadata": given})
