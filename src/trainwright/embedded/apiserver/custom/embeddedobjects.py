"""Objects inside custom objects (`x-kubernetes-embedded-resource`): their type and metadata are Kubernetes' own.

In: an object and its schema. Out: the same with embedded metadata as Go's decoder leaves it, and what is wrong with it.
Schemas without such objects are recognised once and never walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from trainwright.embedded.apiserver import metadata
from trainwright.embedded.apiserver.http.bodies import json_kind
from trainwright.embedded.apiserver.wire import table
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.structural import StructuralSchema


class EmbeddedObjects:
    """Those of one schema."""

    def __init__(self, schema: StructuralSchema) -> None:
        self.schema = schema

    @cached_property
    def exist(self) -> bool:
        return _mentions(self.schema.raw)

    def decode(self, obj: Json) -> list[str]:
        """Bring embedded metadata into shape; its unknown fields. Raises ValueError in the decoder's words."""
        unknown: list[str] = []
        for embedded, path in self._found(obj):
            for name in ("apiVersion", "kind"):
                value = embedded.get(name)
                if value is not None and not isinstance(value, str):
                    raise ValueError(f"{path}.{name}: Invalid value: {json_text(value)}: must be a string")
            meta = embedded.get("metadata")
            if meta is None:
                continue
            if not isinstance(meta, dict):
                why = f"json: cannot unmarshal {json_kind(meta)} into Go value of type v1.ObjectMeta"
                raise ValueError(f"{path}.metadata: Invalid value: {json_text(meta)}: {why}")
            sent = json_text(meta)
            try:
                unknown += [f"{path}.{name}" for name in check_metadata(meta)]
            except ValueError as error:
                raise ValueError(f"{path}.metadata: Invalid value: {sent}: {error}") from None
        return unknown

    def faults(self, obj: Json) -> list[FieldError]:
        """Names are judged leniently, since an embedded object may lack one; the rest as in any object."""
        found: list[FieldError] = []
        for embedded, path in self._found(obj):
            meta = embedded.get("metadata")
            if isinstance(meta, dict):
                named = {**meta, "name": meta.get("name") or "unnamed"}
                namespaced = bool(meta.get("namespace"))
                faults = metadata.validate(named, namespaced=namespaced, name_faults=metadata.path_segment_faults)
                found += [fault._replace(field=f"{path}.{fault.field}") for fault in faults]
        return found

    def _found(self, obj: Json) -> Iterator[tuple[Json, str]]:
        return _walk(self.schema, obj, "") if self.exist else iter(())


def _walk(schema: StructuralSchema, value: Any, path: str) -> Iterator[tuple[Json, str]]:
    if isinstance(value, dict):
        if schema.embedded_resource and path:
            yield value, path
        for name, member in value.items():
            child = schema.member(name) if isinstance(member, dict | list) else None
            if child is not None:
                yield from _walk(child, member, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _walk(schema.items, item, f"{path}[{index}]")


def _mentions(raw: Any) -> bool:
    if isinstance(raw, list):
        return any(map(_mentions, raw))
    if not isinstance(raw, dict):
        return False
    return raw.get("x-kubernetes-embedded-resource") is True or any(map(_mentions, raw.values()))


def check_metadata(meta: Json) -> list[str]:
    """ObjectMeta is typed even in custom objects. Returns unknown fields inside its members. Raises ValueError."""
    decoded, unknown = table.decode("meta/v1.ObjectMeta", meta)
    nested = [f"metadata.{path}" for path in unknown if path not in meta]
    # Written back so that nulls and empty maps vanish, as they do in Go; unknown members are left for pruning to name.
    for name in list(meta):
        if name in decoded:
            meta[name] = decoded[name]
        elif name in table.types()["meta/v1.ObjectMeta"]:
            del meta[name]
    if meta.get("managedFields") == []:
        del meta["managedFields"]  # only `[{}]` switches tracking off: an empty list does not survive Go's decoder
    return nested
