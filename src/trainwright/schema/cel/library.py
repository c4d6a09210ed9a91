"""CEL's functions by name: the standard ones and those that Kubernetes adds.

Each module beside this one declares three tables: `GLOBAL` (called by name), `MEMBER` (called on a value, which does
not count as an argument) and `NAMESPACED` (`sets.contains`). Modules are imported in order until one has the name; most
rules need only the first two.
"""

from __future__ import annotations

from importlib import import_module

from trainwright.schema.cel.signatures import Signature
from trainwright.schema.cel.values import Type

_MODULES = (
    "conversions",
    "strings",
    "optionals",
    "lists",
    "versions",
    "quantities",
    "times",
    "network",
    "named_formats",
)

TYPES = {
    name: Type(name)
    for name in [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "optional_type",
        "string",
        "type",
        "uint",
    ]
}


def find(table: str, name: str) -> Signature | None:
    """The signature of a function in one of the tables, None if it is unknown."""
    for module in _MODULES:
        found: Signature | None = getattr(import_module(f".{module}", __package__), table).get(name)
        if found is not None:
            return found
    return None
