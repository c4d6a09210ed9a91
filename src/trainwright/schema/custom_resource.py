"""Validation of custom resources in the API server's order: structure, list keys, then CEL rules.

In: an object (decoded, pruned, defaulted), its schema, on update the old one. Out: `FieldError`s. If the structure is
broken (a required field missing, a wrong type, too many items, too long, not in an enum), the rules do not run and one
error says so. The caller validates the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.schema.errors import ErrorType, FieldError, invalid
from trainwright.schema.jsonobject import Json
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


def check_create(
    schema: StructuralSchema, value: Json, found: Sequence[FieldError] = (), scale: Sequence[FieldError] = ()
) -> list[FieldError]:
    """All errors of a new object. `found` are those of its metadata and `scale` those of its replicas, which stand
    behind the schema's; both may keep the rules from running.
    """
    return _with_rules(schema, value, None, [*found, *schema.validate(value), *scale])


def check_update(
    schema: StructuralSchema,
    value: Json,
    old: Json,
    found: Sequence[FieldError] = (),
    ratcheted: list[FieldError] | None = None,
    scale: Sequence[FieldError] = (),
) -> list[FieldError]:
    """All errors of a changed object; those of unchanged values are ratcheted.

    Ratcheted errors of rules are added to `ratcheted`, so that the client can be warned of them.
    """
    return _with_rules(schema, value, old, [*found, *schema.validate(value, old), *scale], ratcheted)


def check_status_update(
    schema: StructuralSchema,
    value: Json,
    old: Json,
    found: Sequence[FieldError] = (),
    ratcheted: list[FieldError] | None = None,
    scale: Sequence[FieldError] = (),
) -> list[FieldError]:
    """All errors after a write to the status subresource: of the status' structure, and of the whole object's rules."""
    errors = list(found)
    status = schema.field("status")
    if status is not None and "status" in value:
        # The message names the field relative to the status, the error's field is the whole path.
        errors += [error.under("status") for error in status.validate(value["status"], old.get("status"))]
    return _with_rules(schema, value, old, [*errors, *scale], ratcheted)


def _with_rules(
    schema: StructuralSchema,
    value: Json,
    old: Json | None,
    errors: list[FieldError],
    ratcheted: list[FieldError] | None = None,
) -> list[FieldError]:
    if not schema.has_rules:
        return errors
    if any(error.type in _BLOCKING for error in errors):
        return [*errors, invalid("", None, NOT_CHECKED)]
    return errors + schema.validate_rules(value, old, ratcheted)
