"""Structural validation: a value against its schema, in kube-apiserver's words.

In: a value and its schema; on update also the old value. Out: `FieldError`s. Messages name the field twice (`spec.x:
Invalid value: …: spec.x in body …`), because the API server does; errors of combined schemas (anyOf, oneOf) have no
field there and none here.

Ratcheting: on update, an error inside a value that equals its old value is not reported. List items are matched with
old ones by their list-map keys only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainwright.schema.correlation import old_items, same
from trainwright.schema.errors import (
    ErrorType,
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from trainwright.schema.gotext import json_text, number_text, quote
from trainwright.schema.limits import INTEGER_RANGES, Combined, ValueCheck
from trainwright.schema.names import dns1035_label_faults
from trainwright.schema.paths import Path, body_path, field_path

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

_TYPE_NAMES: Final = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_GO_FORMATS: Final = {int: "int64", float: "float64"}


class _Walk:
    """One validation. Structural errors, duplicates in keyed lists and sets, and faults of embedded resources are kept
    apart, because they are reported in this order."""

    __slots__ = ("duplicates", "embedded", "errors", "ratchet")

    def __init__(self, *, ratchet: bool = False) -> None:
        self.errors: list[FieldError] = []
        self.duplicates: list[FieldError] = []
        self.embedded: list[FieldError] = []
        self.ratchet = ratchet

    def value(self, schema: StructuralSchema, value: Any, path: Path, old: Any = None) -> None:
        check = schema._check or schema.check
        kind = type(value)
        if kind in check.simple or (kind is int and check.low <= value <= check.high):
            return
        if not self.ratchet:
            self._check(schema, check, kind, value, path, None)
            return
        mark = len(self.errors)
        self._check(schema, check, kind, value, path, old)
        if len(self.errors) > mark and old is not None and same(value, old, schema):
            del self.errors[mark:]

    def _check(self, schema: StructuralSchema, check: ValueCheck, kind: type, value: Any, path: Path, old: Any) -> None:
        errors = self.errors
        if value is None:
            if check.types and not schema.nullable:
                errors.append(_wrong_type(path, ",".join(check.types), "null"))
            if check.enum is not None and None not in check.enum:
                errors.append(_not_in_enum(path, value, check.enum))
            return
        if check.types or check.format:
            _check_type(check, kind, value, path, errors)
        if check.combined is not None and not (check.any_of_types and (kind is int or kind is str)):
            self._combined(check.combined, value, path)
        if kind is str:
            _check_text(check, value, path, errors)
        elif kind is int or kind is float:
            _check_number(check, value, path, errors)
        elif kind is list:
            self._list(schema, check, value, path, old)
        if check.enum is not None and not _in_enum(value, check.enum):
            errors.append(_not_in_enum(path, value, check.enum))
        if kind is dict:
            self._object(schema, check, value, path, old)

    def _list(self, schema: StructuralSchema, check: ValueCheck, value: list[Any], path: Path, old: Any) -> None:
        items = schema.items
        if items is not None:
            matched = old_items(schema, old) if self.ratchet and old is not None else None
            simple = (items._check or items.check).simple
            for index, item in enumerate(value):
                if type(item) not in simple:
                    self.value(items, item, (path, index), matched(item) if matched else None)
        size = len(value)
        if check.min_items is not None and size < check.min_items:
            name = body_path(path)
            self.errors.append(invalid(name, size, f"{name} in body should have at least {check.min_items} items"))
        if check.max_items is not None and size > check.max_items:
            self.errors.append(too_many(body_path(path), size, check.max_items))
        if check.unique_items and _has_duplicates(value):
            name = body_path(path)
            self.errors.append(invalid(name, "", f"{name} in body shouldn't contain duplicates"))
        if size > 1 and schema.list_type == "set":
            self._duplicates(value, value, path)
        elif check.list_keys:
            self._list_map(check.list_keys, value, path)

    def _list_map(self, keys: tuple[str, ...], value: list[Any], path: Path) -> None:
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                self.duplicates.append(
                    invalid(field_path((path, index)), item, "must be an object for an array of list-type map")
                )
                return
        if len(value) > 1:
            if len(keys) == 1:
                names = {item[keys[0]] for item in value if item and type(item.get(keys[0])) is str}
                if len(names) == len(value):
                    return
            found = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
            self._duplicates(found, found, path)

    def _duplicates(self, identities: list[Any], shown: list[Any], path: Path) -> None:
        times: dict[Any, int] = {}
        for index, identity in enumerate(identities):
            key = identity if type(identity) is str else json_text(identity) + type(identity).__name__
            times[key] = times.get(key, 0) + 1
            if times[key] == 2:
                self.duplicates.append(duplicate(field_path((path, index)), shown[index]))

    def _object(self, schema: StructuralSchema, check: ValueCheck, value: dict[str, Any], path: Path, old: Any) -> None:
        errors = self.errors
        if check.min_properties is not None and len(value) < check.min_properties:
            name = body_path(path)
            detail = f"{name} in body should have at least {check.min_properties} properties"
            errors.append(invalid(name, len(value), detail))
        if check.max_properties is not None and len(value) > check.max_properties:
            errors.append(too_many(body_path(path), len(value), check.max_properties))
        if schema.embedded_resource:
            self._embedded_resource(value, path)
        children = schema._children
        before = old if self.ratchet and isinstance(old, dict) else None
        for name, member in value.items():
            child = children.get(name) or schema.field(name)
            if child is not None:
                # Most members are plain strings: checking the type here saves the call.
                if type(member) not in (child._check or child.check).simple:
                    self.value(child, member, (path, name), before.get(name) if before is not None else None)
                continue
            child = schema.additional
            if child is not None and type(member) not in (child._check or child.check).simple:
                self.value(child, member, (path, (name,)), before.get(name) if before is not None else None)
        for name in check.required:
            if name not in value:
                errors.append(required(body_path((path, name))))

    def _embedded_resource(self, value: dict[str, Any], path: Path) -> None:
        for name in ("apiVersion", "kind"):
            at = field_path((path, name))
            if name not in value:
                self.embedded.append(required(at))
            elif not isinstance(value[name], str):
                self.embedded.append(invalid(at, value[name], "must be a string"))
            elif not value[name]:
                self.embedded.append(invalid(at, "", "must not be empty"))
            elif name == "apiVersion" and value[name].count("/") > 1:
                self.embedded.append(invalid(at, value[name], f"unexpected GroupVersion string: {value[name]}"))
            elif name == "kind" and (faults := dns1035_label_faults(value[name].lower())):
                detail = f"may have mixed case, but should otherwise match: {','.join(faults)}"
                self.embedded.append(invalid(at, value[name], detail))

    def _combined(self, combined: Combined, value: Any, path: Path) -> None:
        name = quote(body_path(path))
        if combined.any_of:
            found = [_errors_of(schema, value, path) for schema in combined.any_of]
            if all(found):
                self.errors.append(_unnamed(f"{name} must validate at least one schema (anyOf)"))
                self.errors += found[0]
        if combined.one_of:
            found = [_errors_of(schema, value, path) for schema in combined.one_of]
            valid = sum(1 for errors in found if not errors)
            if valid != 1:
                tail = f"Found {valid} valid alternatives" if valid else "Found none valid"
                self.errors.append(_unnamed(f"{name} must validate one and only one schema (oneOf). {tail}"))
                self.errors += [] if valid else found[0]
        if combined.all_of:
            found = [_errors_of(schema, value, path) for schema in combined.all_of]
            failed = [errors for errors in found if errors]
            for errors in failed:
                self.errors += errors
            if failed:
                tail = ". None validated" if len(failed) == len(found) else ""
                self.errors.append(_unnamed(f"{name} must validate all the schemas (allOf){tail}"))
        if combined.not_ is not None and not _errors_of(combined.not_, value, path):
            self.errors.append(_unnamed(f"{name} must not validate the schema (not)"))


def validate(schema: StructuralSchema, value: Any, old: Any = None) -> list[FieldError]:
    """All structural errors of a value; with `old`, errors of unchanged parts are ratcheted."""
    walk = _Walk()
    walk.value(schema, value, None)
    errors = walk.errors
    if old is None:
        return errors + walk.embedded + walk.duplicates
    if errors:
        again = _Walk(ratchet=True)
        again.value(schema, value, None, old)
        errors = again.errors
    duplicates = walk.duplicates
    if duplicates:
        before = _Walk()
        before.value(schema, old, None)
        if before.duplicates:
            duplicates = []
    return errors + walk.embedded + duplicates


def _errors_of(schema: StructuralSchema, value: Any, path: Path) -> list[FieldError]:
    walk = _Walk()
    walk.value(schema, value, path)
    return walk.errors


def _unnamed(detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, "", "", detail)


def _wrong_type(path: Path, expected: str, found: str) -> FieldError:
    name = body_path(path)
    return type_invalid(name, found, f"{name} in body must be of type {expected}: {quote(found)}")


def _check_type(check: ValueCheck, kind: type, value: Any, path: Path, errors: list[FieldError]) -> None:
    types = check.types
    name = _TYPE_NAMES[kind]
    if kind is int and not -(2**63) <= value < 2**63:
        name = "number"  # Go reads what does not fit into 64 bits as a float
    if name in types:
        return
    integral = name == "number" and "integer" in types and abs(value) < 2**53 and float(value).is_integer()
    if integral or (name == "integer" and "number" in types):
        return
    textual = kind is str or kind is list
    numeric = "integer" in types or "number" in types
    if check.format and not textual:
        errors.append(_wrong_type(path, check.format, _GO_FORMATS.get(kind, "")))
    elif check.format and textual and not numeric:
        return
    else:
        errors.append(_wrong_type(path, ",".join(types), name))


def _check_text(check: ValueCheck, value: str, path: Path, errors: list[FieldError]) -> None:
    if check.max_length is not None and len(value) > check.max_length:
        errors.append(too_long(body_path(path), check.max_length))
    elif check.min_length is not None and len(value) < check.min_length:
        name = body_path(path)
        errors.append(invalid(name, value, f"{name} in body should be at least {check.min_length} chars long"))
    elif check.pattern is not None and check.pattern.search(value) is None:
        name = body_path(path)
        errors.append(invalid(name, value, f"{name} in body should match '{check._schema.raw['pattern']}'"))
    if check.matches_format is not None and not check.matches_format(value):
        name = body_path(path)
        errors.append(type_invalid(name, value, f"{name} in body must be of type {check.format}: {quote(value)}"))


def _check_number(check: ValueCheck, value: int | float, path: Path, errors: list[FieldError]) -> None:
    if check.types == ("integer",):
        low, high = INTEGER_RANGES.get(check.format, INTEGER_RANGES[""])
        if (isinstance(value, float) and not value.is_integer()) or not low <= value <= high:
            kind = f"integer with format {check.format}" if check.format else "integer (default format)"
            errors.append(_unnamed(f"Checked value must be of type {kind} in {body_path(path)}"))
    if check.multiple_of is not None and not _is_multiple(value, check.multiple_of):
        _limit(path, value, f"should be a multiple of {number_text(check.multiple_of)}", errors)
    raw = check._schema.raw
    if check.minimum is not None:
        exclusive = bool(raw.get("exclusiveMinimum"))
        if value < check.minimum or (exclusive and value == check.minimum):
            words = "greater than" if exclusive else "greater than or equal to"
            _limit(path, value, f"should be {words} {number_text(check.minimum)}", errors)
    if check.maximum is not None:
        exclusive = bool(raw.get("exclusiveMaximum"))
        if value > check.maximum or (exclusive and value == check.maximum):
            words = "less than" if exclusive else "less than or equal to"
            _limit(path, value, f"should be {words} {number_text(check.maximum)}", errors)


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int):
        return value % int(factor) == 0 if factor >= 1 else _nearly_whole(value / factor)
    return _nearly_whole(value / factor if factor >= 1 else 1 / factor * value)


def _nearly_whole(number: float) -> bool:
    """Whether a number is whole up to the error of binary fractions: 0.3 is a multiple of 0.1."""
    return abs(number) < 2**53 and abs(number - round(number)) <= 1e-9 * max(abs(number), 1e-300)


def _limit(path: Path, value: int | float, words: str, errors: list[FieldError]) -> None:
    name = body_path(path)
    errors.append(invalid(name, value, f"{name} in body {words}"))


def _in_enum(value: Any, enum: list[Any]) -> bool:
    return any(value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in enum)


def _not_in_enum(path: Path, value: Any, enum: list[Any]) -> FieldError:
    return not_supported(body_path(path), value, [v if isinstance(v, str) else json_text(v) for v in enum])


def _has_duplicates(value: list[Any]) -> bool:
    texts = [json_text(item) for item in value]
    return len(set(texts)) < len(texts)
