"""Every property of a custom resource's schema, each with every odd value that its schema suggests.

In: an openAPIV3Schema and a base object that is valid. Out: `Case`s: the base with one property absent, null, empty, of
the wrong type, at its limits and one beyond, and with every value of its enum. What a property needs around it (its
parents and what they require) is made up from the schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainwright.embedded import manifests
from trainwright.schema.jsonobject import Json

ABSENT = object()
TEXTS = {
    "date-time": "2024-01-01T00:00:00Z",
    "duration": "1s",
    "int32": "1",
}
WRONG: dict[str, Any] = {
    "string": 1,
    "integer": "x",
    "number": "x",
    "boolean": "yes",
    "object": [],
    "array": {},
}


class Case(NamedTuple):
    kind: str
    path: str
    how: str
    value: Json


def schema_of(kind: str) -> Json:
    [crd] = [crd for crd in manifests.crds() if crd["spec"]["names"]["kind"] == kind]
    found: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def cases(base: Json) -> Iterator[Case]:
    """All cases of a kind, in the schema's order."""
    schema = schema_of(base["kind"])
    for path, node in _nodes(schema["properties"]["spec"], ("spec",)):
        for how, value in _values(node):
            made = _with(base, schema, path, value)
            if made is not None:
                yield Case(base["kind"], ".".join(map(str, path)), how, made)


def properties(base: Json) -> set[str]:
    return {".".join(map(str, path)) for path, _ in _nodes(schema_of(base["kind"])["properties"]["spec"], ("spec",))}


def _nodes(schema: Json, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Json]]:
    yield path, schema
    for name, child in (schema.get("properties") or {}).items():
        yield from _nodes(child, (*path, name))
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield from _nodes(more, (*path, "key"))
    if "items" in schema:
        yield from _nodes(schema["items"], (*path, 0))


def _values(node: Json) -> Iterator[tuple[str, Any]]:
    yield "absent", ABSENT
    yield "null", None
    yield "plain", plain(node)
    kind = node.get("type")
    if kind in WRONG:
        yield "wrong type", copy.deepcopy(WRONG[kind])
    for value in node.get("enum") or ():
        yield f"enum {value}", value
    if node.get("enum"):
        yield "no enum", "Nonesuch"
    if kind == "string":
        yield "empty", ""
        yield from _lengths("Length", node, lambda size: "a" * size)
    elif kind == "array":
        yield "empty", []
        yield "null in it", [None]
        yield from _lengths("Items", node, lambda size: [plain(node["items"])] * size)
    elif kind == "object":
        yield "empty", {}
        yield "unknown in it", {**plain(node), "nonesuch": 1}
    elif kind == "integer":
        low, high = (-(2**31), 2**31 - 1) if node.get("format") == "int32" else (-(2**63), 2**63 - 1)
        for name, value in (("zero", 0), ("negative", -1), ("beyond", high + 1), ("highest", high), ("lowest", low)):
            yield name, value
        for name in ("minimum", "maximum"):
            if name in node:
                yield name, node[name]
                yield f"past {name}", node[name] + (1 if name == "maximum" else -1)
    elif node.get("x-kubernetes-int-or-string"):
        for odd in (0, -1, "", "x", "1e9999", "1Gi", "50%", 2**63, 1.5):
            yield f"{odd!r}", odd


def _lengths(what: str, node: Json, make: Any) -> Iterator[tuple[str, Any]]:
    for limit in (f"min{what}", f"max{what}"):
        if limit in node and node[limit] < 5000:
            yield limit, make(node[limit])
            yield f"past {limit}", make(max(0, node[limit] + (1 if limit.startswith("max") else -1)))


def plain(node: Json) -> Any:
    """A value that the schema takes, as small as it can be."""
    if "default" in node:
        return copy.deepcopy(node["default"])
    if node.get("enum"):
        return node["enum"][0]
    if node.get("x-kubernetes-int-or-string"):
        return 1
    match node.get("type"):
        case "object":
            return {name: plain(node["properties"][name]) for name in node.get("required") or ()}
        case "array":
            return [plain(node["items"])] * node.get("minItems", 0)
        case "string":
            return TEXTS.get(node.get("format", ""), "a" * max(1, node.get("minLength", 1)))
        case "integer" | "number":
            return max(1, node.get("minimum", 1))
        case "boolean":
            return True
    return {}


def _with(base: Json, schema: Json, path: tuple[Any, ...], value: Any) -> Json | None:
    """The base with the value at the path; None where what should be absent is an item of a list."""
    made = copy.deepcopy(base)
    here: Any = made
    for step, following in zip(path, (*path[1:], None), strict=True):
        schema = _child(schema, step)
        if following is None:
            if value is ABSENT:
                if not isinstance(here, dict):
                    return None
                here.pop(step, None)
            elif isinstance(here, list):
                here[:1] = [value]
            else:
                here[step] = value
            return made
        if isinstance(here, list):
            if not here:
                here.append(plain(schema))
            here = here[0]
        else:
            if not isinstance(here.get(step), dict | list):
                here[step] = plain(schema)
            here = here[step]
    return made


def _child(schema: Json, step: Any) -> Json:
    if isinstance(step, int):
        found: Json = schema["items"]
    elif step in (schema.get("properties") or {}):
        found = schema["properties"][step]
    else:
        found = schema["additionalProperties"]
    return found
