"""Functions on strings: searching, cutting, formatting, regular expressions. `indexOf` also works on lists."""

from __future__ import annotations

import re
from typing import Any

from trainwright.schema.cel.conversions import to_bytes, to_string
from trainwright.schema.cel.signatures import Signatures, need
from trainwright.schema.cel.values import CelError, Type, equal
from trainwright.schema.errors import SchemaError
from trainwright.schema.gotext import quote as go_quote
from trainwright.schema.regex import compile_regex

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def contains(text: Any, part: Any) -> bool:
    need(text, str)
    need(part, str)
    return part in text


def starts_with(text: Any, part: Any) -> bool:
    need(text, str)
    need(part, str)
    return bool(text.startswith(part))


def ends_with(text: Any, part: Any) -> bool:
    need(text, str)
    need(part, str)
    return bool(text.endswith(part))


def _regex(pattern: Any) -> re.Pattern[str]:
    need(pattern, str)
    try:
        return compile_regex(pattern)
    except SchemaError as error:
        raise CelError(str(error)) from None


def matches(text: Any, pattern: Any) -> bool:
    need(text, str)
    return _regex(pattern).search(text) is not None


def find(text: Any, pattern: Any) -> str:
    need(text, str)
    found = _regex(pattern).search(text)
    return found[0] if found else ""


def find_all(text: Any, pattern: Any, limit: Any = -1) -> list[str]:
    need(text, str)
    need(limit, int)
    found = [match[0] for match in _regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def char_at(text: Any, index: Any) -> str:
    need(text, str)
    need(index, int)
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return str(text[index : index + 1])


def index_of(value: Any, part: Any, start: Any = 0) -> int:
    need(start, int)
    if isinstance(value, list):
        return next((at for at, item in enumerate(value) if equal(item, part)), -1)
    need(value, str)
    need(part, str)
    if not 0 <= start <= len(value):
        raise CelError(f"index out of range: {start}")
    return int(value.find(part, start))


def last_index_of(value: Any, part: Any, start: Any = None) -> int:
    if isinstance(value, list):
        return max((at for at, item in enumerate(value) if equal(item, part)), default=-1)
    need(value, str)
    need(part, str)
    if start is None:
        return int(value.rfind(part))
    need(start, int)
    if not 0 <= start <= len(value):
        raise CelError(f"index out of range: {start}")
    return int(value.rfind(part, 0, start + len(part)))


def lower_ascii(text: Any) -> str:
    need(text, str)
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in text)


def upper_ascii(text: Any) -> str:
    need(text, str)
    return "".join(char.upper() if "a" <= char <= "z" else char for char in text)


def replace(text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    need(text, str)
    need(old, str)
    need(new, str)
    need(limit, int)
    return str(text.replace(old, new, limit))


def split(text: Any, separator: Any, limit: Any = -1) -> list[str]:
    need(text, str)
    need(separator, str)
    need(limit, int)
    if limit == 0:
        return []
    if separator == "":
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]
    return list(text.split(separator, limit - 1 if limit > 0 else -1))


def substring(text: Any, start: Any, end: Any = None) -> str:
    need(text, str)
    need(start, int)
    end = len(text) if end is None else end
    need(end, int)
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return str(text[start:end])


def trim(text: Any) -> str:
    need(text, str)
    return str(text.strip())


def join(items: Any, separator: Any = "") -> str:
    need(items, list)
    need(separator, str)
    for item in items:
        need(item, str)
    return str(separator.join(items))


def quote(text: Any) -> str:
    need(text, str)
    return go_quote(text)


def format_(template: Any, args: Any) -> str:
    """`"%s is %d".format([name, n])`."""
    need(template, str)
    need(args, list)
    remaining = list(args)

    def fill(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not remaining:
            raise CelError("could not parse formatting clause: not enough arguments")
        value = remaining.pop(0)
        verb, digits = match[2], match[1]
        match verb:
            case "s":
                return _shown(value)
            case "d":
                need(value, int)
                return str(int(value))
            case "f" | "e":
                need(value, int, float)
                # Kubernetes uses the precision of %f only, and writes exponents in superscript.
                text = f"{value:.{int(digits[1:]) if digits and verb == 'f' else 6}{verb}}"
                mantissa, _, exponent = text.partition("e")
                return f"{mantissa}×10{exponent.removeprefix('+').translate(_RAISED)}" if exponent else text
            case "b":
                need(value, int, bool)
                return f"{int(value):b}"
            case "x" | "X":
                if isinstance(value, str | bytes):
                    hexed = to_bytes(value).hex()
                    return hexed.upper() if verb == "X" else hexed
                need(value, int)
                return f"{value:{verb}}"
            case _:
                need(value, int)
                return f"{value:o}"

    return re.sub(r"%(?:%|(\.\d+)?([sdfebxXo]))", fill, template)


def _shown(value: Any, *, nested: bool = False) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item, nested=True) for item in value) + "]"
    if isinstance(value, dict):
        members = (f"{_shown(k, nested=True)}:{_shown(value[k], nested=True)}" for k in sorted(value, key=str))
        return "{" + ", ".join(members) + "}"
    if nested and isinstance(value, str):
        return go_quote(value)
    if nested and isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, Type):
        return value.name
    return "null" if value is None else to_string(value)


GLOBAL: Signatures = {
    "matches": (matches, 2, 2),
}

NAMESPACED: Signatures = {
    "strings.quote": (quote, 1, 1),
}

MEMBER: Signatures = {
    "contains": (contains, 1, 1),
    "startsWith": (starts_with, 1, 1),
    "endsWith": (ends_with, 1, 1),
    "matches": (matches, 1, 1),
    "find": (find, 1, 1),
    "findAll": (find_all, 1, 2),
    "charAt": (char_at, 1, 1),
    "indexOf": (index_of, 1, 2),
    "lastIndexOf": (last_index_of, 1, 2),
    "lowerAscii": (lower_ascii, 0, 0),
    "upperAscii": (upper_ascii, 0, 0),
    "replace": (replace, 2, 3),
    "split": (split, 1, 2),
    "substring": (substring, 1, 2),
    "trim": (trim, 0, 0),
    "join": (join, 0, 1),
    "format": (format_, 1, 1),
}
