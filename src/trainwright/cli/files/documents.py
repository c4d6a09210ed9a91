"""Reads Kubernetes objects from YAML or JSON files, with the line of each field.

In: file names, `-` for standard input. Out: `Document`s in the order they were read. Errors have one message with file
and line: broken YAML, a duplicate key, a value that JSON does not have, a document that is no Kubernetes object, input
made to exhaust resources (size, depth, aliases that multiply). Scalars are read as kubectl reads them: `yes` is true,
`0777` is octal, a date is a string.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from trainwright.cli.failure import Failure
from trainwright.schema.jsonobject import Json

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml: slower, same events
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_BYTES = 4 * 1024 * 1024
"""An API server accepts 3 MiB in one request, so no useful file is larger than a few of those."""
MAX_DEPTH = 100
MAX_NODES = 400_000
MAX_DIGITS = 400


class Place(NamedTuple):
    """The line of a YAML node, and its children by key or position."""

    line: int
    children: dict[Any, Place]


class Document(NamedTuple):
    """One object of a file."""

    file: str
    number: int
    """Its position in the file, from 1."""
    value: Json
    place: Place

    @property
    def kind(self) -> str:
        return str(self.value.get("kind", ""))

    @property
    def name(self) -> str:
        return str((self.value.get("metadata") or {}).get("name", ""))

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind

    def has(self, field: str) -> bool:
        """Whether the file has a field such as `spec.trainer.env[0].name`."""
        place = self.place
        for step in steps(field):
            if step not in place.children:
                return False
            place = place.children[step]
        return True

    def line(self, field: str) -> int:
        """The line of a field, or of the nearest enclosing field that the file has."""
        place = self.place
        for step in steps(field):
            child = place.children.get(step)
            if child is None:
                break
            place = child
        return place.line


_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def steps(field: str) -> Iterator[str | int]:
    """Splits `spec.env[0].x` into `spec`, `env`, 0, `x`. Text in brackets is a key that contains dots."""
    for bracketed, plain in _STEP.findall(field):
        if plain:
            yield plain
        else:
            yield int(bracketed) if bracketed.isdigit() else bracketed


def read(files: Sequence[str]) -> list[Document]:
    """Every object of every file. A file without an object is an error."""
    if not files:
        raise Failure("nothing to read: name a file with -f, or - for standard input", 2)
    if list(files).count("-") > 1:
        raise Failure("standard input (-) can be read only once", 2)
    documents = [document for file in files for document in _read_file(file)]
    if not documents:
        raise Failure(f"{', '.join(files)}: no object in it")
    return documents


def parse_file(file: str) -> Iterator[tuple[Any, Place]]:
    """Every document of a file as plain values."""
    shown = _shown(file)
    try:
        stream = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 - closed by the with below
        with stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Failure(f"{shown}: {error.strerror or error}", 2) from None
    if len(data) > MAX_BYTES:
        raise Failure(f"{shown}: larger than {MAX_BYTES >> 20} MiB; an API server would not take it")
    yield from parse(data, shown)


def _read_file(file: str) -> Iterator[Document]:
    number = 0
    for value, place in parse_file(file):
        if value is None:
            continue
        number += 1
        for item, at in _objects(value, place, _shown(file)):
            yield Document(_shown(file), number, item, at)


def _shown(file: str) -> str:
    return "standard input" if file == "-" else file


def _objects(value: Any, place: Place, file: str) -> Iterator[tuple[Json, Place]]:
    """The object itself, or the items of a List."""
    where = f"{file}:{place.line}"
    if not isinstance(value, dict):
        raise Failure(
            f"{where}: a Kubernetes object must be a mapping with apiVersion and kind, this is {_describe(value)}"
        )
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise Failure(f"{where}: the object has no {field}")
    if value["kind"] == "List" and value["apiVersion"] == "v1":
        at = place.children.get("items", place)
        for index, item in enumerate(value.get("items") or []):
            yield from _objects(item, at.children.get(index, at), file)
        return
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise Failure(f"{where}: metadata of {value['kind']} must be a mapping, this is {_describe(metadata)}")
    yield value, place


def parse(data: bytes, file: str) -> Iterator[tuple[Any, Place]]:
    """Each document of a YAML stream as JSON values, with the lines of its fields."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{file}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None
    try:
        builder = _Builder(file)
        for event in yaml.parse(text, Loader=_Loader):
            yield from builder.take(event)
    except yaml.YAMLError as error:
        raise Failure(_syntax(error, file)) from None


def _syntax(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    parts = [getattr(error, "context", None), getattr(error, "problem", None) or getattr(error, "reason", None)]
    return f"{where}: not valid YAML: {', '.join(part for part in parts if part) or error}"


class _Frame:
    """A mapping or list that is being built."""

    __slots__ = ("anchor", "children", "key", "key_line", "line", "merges", "value")

    def __init__(self, value: Any, line: int, anchor: str | None) -> None:
        self.value = value
        self.line = line
        self.anchor = anchor
        self.children: dict[Any, Place] = {}
        self.key: str | None = None
        self.key_line = line
        self.merges: list[Any] = []


class _Builder:
    """Turns parse events into values without recursion, so that deep nesting reaches our limit and not Python's."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, Place, int]] = {}
        self.nodes = 0

    def take(self, event: Any) -> Iterator[tuple[Any, Place]]:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            yield from self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._count(1, line)
            if len(self.stack) >= MAX_DEPTH:
                raise Failure(f"{self.file}:{line}: nested more than {MAX_DEPTH} levels deep")
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.stack.append(_Frame({} if mapping else [], line, event.anchor))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            frame = self.stack.pop()
            for merged in frame.merges:
                for key, value in merged.items():
                    frame.value.setdefault(key, value)
            place = Place(frame.line, frame.children)
            if frame.anchor:
                self.anchors[frame.anchor] = (frame.value, place, _size(frame.value))
            yield from self._add(frame.value, place, frame.line)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise Failure(f"{self.file}:{line}: alias *{event.anchor} names no anchor before it")
            value, place, size = self.anchors[event.anchor]
            self._count(size, line)
            yield from self._add(value, Place(line, place.children), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.anchors.clear()

    def _scalar(self, event: Any, line: int) -> Iterator[tuple[Any, Place]]:
        self._count(1, line)
        frame = self.stack[-1] if self.stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            merge = event.value == "<<" and event.implicit[0]
            key = "<<" if merge else _key(self._resolve(event, line))
            if key in frame.value and not merge:
                raise Failure(f"{self.file}:{line}: key {key!r} is given twice")
            frame.key, frame.key_line = key, line
            return
        value = self._resolve(event, line)
        place = Place(line, {})
        if event.anchor:
            self.anchors[event.anchor] = (value, place, 1)
        yield from self._add(value, place, line)

    def _add(self, value: Any, place: Place, line: int) -> Iterator[tuple[Any, Place]]:
        if not self.stack:
            yield value, place
            return
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            frame.children[len(frame.value)] = place
            frame.value.append(value)
            return
        if frame.key is None:
            raise Failure(f"{self.file}:{line}: a key must be a plain value, not {_describe(value)}")
        if frame.key == "<<":
            maps = value if isinstance(value, list) else [value]
            if not all(isinstance(item, dict) for item in maps):
                raise Failure(f"{self.file}:{line}: << takes mappings, this is {_describe(value)}")
            frame.merges += maps
            frame.children.update({k: p for k, p in place.children.items() if k not in frame.children})
        else:
            frame.children[frame.key] = Place(frame.key_line, place.children)
            frame.value[frame.key] = value
        frame.key = None

    def _count(self, nodes: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise Failure(f"{self.file}:{line}: more than {MAX_NODES} values once its aliases are written out")

    def _resolve(self, event: Any, line: int) -> Any:
        try:
            return _resolve(event.value, event.tag, plain=event.implicit[0])
        except ValueError as error:
            raise Failure(f"{self.file}:{line}: {error}") from None


_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UNHOLDABLE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}


def _resolve(text: str, tag: str | None, *, plain: bool) -> Any:
    if tag is not None and tag not in _TAGS and tag != "!":
        raise ValueError(f"tag {tag} has no meaning in a Kubernetes object")
    if not plain and (tag in (None, "!") or tag.endswith((":str", ":timestamp"))):
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] in "+-.0123456789":
        if _INTEGER.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise ValueError(f"a number of {len(text)} digits")
            return _integer(text)
        if _FLOAT.fullmatch(text) or _UNHOLDABLE.fullmatch(text):
            number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            if not isfinite(number):
                raise ValueError(f"{text:.40} is not a JSON value")
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-").replace("_", "")
    if digits[:2] in ("0b", "0x", "0o"):
        number = int(digits, 0)
    else:
        number = int(digits, 8) if digits.startswith("0") and len(digits) > 1 else int(digits)
    return -number if text.startswith("-") else number


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "empty" if value is None else f"{value!r:.40}"


def _size(value: Any) -> int:
    size, rest = 0, [value]
    while rest:
        item = rest.pop()
        size += 1
        if size > MAX_NODES:
            break
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list):
            rest += item
    return size
