"""The schemas of Kubernetes' built-in kinds (1.36), from a compact file that `make generate` writes.

In: an apiVersion and a kind. Out: the raw definition, for OpenAPI and for server-side apply, or a `MergeSchema` for
strategic merge patches. The file is read at the first use.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from trainwright.schema.errors import SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.strategic import UNTYPED, MergeField, MergeSchema


@cache
def _document() -> Json:
    document: Json = json.loads(Path(__file__).with_name("kubernetes.json").read_bytes())
    return document


def kinds() -> dict[str, str]:
    """Every kind with a schema: `batch/v1/Job` and the name of its definition."""
    return dict(_document()["kinds"])


def has_kind(api_version: str, kind: str) -> bool:
    return f"{api_version}/{kind}" in _document()["kinds"]


def definition_name(api_version: str, kind: str) -> str:
    """The name of a kind's definition, such as `core.v1.Pod`. Raises `SchemaError` for a kind without one."""
    name: str | None = _document()["kinds"].get(f"{api_version}/{kind}")
    if name is None:
        raise SchemaError(f"no built-in schema for {kind} in {api_version}")
    return name


def definition(name: str) -> Json:
    """The raw definition; references inside are `{"$ref": name}`. Do not change it."""
    found: Json | None = _document()["definitions"].get(name)
    if found is None:
        raise SchemaError(f"no definition {name!r} of a built-in kind")
    return found


class _DefinitionMerge:
    """Patch strategies and merge keys of one schema node."""

    __slots__ = ("_fields", "_raw")

    def __init__(self, raw: Json) -> None:
        self._raw = raw
        self._fields: dict[str, MergeField] = {}

    def merge_field(self, name: str) -> MergeField:
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = self._make(name)
        return field

    def _make(self, name: str) -> MergeField:
        raw = (self._raw.get("properties") or {}).get(name)
        if raw is None:
            return MergeField(UNTYPED)
        strategy = raw.get("x-kubernetes-patch-strategy", "").split(",")
        value = raw.get("items", raw)
        schema = _merge_of(value["$ref"]) if "$ref" in value else _DefinitionMerge(value)
        return MergeField(schema, "merge" in strategy, raw.get("x-kubernetes-patch-merge-key", ""))


@cache
def _merge_of(name: str) -> MergeSchema:
    return _DefinitionMerge(definition(name))


def merge_schema(api_version: str, kind: str) -> MergeSchema:
    """How a strategic merge patch treats a built-in kind."""
    return _merge_of(definition_name(api_version, kind))
