"""CEL rules of a schema: `x-kubernetes-validations`, transition rules included.

In: a value, its schema, on update also the old value. Out: `FieldError`s in the API server's words. A rule that uses
`oldSelf` runs only where an old value exists (unless `optionalOldSelf`); items of lists are matched with old ones by
their list-map keys. A rule that fails on an unchanged value is ratcheted: clients are warned of it, not refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainwright.schema.cel import (
    NONE,
    CelError,
    Optional_,
    Program,
    compile_expression,
    convert,
)
from trainwright.schema.correlation import old_items, same
from trainwright.schema.errors import (
    OMITTED,
    ErrorType,
    FieldError,
    SchemaError,
    duplicate,
    forbidden,
    invalid,
    join,
    required,
)
from trainwright.schema.jsonobject import Json
from trainwright.schema.paths import Path, field_path

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

Parent = tuple[Any, Any, "StructuralSchema"] | None
"""The value around the present one, its old value and its schema; None if there was no old value."""

_MAX_MESSAGE_BYTES = 5 * 1024


class Rule:
    """One compiled rule."""

    __slots__ = (
        "field",
        "message",
        "message_expression",
        "optional_old_self",
        "program",
        "reason",
        "text",
        "uses_old_self",
    )

    def __init__(self, declared: Json, schema: StructuralSchema) -> None:
        self.text: str = str(declared.get("rule", "")).strip()
        self.optional_old_self = bool(declared.get("optionalOldSelf"))
        self.message: str = str(declared.get("message") or "").strip()
        self.reason: str = declared.get("reason") or "FieldValueInvalid"
        self.field = _field_of(declared.get("fieldPath") or "")
        # An optional oldSelf is an optional in CEL, not the value itself.
        variables = {"self": schema, "oldSelf": None if self.optional_old_self else schema}
        try:
            self.program: Program = compile_expression(self.text, variables)
            expression = declared.get("messageExpression")
            self.message_expression = compile_expression(expression, variables) if expression else None
        except SchemaError as error:
            raise SchemaError(f"rule {self.text!r}: compilation failed: {error}") from None
        self.uses_old_self = self.program.uses("oldSelf")

    @property
    def shown(self) -> str:
        return self.message or self.text

    def detail(self, variables: dict[str, Any]) -> str:
        """The text for the user: the message expression if it yields one good line, else the message, else the rule."""
        if self.message_expression is not None:
            try:
                text = self.message_expression(variables)
            except (CelError, KeyError):
                text = None
            if isinstance(text, str):
                text = text.strip()
                if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_BYTES:
                    return text
        return self.message or f"failed rule: {self.text}"


def _field_of(path: str) -> str:
    """`.spec.x` and `['a.b']` as a field error spells them."""
    return path.removeprefix(".").replace("['", "[").replace("']", "]")


def compile_rules(declared: Sequence[Json], schema: StructuralSchema) -> tuple[Rule, ...]:
    """Raises `SchemaError` for a rule that does not compile."""
    return tuple(Rule(rule, schema) for rule in declared)


def check_rules_compile(schema: StructuralSchema, path: str = "") -> list[FieldError]:
    """The faults of all rules of a schema that do not compile, as the API server reports them when a CRD is created."""
    errors: list[FieldError] = []
    _compile_below(schema, path, errors)
    return errors


def _compile_below(schema: StructuralSchema, path: str, errors: list[FieldError]) -> None:
    if not schema.has_rules:
        return
    for index, declared in enumerate(schema.raw.get("x-kubernetes-validations") or ()):
        try:
            Rule(declared, schema)
        except SchemaError as error:
            where = join(path, f"x-kubernetes-validations[{index}].rule")
            errors.append(invalid(where, declared.get("rule"), str(error).partition(": ")[2]))
    for name in schema.field_names:
        child = schema.field(name)
        if child is not None:
            _compile_below(child, join(path, f"properties[{name}]"), errors)
    if schema.items is not None:
        _compile_below(schema.items, join(path, "items"), errors)
    if schema.additional is not None:
        _compile_below(schema.additional, join(path, "additionalProperties"), errors)


def validate_rules(
    schema: StructuralSchema, value: Any, old: Any = None, ratcheted: list[FieldError] | None = None
) -> list[FieldError]:
    """The errors of all rules of a value; those of unchanged values are added to `ratcheted` instead."""
    errors: list[FieldError] = []
    if schema.has_rules:
        _Rules(errors, [] if ratcheted is None else ratcheted).walk(schema, value, old, None, None)
    return errors


class _Rules:
    """One run of all rules over a value."""

    __slots__ = ("errors", "ratcheted")

    def __init__(self, errors: list[FieldError], ratcheted: list[FieldError]) -> None:
        self.errors = errors
        self.ratcheted = ratcheted

    def walk(self, schema: StructuralSchema, value: Any, old: Any, path: Path, parent: Parent) -> None:
        if value is None:
            return
        rules = schema._rules if schema._rules is not None else schema.rules
        if rules:
            self._run(rules, schema, value, old, path, parent)
        here = (value, old, schema) if old is not None else None
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else None
            for name, member in value.items():
                child = schema.field(name)
                step: Any = name
                if child is None:
                    child, step = schema.additional, (name,)
                if child is not None and child.has_rules:
                    self.walk(child, member, before.get(name) if before else None, (path, step), here)
        elif isinstance(value, list):
            items = schema.items
            if items is not None and items.has_rules:
                matched = old_items(schema, old)
                for index, item in enumerate(value):
                    self.walk(items, item, matched(item) if matched else None, (path, index), here)

    def _run(
        self, rules: tuple[Rule, ...], schema: StructuralSchema, value: Any, old: Any, path: Path, parent: Parent
    ) -> None:
        turn = convert(schema)
        variables: dict[str, Any] = {}
        for rule in rules:
            if rule.uses_old_self and old is None and not rule.optional_old_self:
                continue
            try:
                if not variables:
                    variables["self"] = turn(value) if turn is not None else value
                    before = turn(old) if turn is not None and old is not None else old
                variables["oldSelf"] = _optional(before, old is not None) if rule.optional_old_self else before
                verdict = rule.program(variables)
            except CelError as error:
                self.errors.append(invalid(field_path(path), schema.type, _failure(error, rule)))
                continue
            if verdict is True:
                continue
            shown = OMITTED if schema.type in ("object", "array") else value
            fault = _error(rule, join(field_path(path), rule.field), shown, rule.detail(variables))
            ratchets = not rule.uses_old_self and _unchanged(schema, value, old, parent)
            (self.ratcheted if ratchets else self.errors).append(fault)


def _optional(value: Any, present: bool) -> Optional_:
    return Optional_(value) if present else NONE


def _unchanged(schema: StructuralSchema, value: Any, old: Any, parent: Parent) -> bool:
    """Whether the value, or its parent if the value has no old counterpart, is as it was."""
    if old is not None:
        return same(value, old, schema)
    return parent is not None and same(*parent)


def _failure(error: CelError, rule: Rule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        what = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {what}: {rule.shown}"
    return f"{text} evaluating rule: {rule.shown}"


def _error(rule: Rule, field: str, value: Any, detail: str) -> FieldError:
    match rule.reason:
        case "FieldValueForbidden":
            return forbidden(field, detail)
        case "FieldValueRequired":
            return required(field, detail)
        case "FieldValueDuplicate":
            return duplicate(field, value)
        case _:
            return FieldError(ErrorType.INVALID, field, value, detail)
