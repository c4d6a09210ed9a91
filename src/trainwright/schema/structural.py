"""Structural schemas of CRDs, compiled lazily.

In: the `openAPIV3Schema` of a CRD version. Out: a tree of `StructuralSchema` nodes. Children are made when first used,
since an object uses few of the thousand fields of a pod template. One tree answers every question about an object:

    prune            find unknown fields and remove them
    default          fill in defaults
    validate         types, limits, formats, list keys, in the API server's words (validation.py)
    validate_rules   CEL rules, transition rules included (rules.py)

A compiled schema never changes, so it may be shared and cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from trainwright.schema.errors import FieldError, SchemaError
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.schema.limits import ValueCheck
    from trainwright.schema.rules import Rule

NO_DEFAULT: Final = object()


class StructuralSchema:
    """One node of a schema. Attributes carry the names of the OpenAPI extension, without `x-kubernetes-`."""

    __slots__ = (
        "_additional",
        "_check",
        "_children",
        "_has_rules",
        "_items",
        "_properties",
        "_ruled",
        "_rules",
        "default_value",
        "defaulted",
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "nullable",
        "preserve_unknown_fields",
        "raw",
        "type",
    )

    def __init__(self, raw: Json, ruled: dict[int, bool] | None = None) -> None:
        if not isinstance(raw, dict):
            raise SchemaError(f"a schema is an object, not {type(raw).__name__}")
        self.raw = raw
        # By identity of raw nodes, shared by the whole tree; its root keeps the raw nodes alive.
        self._ruled: dict[int, bool] = {} if ruled is None else ruled
        self.type: str = raw.get("type", "")
        self.nullable = bool(raw.get("nullable"))
        self.int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
        self.preserve_unknown_fields = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded_resource = bool(raw.get("x-kubernetes-embedded-resource"))
        self.list_type: str = raw.get("x-kubernetes-list-type", "")
        self.list_map_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.default_value: Any = raw.get("default", NO_DEFAULT)
        self._properties: Mapping[str, Json] = raw.get("properties") or {}
        self._children: dict[str, StructuralSchema] = {}
        self._items: StructuralSchema | None = None
        self._additional: StructuralSchema | None = None
        self.defaulted: tuple[str, ...] | None = None
        self._check: ValueCheck | None = None
        self._rules: tuple[Rule, ...] | None = None
        self._has_rules: bool | None = None

    @classmethod
    def compile(cls, openapi: Json) -> StructuralSchema:
        """The root of a schema."""
        return cls(openapi)

    def _child(self, raw: Json) -> StructuralSchema:
        if "$ref" in raw:
            raise SchemaError(f"a structural schema has no references such as {raw['$ref']!r}")
        return StructuralSchema(raw, self._ruled)

    def field(self, name: str) -> StructuralSchema | None:
        """The schema of a declared property, or None."""
        child = self._children.get(name)
        if child is None:
            raw = self._properties.get(name)
            if raw is None:
                return None
            child = self._children[name] = self._child(raw)
        return child

    def member(self, name: str) -> StructuralSchema | None:
        """The schema of an object's member: that of its property, or of `additionalProperties`."""
        return self.field(name) or self.additional

    @property
    def field_names(self) -> Iterator[str]:
        return iter(self._properties)

    @property
    def items(self) -> StructuralSchema | None:
        if self._items is None:
            raw = self.raw.get("items")
            if isinstance(raw, dict):
                self._items = self._child(raw)
        return self._items

    @property
    def additional(self) -> StructuralSchema | None:
        """The schema of members that are not declared; None if there may be none or any (`true`)."""
        if self._additional is None:
            raw = self.raw.get("additionalProperties")
            if isinstance(raw, dict):
                self._additional = self._child(raw)
        return self._additional

    @property
    def is_map(self) -> bool:
        """Whether the object takes members that are not declared."""
        return bool(self.raw.get("additionalProperties"))

    @property
    def has_default(self) -> bool:
        return self.default_value is not NO_DEFAULT and self.default_value is not None

    # Each of these has a module of its own, imported at the first use: a client that only prunes never loads CEL.

    def prune(self, value: Any, *, root: bool = True) -> list[str]:
        """Remove unknown fields in place and return their paths, sorted, as strict decoding names them.

        At the root and in embedded resources, apiVersion, kind and metadata always stay; metadata is pruned as
        ObjectMeta.
        """
        from trainwright.schema.pruning import prune

        return prune(self, value, root=root)

    def default(self, value: Any) -> None:
        """Fill in defaults in place; a null where the schema allows none counts as absent."""
        from trainwright.schema.defaulting import default

        default(self, value)

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Errors of types, limits, formats and list keys; with `old`, errors of unchanged values are ratcheted."""
        from trainwright.schema.validation import validate

        return validate(self, value, old)

    def validate_rules(
        self, value: Any, old: Any = None, ratcheted: list[FieldError] | None = None
    ) -> list[FieldError]:
        """Errors of CEL rules; those of unchanged values are added to `ratcheted` instead."""
        from trainwright.schema.rules import validate_rules

        return validate_rules(self, value, old, ratcheted)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The compiled rules of this node, not of those below."""
        if self._rules is None:
            declared = self.raw.get("x-kubernetes-validations")
            if not declared:
                self._rules = ()
            else:
                from trainwright.schema.rules import compile_rules

                self._rules = compile_rules(declared, self)
        return self._rules

    @property
    def has_rules(self) -> bool:
        """Whether this node or any below it has rules: branches without rules are not walked."""
        if self._has_rules is None:
            self._has_rules = _mentions_rules(self.raw, self._ruled)
        return self._has_rules

    @property
    def check(self) -> ValueCheck:
        """The compiled limits of this node."""
        if self._check is None:
            from trainwright.schema.limits import ValueCheck

            self._check = ValueCheck(self)
        return self._check

    def __repr__(self) -> str:
        return f"<StructuralSchema {self.type or 'any'} {sorted(self._properties)[:8]}>"


def _mentions_rules(raw: Any, known: dict[int, bool]) -> bool:
    """Whether there are rules at or below a raw node. Results are kept by identity, so that no branch is read twice."""
    if isinstance(raw, list):
        return any(_mentions_rules(value, known) for value in raw)
    if not isinstance(raw, dict):
        return False
    found = known.get(id(raw))
    if found is None:
        found = known[id(raw)] = "x-kubernetes-validations" in raw or any(
            _mentions_rules(value, known) for key, value in raw.items() if key not in ("default", "enum")
        )
    return found
