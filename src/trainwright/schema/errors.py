"""Field errors in the API server's words.

All validation (structural, CEL rules, built-in kinds, plugins) yields `FieldError`s. `str()` is the line that users
read, `reason` the machine-readable cause, and `aggregate` joins many into one message. Clients match on the texts, so
they are part of the API.

    FieldError          one fault of one field (data, not an exception)
    SchemaError         a schema or rule that cannot be compiled (an exception: the CRD is at fault, not the object)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

from trainwright.schema.gotext import quote, value_text


class SchemaError(ValueError):
    """A schema, pattern or rule that cannot be compiled; the message says where and why."""


class ErrorType(Enum):
    """The kind of fault: the phrase in the message, and the reason of a Status cause."""

    NOT_FOUND = ("Not found", "FieldValueNotFound")
    REQUIRED = ("Required value", "FieldValueRequired")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    INVALID = ("Invalid value", "FieldValueInvalid")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")
    NOT_SUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    TOO_SHORT = ("Too short", "FieldValueTooShort")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    TOO_FEW = ("Too few", "FieldValueTooFew")
    INTERNAL = ("Internal error", "InternalError")

    @property
    def phrase(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]


_WITHOUT_VALUE: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.TOO_SHORT, ErrorType.INTERNAL},
)


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = _Omitted()
"""Stands for "do not print the value" (CEL rules on objects and lists)."""


class FieldError(NamedTuple):
    """One fault: `spec.trainer.numNodes: Invalid value: -1: …`. An empty field path prints as `<nil>`."""

    type: ErrorType
    field: str
    value: Any = None
    detail: str = ""

    @property
    def reason(self) -> str:
        """The reason of a Status cause, such as `FieldValueRequired`."""
        return self.type.reason

    @property
    def body(self) -> str:
        """The text without the field: what a Status cause carries as its message."""
        text = self.type.phrase
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {value_text(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field or '<nil>'}: {self.body}"

    def under(self, prefix: str) -> FieldError:
        """The same error seen from further up: `prefix` is put in front of the field."""
        return self._replace(field=join(prefix, self.field))


def join(prefix: str, field: str) -> str:
    """`spec` + `x` is `spec.x`; `spec` + `[0]` is `spec[0]`."""
    if not prefix or not field:
        return prefix or field
    return prefix + field if field.startswith("[") else f"{prefix}.{field}"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(ErrorType.REQUIRED, field, "", detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, field, value, detail)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.TYPE_INVALID, field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, field, value)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, field, value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, field, "", detail)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldError:
    """The message quotes the supported values in the order given."""
    names = ", ".join(quote(v if isinstance(v, str) else value_text(v)) for v in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, field, value, f"supported values: {names}" if names else "")


def too_long(field: str, limit: int) -> FieldError:
    """Lengths are counted and reported in bytes since Kubernetes 1.32."""
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(ErrorType.TOO_LONG, field, "", f"may not be more than {limit} {unit}")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(ErrorType.TOO_MANY, field, actual, f"must have at most {limit} {unit}")


def aggregate(errors: Iterable[FieldError | str]) -> str:
    """One error bare, several as `[a, b]`, equal texts once: how Kubernetes prints a list of errors."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
