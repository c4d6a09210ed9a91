"""Request bodies: bytes to JSON values, with what strict decoding wants to know.

In: the body and its content type. Out: the value and the duplicate fields it had. Accepted: JSON, YAML and, for built-
in kinds, protobuf.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .errors import StatusError, bad_request

MAX_BODY = 3 * 2**20
_FRACTION = re.compile(rb"[0-9](?:\.[0-9]|[eE])|[0-9]{19}")  # numbers that need a second look
_LITERALS = frozenset({"NaN", "Infinity", "-Infinity"})
MAX_DEPTH = 500
MAX_EVENTS = 400_000


class _Duplicates(dict[str, Any]):
    """An object that had a key twice; `keys_twice` in order of appearance."""

    __slots__ = ("keys_twice",)
    keys_twice: list[str]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked = _Duplicates(found)
    seen: set[str] = set()
    marked.keys_twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    return marked


def _constant(text: str) -> NoReturn:
    raise ValueError(f"invalid character '{text[0]}' looking for beginning of value")


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """The value and the paths of duplicate fields. Raises ValueError in words close to Go's."""
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
        if index >= len(text):
            return "unexpected end of JSON input"
        if text[index] != wanted:
            return f"invalid character {_shown(text[index])} in literal {literal} (expecting {wanted!r})"
    raise AssertionError("the literal is right")


def _clean(value: Any, path: str, duplicates: list[str], numbers: bool, depth: int = 0) -> Any:
    """Name duplicates; whole floats become integers and too large integers floats, as in Go."""
    if depth > MAX_DEPTH:
        raise ValueError("exceeded max depth")
    if isinstance(value, dict):
        if isinstance(value, _Duplicates):
            duplicates += [f"{path}.{key}".lstrip(".") for key in value.keys_twice]
            value = dict(value)
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


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """YAML, of which JSON is a part: most clients that say YAML send JSON."""
    if body.lstrip()[:1] == b"{":
        try:
            return parse_json(body)
        except ValueError:
            pass
    import yaml

    try:
        depth = 0
        for count, event in enumerate(yaml.parse(body, Loader=_loader(yaml))):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("yaml: aliases are not supported")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > MAX_EVENTS:
                raise ValueError("yaml: exceeded max depth" if depth > MAX_DEPTH else "yaml: document too large")
        value = yaml.load(body, Loader=_loader(yaml))  # noqa: S506  the loader is a safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"yaml: {where}{getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise ValueError("yaml: exceeded max depth") from None
    duplicates: list[str] = []
    return _clean(_jsonable(value), "", duplicates, True), duplicates


_LOADER: Any = None


def _loader(yaml: Any) -> Any:
    """A safe loader without dates: a timestamp stays the text it is."""
    global _LOADER
    if _LOADER is None:
        base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        resolvers = {
            first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
            for first, pairs in base.yaml_implicit_resolvers.items()
        }
        _LOADER = type("TextDatesLoader", (base,), {"yaml_implicit_resolvers": resolvers})
    return _LOADER


def _jsonable(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("exceeded max depth")
    if isinstance(value, dict):
        return {_key(key): _jsonable(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list):
        return [_jsonable(entry, depth + 1) for entry in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"yaml: values of type {type(value).__name__} are not supported")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    return str(key)


def unsupported_body(accepted: str) -> StatusError:
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, text)


def require_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct"
        )
    return value
