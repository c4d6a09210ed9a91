"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) on plain JSON.

In: a document and a patch. Out: a new document; the inputs are never changed, and what a patch leaves alone is
shared. A patch that does not apply raises `PatchError` with the words clients of Kubernetes know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trainwright.schema.correlation import identical
from trainwright.schema.gotext import quote


class PatchError(ValueError):
    """A patch that is malformed or does not apply to this document."""


class PatchTestFailed(PatchError):
    """A `test` operation whose value differs: a precondition of the client's own does not hold."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects merge key by key, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch if isinstance(target, dict) else _without_nulls(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _without_nulls(value: Any) -> Any:
    """Inside lists too, the API server drops null members of objects (not where a list replaces an object); null
    items stay.
    """
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


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


def _text(operation: dict[str, Any], name: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        missing = "operation missing path field" if name == "path" else "operation, missing from field"
        raise PatchError(f"{missing}: missing value")
    return text


def _keys(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _number(key: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", key, re.ASCII):
        raise PatchError(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    return int(key)


def _index(key: str, length: int) -> int:
    """An index below `length`; as in the reference, negative ones count from the end."""
    index = _number(key)
    if not -length <= index < length:
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length if index < 0 else index


class _Missing(Exception):
    """The way to the parent ends; each operation says so in its own words."""


def _get(container: Any, key: str) -> Any:
    """A member or item. A member that is absent reads as null."""
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container))]


def _add(container: Any, key: str, value: Any) -> Any:
    if isinstance(container, dict):
        return {**container, key: value}
    if key == "-":
        return [*container, value]
    try:
        _number(key)
    except PatchError as error:
        raise PatchError(f"value was not a proper array index: '{key}': {error}") from None
    index = _index(key, len(container) + 1)
    return [*container[:index], value, *container[index:]]


def _set(container: Any, key: str, value: Any) -> Any:
    if isinstance(container, dict):
        return {**container, key: value}
    index = _index(key, len(container))
    return [*container[:index], value, *container[index + 1 :]]


def _remove(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
        return {name: value for name, value in container.items() if name != key}
    index = _index(key, len(container))
    return [*container[:index], *container[index + 1 :]]


def _edit(document: Any, pointer: str, change: Callable[[Any, str], Any]) -> Any:
    """A copy of the document along the way, with `change(parent, last key)` in place of the parent."""
    keys = _keys(pointer)
    if not keys:
        raise _Missing
    return _edit_at(document, keys, change)


def _edit_at(node: Any, keys: list[str], change: Callable[[Any, str], Any]) -> Any:
    if not isinstance(node, dict | list):
        raise _Missing
    key, *rest = keys
    if not rest:
        return change(node, key)
    try:
        child = _get(node, key)
    except PatchError:
        raise _Missing from None
    return _set(node, key, _edit_at(child, rest, change))


def _read(document: Any, pointer: str) -> tuple[Any, str]:
    """The parent and the last key."""
    keys = _keys(pointer)
    if not keys:
        raise _Missing
    for key in keys[:-1]:
        if not isinstance(document, dict | list):
            raise _Missing
        try:
            document = _get(document, key)
        except PatchError:
            raise _Missing from None
    if not isinstance(document, dict | list):
        raise _Missing
    return document, keys[-1]


def _changed(document: Any, pointer: str, change: Callable[[Any, str], Any], *, missing: str, failed: str) -> Any:
    try:
        return _edit(document, pointer, change)
    except _Missing:
        raise PatchError(f"{missing}: missing value") from None
    except PatchError as error:
        raise PatchError(f"{failed}: {error}") from None


def _op_add(document: Any, operation: dict[str, Any]) -> Any:
    path, value = _text(operation, "path"), operation.get("value")
    return _changed(
        document,
        path,
        lambda container, key: _add(container, key, value),
        missing=f'add operation does not apply: doc is missing path: "{path}"',
        failed=f"error in add for path: '{path}'",
    )


def _op_remove(document: Any, operation: dict[str, Any]) -> Any:
    path = _text(operation, "path")
    return _changed(
        document,
        path,
        _remove,
        missing=f'remove operation does not apply: doc is missing path: "{path}"',
        failed=f"error in remove for path: '{path}'",
    )


def _op_replace(document: Any, operation: dict[str, Any]) -> Any:
    """Of a member that is absent the API server makes an addition; of an item that is absent, an error."""
    path, value = _text(operation, "path"), operation.get("value")
    if path == "":
        return value
    try:
        return _edit(document, path, lambda container, key: _set(container, key, value))
    except _Missing:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value") from None
    except PatchError:
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from None


def _op_move(document: Any, operation: dict[str, Any]) -> Any:
    source, path = _text(operation, "from"), _text(operation, "path")
    missing = f"move operation does not apply: doc is missing from path: {source}"
    try:
        container, key = _read(document, source)
    except _Missing:
        raise PatchError(f"{missing}: missing value") from None
    try:
        value = _get(container, key)
    except PatchError as error:
        raise PatchError(f"error in move for path: '{key}': {error}") from None
    document = _changed(document, source, _remove, missing=missing, failed=f"error in move for path: '{key}'")
    return _changed(
        document,
        path,
        lambda container, key: _add(container, key, value),
        missing=f"move operation does not apply: doc is missing destination path: {path}",
        failed=f"error in move for path: '{path}'",
    )


def _op_copy(document: Any, operation: dict[str, Any]) -> Any:
    source, path = _text(operation, "from"), _text(operation, "path")
    try:
        value = _get(*_read(document, source))
    except _Missing:
        raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: missing value") from None
    except PatchError as error:
        raise PatchError(f"error in copy for from: '{source}': {error}") from None
    return _changed(
        document,
        path,
        lambda container, key: _add(container, key, value),
        missing=f"copy operation does not apply: doc is missing destination path: {path}",
        failed="error while adding value during copy",
    )


def _op_test(document: Any, operation: dict[str, Any]) -> Any:
    path, expected = _text(operation, "path"), operation.get("value")
    if path == "":
        actual = document
    else:
        try:
            actual = _get(*_read(document, path))
        except _Missing:
            raise PatchError(f"test operation does not apply: is missing path: {path}: missing value") from None
        except PatchError as error:
            raise PatchError(f"error in test for path: '{path}': {error}") from None
    if not identical(actual, expected):
        raise PatchTestFailed(f"testing value {path} failed: test failed")
    return document


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "move": _op_move,
    "copy": _op_copy,
    "test": _op_test,
}
