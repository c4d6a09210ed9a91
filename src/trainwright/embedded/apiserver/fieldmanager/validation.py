"""Whether an applied configuration fits its node, in the words of structured-merge-diff."""

from __future__ import annotations

import json
from typing import Any

from trainwright.embedded.apiserver.fieldmanager.fieldset import element_text
from trainwright.embedded.apiserver.fieldmanager.listitems import TypedError, item_element
from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.schema.gotext import plain_text
from trainwright.schema.jsonobject import Json


def check(node: Node, value: Any, path: str = "") -> list[str]:
    """The faults of a value: fields that the schema does not declare, items without keys, duplicate items, wrong
    types."""
    shape = node.shape(value)
    if isinstance(shape, MapNode) and isinstance(value, dict):
        return _check_map(shape, value, path)
    if isinstance(shape, ListNode) and isinstance(value, list):
        return _check_list(shape, value, path)
    fits = shape is not None or value is None or (node.scalar and not isinstance(value, dict | list))
    return [] if fits else [f"{path}: expected {_expected(node)}, got {_shown(value)}"]


def _check_map(node: MapNode, value: Json, path: str) -> list[str]:
    faults: list[str] = []
    for name, member in value.items():
        child = node.fields.get(name, node.element)
        if child is None:
            faults.append(f"{path}.{name}: field not declared in schema")
        else:
            faults += check(child, member, f"{path}.{name}")
    return faults


def _check_list(node: ListNode, items: list[Any], path: str) -> list[str]:
    if node.atomic:
        return [fault for index, item in enumerate(items) for fault in check(node.item, item, f"{path}[{index}]")]
    faults: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        try:
            element = item_element(node, item)
        except TypedError as error:
            faults.append(f"{path}: element {index}: {error}")
            continue
        if element in seen:
            faults.append(f"{path}: duplicate entries for key {element_text(element)}")
        seen.add(element)
        faults += check(node.item, item, path + element_text(element))
    return faults


def _expected(node: Node) -> str:
    if node.map is not None:
        return "map"
    return "scalar" if node.list is None else "list"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"&{{{plain_text(value)}}}"
