"""Marks on the fields of our types: what the CRD schema adds to a type. Limits, defaults, list keys, rules, a
description.

A mark stands in `Annotated[...]` beside the type. `crds.py` reads the marks; decoding ignores them, because the API
server has validated the objects that reach us, and older objects must still be readable.
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
    """Makes a mark. Keywords are OpenAPI's own (`minimum=1`). For a plain-JSON field, `shape` names the type in
    patches.py that has its schema, or `fragment` the part of Kubernetes' pod schema. `items` adds keywords to the items
    of a list.
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
