"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) on plain JSON.

In: a document and a patch. Out: a new document; the inputs are never changed, and what a patch leaves alone is
shared. A patch that does not apply raises `PatchError` with the words clients of Kubernetes know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class PatchError(ValueError):
    """A patch that is malformed or does not apply to this document."""


class PatchTestFailed(PatchError):
    """A `test` operation whose value differs: a precondition of the client's own does not hold."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects merge key by key, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Any, operations: Any) -> Any:
    """RFC 6902: the operations in order, all or nothing."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation of a JSON patch is an object")
        apply = _OPERATIONS.get(operation.get("op", ""))
        if apply is None:
            raise PatchError(f"Unexpected kind: {operation.get('op', 'unknown')}")
        document = apply(document, operation)
    return document


def _pointer(operation: dict[str, Any], name: str) -> list[str]:
    text = operation.get(name)
    if not isinstance(text, str):
        missing = "operation missing path field" if name == "path" else "operation, missing from field"
        raise PatchError(f"{missing}: missing value")
    if text == "":
        return []
    if not text.startswith("/"):
        raise PatchError(f"{operation['op']} operation does not apply: doc is missing path: {text}: missing value")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError("operation, missing value field: missing value")
    return operation["value"]


def _index(key: str, length: int, *, kind: str) -> int:
    if key != "0" and (not key.isascii() or not key.isdigit() or key.startswith("0")):
        raise PatchError(f"value was not a proper array index: '{key}'")
    index = int(key)
    if index >= length + (kind == "add"):
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index


class _Missing(Exception):
    """The path leads nowhere; each operation says so in its own words."""


def _lookup(document: Any, pointer: list[str]) -> Any:
    for key in pointer:
        if isinstance(document, dict):
            if key not in document:
                raise _Missing
            document = document[key]
        elif isinstance(document, list):
            document = document[_index(key, len(document), kind="get")]
        else:
            raise _Missing
    return document


def _edit(document: Any, pointer: list[str], change: Callable[[Any, str], Any]) -> Any:
    """A copy of the document along the path, with `change(parent, last key)` in place of the parent."""
    key, *rest = pointer
    if not rest:
        if not isinstance(document, dict | list):
            raise _Missing
        return change(document, key)
    if isinstance(document, dict):
        if key not in document:
            raise _Missing
        return {**document, key: _edit(document[key], rest, change)}
    if isinstance(document, list):
        index = _index(key, len(document), kind="get")
        return [*document[:index], _edit(document[index], rest, change), *document[index + 1 :]]
    raise _Missing


def _put(value: Any) -> Callable[[Any, str], Any]:
    def change(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, key: value}
        index = len(parent) if key == "-" else _index(key, len(parent), kind="add")
        return [*parent[:index], value, *parent[index:]]

    return change


def _drop(parent: Any, key: str) -> Any:
    if isinstance(parent, dict):
        if key not in parent:
            raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
        return {name: value for name, value in parent.items() if name != key}
    index = _index(key, len(parent), kind="remove")
    return [*parent[:index], *parent[index + 1 :]]


def _add_at(document: Any, operation: dict[str, Any], value: Any, *, missing: str) -> Any:
    pointer = _pointer(operation, "path")
    if not pointer:
        return value
    try:
        return _edit(document, pointer, _put(value))
    except _Missing:
        raise PatchError(missing) from None


def _add(document: Any, operation: dict[str, Any]) -> Any:
    path = operation.get("path")
    missing = f'add operation does not apply: doc is missing path: "{path}": missing value'
    return _add_at(document, operation, _value(operation), missing=missing)


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    pointer, path = _pointer(operation, "path"), operation["path"]
    missing = f'remove operation does not apply: doc is missing path: "{path}": missing value'
    if not pointer:
        raise PatchError(missing)
    try:
        return _edit(document, pointer, _drop)
    except _Missing:
        raise PatchError(missing) from None
    except PatchError as error:
        raise PatchError(f"error in remove for path: '{path}': {error}") from None


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    pointer, path, value = _pointer(operation, "path"), operation["path"], _value(operation)
    if not pointer:
        return value
    try:
        _lookup(document, pointer[:-1])
    except _Missing:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value") from None

    def change(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            if key not in parent:
                raise _Missing
            return {**parent, key: value}
        index = _index(key, len(parent), kind="get")
        return [*parent[:index], value, *parent[index + 1 :]]

    try:
        return _edit(document, pointer, change)
    except (_Missing, PatchError):
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from None


def _from(document: Any, operation: dict[str, Any]) -> tuple[list[str], Any]:
    pointer = _pointer(operation, "from")
    try:
        return pointer, _lookup(document, pointer)
    except _Missing:
        kind, path = operation["op"], operation["from"]
        raise PatchError(f"{kind} operation does not apply: doc is missing from path: {path}: missing value") from None


def _move(document: Any, operation: dict[str, Any]) -> Any:
    pointer, value = _from(document, operation)
    target = _pointer(operation, "path")
    if target[: len(pointer)] == pointer and len(target) > len(pointer):
        raise PatchError(f"move operation does not apply: {operation['path']} lies inside {operation['from']}")
    if not pointer:
        return document
    rest = _edit(document, pointer, _drop)
    missing = f"move operation does not apply: doc is missing destination path: {operation['path']}: missing value"
    return _add_at(rest, operation, value, missing=missing)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    _, value = _from(document, operation)
    missing = f"copy operation does not apply: doc is missing destination path: {operation.get('path')}: missing value"
    return _add_at(document, operation, value, missing=missing)


def _test(document: Any, operation: dict[str, Any]) -> Any:
    pointer, path = _pointer(operation, "path"), operation["path"]
    expected = operation.get("value")
    try:
        actual = _lookup(document, pointer)
    except _Missing:
        if expected is None and pointer:
            return document
        raise PatchTestFailed(f"testing value {path} failed: test failed") from None
    except PatchError as error:
        raise PatchTestFailed(f"error in test for path: '{path}': {error}") from None
    if not _same(actual, expected):
        raise PatchTestFailed(f"testing value {path} failed: test failed")
    return document


def _same(left: Any, right: Any) -> bool:
    """JSON equality: numbers by value, but a boolean is no number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
