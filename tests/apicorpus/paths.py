"""Paths into JSON documents, as scenarios write them.

`a/b/0` walks down, `~1` stands for a slash inside a key, `[name=x]` picks an element of a list by its fields. At the
end `*keys`, `*len` and `*[field]` summarise a value instead of returning it.
"""

from __future__ import annotations

import re
from typing import Any

MISSING = "{{missing}}"
"""What `lookup` returns where a path leads nowhere."""


def segments(path: str) -> list[str]:
    """Split a path at the slashes outside of brackets."""
    return [s.replace("~1", "/").replace("~0", "~") for s in re.findall(r"(?:\*?\[[^\]]*\]|[^/\[]+|\[)+", path)]


def lookup(document: Any, path: str) -> Any:
    """The value at a path, or MISSING."""
    for segment in segments(path):
        if segment == "*keys":
            return sorted(document) if isinstance(document, dict) else MISSING
        if segment == "*len":
            return len(document) if isinstance(document, (dict, list)) else MISSING
        if every := re.fullmatch(r"\*\[(.+)\]", segment):
            return [lookup(item, every[1]) for item in document] if isinstance(document, list) else MISSING
        if picked := re.fullmatch(r"\[(.+)\]", segment):
            document = _pick(document, picked[1])
        elif isinstance(document, dict) and segment in document:
            document = document[segment]
        elif isinstance(document, list) and segment.lstrip("-").isdigit() and _is_index(document, int(segment)):
            document = document[int(segment)]
        else:
            return MISSING
        if document is MISSING:
            return MISSING
    return document


def _pick(document: Any, fields: str) -> Any:
    """The first element of a list that has all of the fields `a=1,b.c=2`."""
    if not isinstance(document, list):
        return MISSING
    wanted = dict(field.split("=", 1) for field in fields.split(","))
    for item in document:
        if isinstance(item, dict) and all(str(lookup(item, k.replace(".", "/"))) == v for k, v in wanted.items()):
            return item
    return MISSING


def _is_index(items: list[Any], index: int) -> bool:
    return -len(items) <= index < len(items)


def remove(document: Any, path: str) -> None:
    """Remove what a path names, if anything; `*` stands for every member."""
    *way, last = segments(path)
    nodes = [document]
    for segment in way:
        nodes = [below for node in nodes for below in _children(node, segment)]
    for node in nodes:
        if isinstance(node, dict):
            node.pop(last, None)
        elif isinstance(node, list) and last.isdigit() and int(last) < len(node):
            del node[int(last)]


def _children(node: Any, segment: str) -> list[Any]:
    if segment == "*":
        return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    if isinstance(node, dict) and segment in node:
        return [node[segment]]
    if isinstance(node, list) and segment.isdigit() and int(segment) < len(node):
        return [node[int(segment)]]
    return []


def assign(document: Any, path: str, value: Any) -> None:
    """Set the value at a path, making objects on the way; `-` at the end appends to a list."""
    *way, last = segments(path)
    for segment in way:
        document = document[int(segment)] if isinstance(document, list) else document.setdefault(segment, {})
    if not isinstance(document, list):
        document[last] = value
    elif last == "-":
        document.append(value)
    else:
        document[int(last)] = value
