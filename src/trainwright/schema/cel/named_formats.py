"""Kubernetes' name formats in CEL: `format.dns1123Label().validate(self.name)` yields the faults of a name, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.schema import names
from trainwright.schema.cel.signatures import Function, Signatures, need
from trainwright.schema.cel.values import NONE, Optional_
from trainwright.schema.formats import FORMATS
from trainwright.schema.gotext import quote


class Format:
    """A named format; `faults` lists the faults of a string."""

    cel_type = "kubernetes.NamedFormat"
    __slots__ = ("faults", "name")

    def __init__(self, name: str, faults: Callable[[str], list[str]]) -> None:
        self.name = name
        self.faults = faults

    def __str__(self) -> str:
        return self.name


def _by_format(format: str, fault: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[format](text) else [fault]


def _prefix(faults: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The faults of a prefix for generated names, which may end in a dash."""
    return lambda text: faults(text[:-1] + "a" if text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    return [] if FORMATS["uri"](text) else [f"parse {quote(text)}: invalid URI for request"]


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns1123_label_faults,
    "dns1123Subdomain": names.dns1123_subdomain_faults,
    "dns1035Label": names.dns1035_label_faults,
    "qualifiedName": names.label_key_faults,
    "dns1123LabelPrefix": _prefix(names.dns1123_label_faults),
    "dns1123SubdomainPrefix": _prefix(names.dns1123_subdomain_faults),
    "dns1035LabelPrefix": _prefix(names.dns1035_label_faults),
    "labelValue": names.label_value_faults,
    "uri": _uri,
    "uuid": _by_format("uuid", "does not match the UUID format"),
    "byte": _by_format("byte", "invalid base64"),
    "date": _by_format("date", "invalid date"),
    "datetime": _by_format("datetime", "invalid datetime"),
}
_BY_NAME = {name: Format(name, faults) for name, faults in _FORMATS.items()}


def _constant(found: Format) -> Function:
    return lambda: found


def named(name: Any) -> Optional_:
    need(name, str)
    found = _BY_NAME.get(name)
    return NONE if found is None else Optional_(found)


def validate(found: Any, text: Any) -> Optional_:
    need(found, Format)
    need(text, str)
    faults = found.faults(text)
    return Optional_(faults) if faults else NONE


GLOBAL: Signatures = {}

NAMESPACED: Signatures = {
    "format.named": (named, 1, 1),
    **{f"format.{name}": (_constant(found), 0, 0) for name, found in _BY_NAME.items()},
}

MEMBER: Signatures = {"validate": (validate, 1, 1)}
