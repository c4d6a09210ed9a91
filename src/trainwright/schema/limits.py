"""The limits that a schema node sets for its values, compiled once from OpenAPI keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from trainwright.schema.formats import format_check
from trainwright.schema.regex import compile_regex

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

INTEGER_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "": (-(2**63), 2**63 - 1)}


class ValueCheck:
    """The limits of one schema node, compiled: which Python types pass at once, and what to check otherwise."""

    __slots__ = (
        "_schema",
        "any_of_types",
        "combined",
        "enum",
        "format",
        "high",
        "list_keys",
        "low",
        "matches_format",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "pattern",
        "required",
        "simple",
        "types",
        "unique_items",
    )

    def __init__(self, schema: StructuralSchema) -> None:
        raw = schema.raw
        self._schema = schema
        self.types: tuple[str, ...] = (schema.type,) if schema.type else ()
        if schema.int_or_string:
            self.types = ("integer", "string")
        self.format, self.matches_format = _format(raw.get("format", ""), self.types)
        self.enum: list[Any] | None = raw.get("enum") or None
        self.minimum: float | None = raw.get("minimum")
        self.maximum: float | None = raw.get("maximum")
        self.multiple_of: float | None = raw.get("multipleOf")
        self.min_length: int | None = raw.get("minLength")
        self.max_length: int | None = raw.get("maxLength")
        self.min_items: int | None = raw.get("minItems")
        self.max_items: int | None = raw.get("maxItems")
        self.unique_items = bool(raw.get("uniqueItems"))
        self.min_properties: int | None = raw.get("minProperties")
        self.max_properties: int | None = raw.get("maxProperties")
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        self.pattern = compile_regex(raw["pattern"]) if raw.get("pattern") else None
        self.list_keys = schema.list_map_keys if schema.list_type == "map" else ()
        self.combined = _combined(schema)
        # Generated CRDs write int-or-string with this anyOf, which adds nothing to it.
        self.any_of_types = schema.int_or_string and raw.get("anyOf") == [{"type": "integer"}, {"type": "string"}]
        if self.any_of_types and set(raw) & {"oneOf", "allOf", "not"}:
            self.any_of_types = False
        self.simple = self._simple_types()
        self.low, self.high = self._plain_range()

    def _simple_types(self) -> frozenset[type]:
        """The types of scalars that are valid whatever their value."""
        if self.enum or (self.combined and not self.any_of_types):
            return frozenset()
        simple: set[type] = set()
        limited_text = self.pattern or self.min_length is not None or self.max_length is not None or self.matches_format
        if "string" in self.types and not limited_text:
            simple.add(str)
        if "boolean" in self.types:
            simple.add(bool)
        return frozenset(simple)

    def _plain_range(self) -> tuple[float, float]:
        """The range of integers that are valid without further checks; empty if there are none."""
        numeric = "integer" in self.types and not (self.enum or self.multiple_of is not None)
        numeric = numeric and (self.combined is None or self.any_of_types)
        raw = self._schema.raw
        if not numeric or raw.get("exclusiveMinimum") or raw.get("exclusiveMaximum"):
            return 1, 0
        low, high = INTEGER_RANGES.get(self.format, INTEGER_RANGES[""])
        return (
            low if self.minimum is None else max(low, self.minimum),
            high if self.maximum is None else min(high, self.maximum),
        )


def _format(name: str, types: tuple[str, ...]) -> tuple[str, Callable[[str], bool] | None]:
    """The format and its check. Formats that the API server does not support are ignored."""
    kind = types[0] if len(types) == 1 else ""
    if kind in ("", "string"):
        matches = format_check(name) if name else None
        return (name, matches) if matches else ("", None)
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    return (name, None) if name in known else ("", None)


class Combined:
    """anyOf, oneOf, allOf and not: further schemas for the same value."""

    __slots__ = ("all_of", "any_of", "not_", "one_of")

    def __init__(self, schema: StructuralSchema) -> None:
        from trainwright.schema.structural import StructuralSchema as Node

        raw = schema.raw
        self.any_of = [Node(part) for part in raw.get("anyOf", ())]
        self.one_of = [Node(part) for part in raw.get("oneOf", ())]
        self.all_of = [Node(part) for part in raw.get("allOf", ())]
        self.not_ = Node(raw["not"]) if "not" in raw else None


def _combined(schema: StructuralSchema) -> Combined | None:
    raw = schema.raw
    if not any(key in raw for key in ("anyOf", "oneOf", "allOf", "not")):
        return None
    return Combined(schema)
