"""A template as its typed object would be written: a copy in which an optional field with nothing in it is left out.

The reference passes templates through typed structs, so `value: ""` or `maxRestarts: 0` is the same as no such field,
while a field that knows "unset" (a pointer there) keeps its zero, and amounts are canonical. Both spellings of one
template must give the same bytes, and a patch with an empty list must not empty the list it is merged into. Fields we
do not know are never touched.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from trainwright.api.fields import EMPTY, LIST, MAP, QUANTITY, STRUCT, TEXT, ZERO, Field, fields_of
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import QuantityError, parse_quantity

JOB_SET_SPEC = "jobset.JobSetSpec"


def sparse(node: Json, struct: str = JOB_SET_SPEC) -> Json:
    """A deep copy of an object, which is a `struct`, without unset fields."""
    fields = fields_of(struct)
    copy: Json = {}
    for name, value in node.items():
        field = fields.get(name)
        if value is None or (field is not None and not value and field.omits in (ZERO, EMPTY)):
            continue
        copy[name] = _copied(value) if field is None else _typed(value, field)
    for name, zero in _always_written(struct):
        copy.setdefault(name, zero)
    return copy


def _typed(value: Any, field: Field) -> Any:
    if field.many == LIST and isinstance(value, list):
        return [_one(item, field.type) for item in value]
    if field.many == MAP and isinstance(value, dict):
        return {name: _one(item, field.type) for name, item in value.items()}
    return _one(value, field.type)


def _one(value: Any, struct: str) -> Any:
    if struct == QUANTITY:
        return amount(value)
    return sparse(value, struct) if struct and isinstance(value, dict) else _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


@cache
def _always_written(struct: str) -> tuple[tuple[str, str], ...]:
    """Scalars that a struct writes even when nobody set them, with what it writes then."""
    zeros = {(STRUCT, "", QUANTITY): "0", (TEXT, "", ""): ""}
    return tuple((name, zeros[field]) for name, field in fields_of(struct).items() if field in zeros)


def amount(value: Any) -> Any:
    """A quantity as the API writes it; what is none stays as it is, for validation to judge."""
    return _amount_text(value) if isinstance(value, str) else _amount(value)


def _amount(value: Any) -> Any:
    try:
        return str(parse_quantity(value)) if isinstance(value, str | int | float) else value
    except QuantityError:
        return value


_amount_text = lru_cache(1024)(_amount)  # most TrainJobs ask for the same
