"""Values inside messages, spelled as the reference's typed objects print them.

The reference answers from Go structs: fields come in the order of their declaration, an empty one is left out unless
its type knows "unset", amounts are canonical. Clients compare these texts, so ours are made the same way. In: plain
JSON or our own Structs. Out: text, and `FieldError`s that carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trainwright.api.fields import EMPTY, LIST, MAP, QUANTITY, REQUIRED, STRUCT, TEXT, ZERO, Field, fields_of
from trainwright.api.trainjob import RuntimeRef
from trainwright.pipeline.info import Info
from trainwright.pipeline.sparse import amount
from trainwright.schema.errors import OMITTED, ErrorType, FieldError
from trainwright.schema.gotext import json_text

_ZEROS: dict[str, Any] = {STRUCT: {}, TEXT: ""}
"""What a field that is always written holds when it is not set."""


def json_of(value: Any, struct: str) -> str:
    """JSON of a `struct`, or of a list of them."""
    return _text(msgspec.to_builtins(value), struct)


def _text(value: Any, struct: str) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_text(item, struct) for item in value) + "]"
    if struct == QUANTITY:
        return json_text(str(amount(value)))
    fields = fields_of(struct)
    if not fields or not isinstance(value, dict):
        return json_text(value)
    members = ((name, _member(value.get(name), field)) for name, field in fields.items())
    return "{" + ",".join(f"{json_text(name)}:{text}" for name, text in members if text) + "}"


def _member(value: Any, field: Field) -> str:
    """The text of one field; empty when it is left out."""
    if value is None and field.omits == REQUIRED and field.many:
        return "null"
    if value is None and field.omits == STRUCT and field.type == QUANTITY:
        value = "0"
    elif value is None:
        value = _ZEROS.get(field.omits)
    if value is None or (not value and field.omits in (ZERO, EMPTY)):
        return ""
    if field.many == MAP and isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{_text(value[key], field.type)}" for key in sorted(value)) + "}"
    if field.many == LIST and not field.type:
        return json_text(value)
    return _text(value, field.type)


def requirements_text(requirements: Mapping[str, Any] | None) -> str:
    """A ResourceRequirements, or `null`."""
    return "null" if requirements is None else _text(dict(requirements), "core.ResourceRequirements")


def runtime_ref_text(ref: RuntimeRef) -> str:
    """A runtime reference with all its members."""
    return _text({"name": ref.name, "apiGroup": ref.api_group, "kind": ref.kind}, "trainer.RuntimeRef")


def containers_text(containers: Sequence[Mapping[str, Any]]) -> str:
    """Containers of a pod template."""
    return _text([dict(container) for container in containers], "core.Container")


def invalid_value(field: str, text: str, detail: str) -> FieldError:
    """`field: Invalid value: text: detail`, the value being text already."""
    return FieldError(ErrorType.INVALID, field, OMITTED, f"{text}: {detail}")


def reserved_env(info: Info, reserved: Sequence[str]) -> Iterator[FieldError]:
    """The TrainJob sets variables that a framework keeps for itself."""
    env = info.trainer_spec.env or []
    taken = sorted({str(variable.get("name")) for variable in env} & set(reserved))
    if taken:
        detail = f"must not have reserved envs, invalid envs configured: [{' '.join(taken)}]"
        yield invalid_value("spec.trainer.env", _text(list(env), "core.EnvVar"), detail)
