"""A small part of kubectl's JSONPath, enough to wait for a value: `{.status.conditions[?(@.type=="Complete")].status}`.

In: an expression and an object. Out: the values that are found. Fields, `[0]`, `[*]` and `[?(@.field=="text")]` are
understood; everything else is refused with a sentence. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainwright.cli.failure import Failure

_STEP = re.compile(
    r"""\.(?P<field>[A-Za-z_][\w/-]*|'[^']+')"""
    r"""|\[(?P<index>-?\d+|\*)\]"""
    r"""|\['(?P<quoted>[^']+)'\]"""
    r"""|\[\?\(@\.(?P<key>[\w.-]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]"""
)


def steps_of(expression: str) -> list[re.Match[str]]:
    """The steps of `{.a.b[0]}`; the braces and the first dot may be missing."""
    text = expression.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    text = text if text.startswith((".", "[")) else f".{text}"
    steps, at = [], 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise Failure(
                f"{expression}: {text[at:]!r} is not understood; write fields as {{.status.state}}, items as [0] or"
                ' [?(@.type=="Complete")]',
                2,
            )
        steps.append(found)
        at = found.end()
    return steps


def find(value: Any, steps: list[re.Match[str]]) -> Iterator[Any]:
    """The values that an expression names in an object; none where a field is missing or null."""
    if value is None:
        return
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    name = step["field"] or step["quoted"]
    if name is not None:
        if isinstance(value, dict):
            yield from find(value.get(name.strip("'")), rest)
    elif isinstance(value, list):
        for item in _items(value, step):
            yield from find(item, rest)


def _items(value: list[Any], step: re.Match[str]) -> Iterator[Any]:
    if step["index"] == "*":
        yield from value
    elif step["index"] is not None:
        yield from value[int(step["index"]) :][:1]
    else:
        yield from (item for item in value if isinstance(item, dict) and str(item.get(step["key"])) == step["value"])


def as_text(value: Any) -> str:
    """A value as it is written behind `=`."""
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
