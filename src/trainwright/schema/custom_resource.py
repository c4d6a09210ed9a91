"""What the API server checks of a custom resource, in its order: structure, list keys, then rules.

In: an object (decoded, pruned, defaulted), its schema, on update the old one. Out: `FieldError`s. When the structure
itself is broken (a required field missing, a wrong type, too many items, too long, not in an enum) the rules do not
run and one error says so. Metadata is not judged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwright.schema.errors import ErrorType, FieldError, invalid
from trainwright.schema.structural import StructuralSchema

_BLOCKING = frozenset(
    {
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    }
)
NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def check_create(schema: StructuralSchema, value: dict[str, Any], found: Sequence[FieldError] = ()) -> list[FieldError]:
    """Everything wrong with a new object; `found` are errors of its metadata, which may keep rules from running."""
    return _with_rules(schema, value, None, [*found, *schema.validate(value)])


def check_update(
    schema: StructuralSchema,
    value: dict[str, Any],
    old: dict[str, Any],
    found: Sequence[FieldError] = (),
    spared: list[FieldError] | None = None,
) -> list[FieldError]:
    """Everything wrong with a changed object; what was wrong before and did not change is let be.

    Rules that are broken but let be are added to `spared`: clients are warned of them.
    """
    return _with_rules(schema, value, old, [*found, *schema.validate(value, old)], spared)


def check_status_update(
    schema: StructuralSchema,
    value: dict[str, Any],
    old: dict[str, Any],
    found: Sequence[FieldError] = (),
    spared: list[FieldError] | None = None,
) -> list[FieldError]:
    """Everything wrong after a write to the status subresource: only the status is judged, but rules see the whole."""
    errors = list(found)
    status = schema.field("status")
    if status is not None and "status" in value:
        # Messages name the fields as seen from the status, the field in front is whole.
        errors += [error.under("status") for error in status.validate(value["status"], old.get("status"))]
    return _with_rules(schema, value, old, errors, spared)


def _with_rules(
    schema: StructuralSchema,
    value: dict[str, Any],
    old: dict[str, Any] | None,
    errors: list[FieldError],
    spared: list[FieldError] | None = None,
) -> list[FieldError]:
    if not schema.has_rules:
        return errors
    if any(error.type in _BLOCKING for error in errors):
        return [*errors, invalid("", None, NOT_CHECKED)]
    return errors + schema.validate_rules(value, old, spared)
