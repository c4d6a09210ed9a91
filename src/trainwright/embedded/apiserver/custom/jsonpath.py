"""The part of kubectl's JSONPath that CRDs use: fields, indexes, wildcards, filters on equality.

In: a path such as `.status.conditions[?(@.type=="Ready")].status` and an object. Out: the values found, in order.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

Step = Callable[[list[Any]], list[Any]]
_INNER = r"""[.\w\[\]'"/-]+?"""
_LITERAL = r"""(?P<value>"[^"]*"|'[^']*'|[\w.+-]+)"""
_TOKEN = re.compile(
    r"\.\.(?P<deep>[\w-]+)"
    rf"|\.?\[\?\(\s*@(?P<filter>{_INNER})\s*(?P<operator>==|!=|>=|<=|>|<)\s*{_LITERAL}\s*\)\]"
    rf"|\.?\[\?\(\s*@(?P<exists>{_INNER})\s*\)\]"
    r"|\.?\[(?P<index>-?\d+)\]"
    r"|\.?\[(?P<start>-?\d*):(?P<end>-?\d*)\]"
    r"|\.?\[\*\]|\.\*"
    r"""|\.?\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""
    r"|\.(?P<name>(?:[\w-]|\\.)+)"
)


class JsonPathError(ValueError):
    """A path this module does not understand."""


@functools.lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = "." + text
    if text == ".":
        return ()
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise JsonPathError(f"cannot read the JSONPath {path!r} from {text[at:]!r} on")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    groups = found.groupdict()
    if groups["name"] is not None:
        return _member(re.sub(r"\\(.)", r"\1", groups["name"]))
    if groups["quoted"] is not None:
        return _member(re.sub(r"\\(.)", r"\1", groups["quoted"][1:-1]))
    if groups["index"] is not None:
        number = int(groups["index"])
        return lambda values: [v[number] for v in values if isinstance(v, list) and -len(v) <= number < len(v)]
    if groups["filter"] is not None:
        return _filter(groups["filter"], groups["operator"], groups["value"])
    if groups["exists"] is not None:
        inner = compile_path(groups["exists"])
        return lambda values: [item for value in values for item in _items(value) if _run(inner, [item])]
    if groups["start"] is not None:
        start = int(groups["start"]) if groups["start"] else None
        end = int(groups["end"]) if groups["end"] else None
        return lambda values: [item for v in values if isinstance(v, list) for item in v[start:end]]
    if groups["deep"] is not None:
        name = groups["deep"]
        return lambda values: [item for value in values for item in _deep(value, name)]
    return lambda values: [item for value in values for item in _items(value)]


def _member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value[key] for key in sorted(value)] if isinstance(value, dict) else []


def _deep(value: Any, name: str) -> list[Any]:
    found: list[Any] = []
    if isinstance(value, dict) and name in value:
        found.append(value[name])
    for child in _items(value):
        found += _deep(child, name)
    return found


def _filter(path: str, operator: str, literal: str) -> Step:
    inner = compile_path(path)
    wanted: Any
    if literal[0] in "\"'":
        wanted = literal[1:-1]
    else:
        try:
            wanted = json.loads(literal)
        except ValueError:
            wanted = literal

    def keep(item: Any) -> bool:
        found = _run(inner, [item])
        if not found:
            return False
        value = found[0]
        if operator == "==":
            return bool(value == wanted)
        if operator == "!=":
            return bool(value != wanted)
        if type(value) is not type(wanted):
            return False
        compared = {">": value > wanted, "<": value < wanted, ">=": value >= wanted, "<=": value <= wanted}
        return bool(compared[operator])

    return lambda values: [item for value in values for item in _items(value) if keep(item)]


def _run(steps: tuple[Step, ...], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def find(path: str, obj: Any) -> list[Any]:
    return _run(compile_path(path), [obj])


def text(value: Any) -> str:
    """A found value as kubectl prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
