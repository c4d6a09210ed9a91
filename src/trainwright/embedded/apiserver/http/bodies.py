"""Request bodies: bytes to JSON values, with what strict decoding wants to know.

In: the body and its content type. Out: the value and the duplicate fields it had. Accepted: JSON, YAML and, for built-
in kinds, protobuf.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from trainwright.embedded.apiserver.errors import StatusError

MAX_BODY = 3 * 2**20
_FRACTION = re.compile(rb"[0-9](?:\.[0-9]|[eE])|[0-9]{19}")  # numbers that need a second look
_LITERALS = frozenset({"NaN", "Infinity", "-Infinity"})
MAX_DEPTH = 500
MAX_EVENTS = 400_000


class _Duplicates(dict[str, Any]):
    """An object that had a key twice, and all it had in order of appearance."""

    __slots__ = ("pairs",)
    pairs: list[tuple[str, Any]]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked = _Duplicates(found)
    marked.pairs = pairs
    return marked


def _constant(text: str) -> NoReturn:
    raise ValueError(f"invalid character '{text[0]}' looking for beginning of value")


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """The value and what strict decoding says of duplicate fields. Raises ValueError in words close to Go's."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ValueError("invalid UTF-8 in the body") from None
    if not text.strip():
        raise ValueError("unexpected end of JSON input")
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    except json.JSONDecodeError as error:
        raise ValueError(_go_words(text, error)) from None
    duplicates: list[str] = []
    if b'"' in body:
        value = _clean(value, "", duplicates, _FRACTION.search(body) is not None)
    return value, duplicates


def _go_words(text: str, error: json.JSONDecodeError) -> str:
    at, what = error.pos, error.msg
    if at >= len(text.rstrip()) or what.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    if what.startswith("Invalid \\"):
        at += 1
        return f"invalid character {_shown(text[at : at + 1])} in string escape code"
    for start, words in _WORDS.items():
        if what.startswith(start):
            return f"invalid character {_shown(text[at])} {words}"
    if what.startswith("Expecting ','"):
        words = "after array element" if _innermost(text[:at]) == "[" else "after object key:value pair"
        return f"invalid character {_shown(text[at])} {words}"
    for literal in ("true", "false", "null"):
        if text[at] == literal[0]:
            return _literal_words(text[at:], literal)
    return f"invalid character {_shown(text[at])} looking for beginning of value"


_WORDS = {
    "Expecting property name": "looking for beginning of object key string",
    "Expecting ':'": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character": "in string literal",
}


def _shown(char: str) -> str:
    return {"'": r"'\''", '"': "'\"'"}.get(char) or repr(char)


def _innermost(text: str) -> str:
    """The bracket that is still open at the end of a text which is right so far."""
    opened: list[str] = []
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        if found[0] in ("[", "{"):
            opened.append(found[0])
        elif found[0] in ("]", "}"):
            opened.pop()
    return opened[-1] if opened else ""


def _literal_words(text: str, literal: str) -> str:
    for index, wanted in enumerate(literal):
        found = text[index : index + 1] or " "  # Go's decoder reads a blank behind the end
        if found != wanted:
            return f"invalid character {_shown(found)} in literal {literal} (expecting {wanted!r})"
    raise AssertionError("the literal is right")


def _clean(value: Any, path: str, duplicates: list[str], numbers: bool, depth: int = 0) -> Any:
    """Name duplicates; whole floats become integers and too large integers floats, as in Go."""
    if depth > MAX_DEPTH:
        raise ValueError("exceeded max depth")
    if isinstance(value, dict):
        if isinstance(value, _Duplicates):
            return _clean_pairs(value, path, duplicates, numbers, depth)
        for key, entry in value.items():
            if isinstance(entry, dict | list) or (numbers and isinstance(entry, float | int)):
                value[key] = _clean(entry, f"{path}.{key}", duplicates, numbers, depth + 1)
        return value
    if isinstance(value, list):
        for index, entry in enumerate(value):
            if isinstance(entry, dict | list) or (numbers and isinstance(entry, float | int)):
                value[index] = _clean(entry, f"{path}[{index}]", duplicates, numbers, depth + 1)
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**300 else float("inf" if value > 0 else "-inf")
    return value


def _clean_pairs(value: _Duplicates, path: str, duplicates: list[str], numbers: bool, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, entry in value.pairs:
        at = f"{path}.{key}"
        if key in found:
            duplicates.append(f'duplicate field "{at.lstrip(".")}"')
        found[key] = _clean(entry, at, duplicates, numbers, depth + 1)
    return found


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """YAML, of which JSON is a part: most clients that say YAML send JSON."""
    if body.lstrip()[:1] == b"{":
        try:
            value, duplicates = parse_json(body)
            if not duplicates:
                return value, []
        except ValueError:
            pass
    import yaml

    from trainwright.embedded.apiserver.http import yamldocument

    try:
        depth = 0
        for count, event in enumerate(yaml.parse(body, Loader=yamldocument.loader())):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("yaml: aliases are not supported")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > MAX_EVENTS:
                raise ValueError("yaml: exceeded max depth" if depth > MAX_DEPTH else "yaml: document too large")
        value, duplicates = yamldocument.first(body)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        # Go counts a scanner's lines from one and a parser's from zero, and leaves out line zero.
        line = 0 if mark is None else mark.line + isinstance(error, yaml.scanner.ScannerError)
        where = f"line {line}: " if line else ""
        raise ValueError(f"yaml: {where}{getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise ValueError("yaml: exceeded max depth") from None
    return _clean(_jsonable(value), "", [], True), duplicates


def _jsonable(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("exceeded max depth")
    if isinstance(value, dict):
        return {key: _jsonable(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list):
        return [_jsonable(entry, depth + 1) for entry in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"yaml: values of type {type(value).__name__} are not supported")


def json_kind(value: object) -> str:
    """What Go's decoder calls a JSON value that it cannot take."""
    return {list: "array", dict: "object", str: "string", bool: "bool"}.get(type(value), "number")


def too_large() -> StatusError:
    return StatusError(413, f"Request entity too large: limit is {MAX_BODY}")


def unsupported_body(accepted: str) -> StatusError:
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, text)
