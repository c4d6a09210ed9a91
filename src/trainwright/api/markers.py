"""Marks on the fields of our types that say what their CRD schema adds: limits, defaults, list keys, rules, a line
for the user.

A mark stands in `Annotated[...]` beside the type and means nothing to decoding: objects that reach us have met the
schema, and older ones must still be readable. `crds.py` reads the marks.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trainwright.schema.jsonobject import Json


class Mark(msgspec.Struct, frozen=True):
    """One mark; make it with `mark`."""

    description: str
    keywords: Json
    shape: str = ""
    fragment: str = ""
    items: Json | None = None
    required: bool = False


def mark(
    description: str = "",
    *,
    shape: str = "",
    fragment: str = "",
    items: Json | None = None,
    required: bool = False,
    rules: list[Json] | None = None,
    list_type: str = "",
    keys: list[str] | None = None,
    **keywords: Any,
) -> Mark:
    """Keywords are OpenAPI's own (`minimum=1`). `shape` names the type in patches.py whose schema a plain-JSON field
    has, `fragment` the place in Kubernetes' pod schema it is taken from, `items` adds keywords to the items of a
    list.
    """
    if list_type:
        keywords["x-kubernetes-list-type"] = list_type
    if keys:
        keywords["x-kubernetes-list-type"] = "map"
        keywords["x-kubernetes-list-map-keys"] = keys
    if rules:
        keywords["x-kubernetes-validations"] = rules
    return Mark(description, keywords, shape, fragment, items, required)


def rule(expression: str, message: str) -> Json:
    return {"rule": expression, "message": message}


IMMUTABLE: Final = rule("self == oldSelf", "field is immutable")
