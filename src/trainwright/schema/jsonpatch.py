"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as kube-apiserver applies them.

In: a document and a patch. Out: a new document, which may share parts with both; the inputs are never changed. A patch
that does not apply raises `PatchError`, in words close to those of evanphx/json-patch, which kube-apiserver uses. Where
that library leaves the RFCs, so do we: an absent member reads as null, `replace` adds a member that is absent, negative
indexes count from the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from trainwright.schema.correlation import identical
from trainwright.schema.gotext import quote
from trainwright.schema.jsonobject import Json

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""How much all copies of one patch may add, as JSON: the limit of kube-apiserver. Each copy can double the document, so
that without a limit a request of one kilobyte fills any memory."""


class PatchError(ValueError):
    """A patch that is malformed or does not apply to this document."""


class PatchTestFailed(PatchError):
    """A `test` operation found another value: a precondition of the client does not hold."""


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
    """kube-apiserver drops null members of objects inside lists too, but not in a list that replaces an object."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


def json_patch(document: Any, operations: Any) -> Any:
    """RFC 6902: the operations in order, all or nothing."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    patching = _Patching(document)
    try:
        for operation in operations:
            patching.apply(operation)
    except RecursionError:
        raise PatchError("the patch or the document is nested too deeply") from None
    return patching.document


class _Missing(Exception):
    """A path leads nowhere; each operation has its own words for that."""


class _Patching:
    """One run of a patch. Every object and list on the way to a change is copied once, and then changed in place."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._own: dict[int, Any] = {}  # our copies by identity, kept here so that no identity is used twice
        self._copied_bytes = 0

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise PatchError("an operation of a JSON patch is an object")
        apply = _OPERATIONS.get(operation.get("op") or "")
        if apply is None:
            raise PatchError(f"Unexpected kind: {operation.get('op', 'unknown')}")
        apply(self, operation)

    def add(self, operation: Json) -> None:
        path = _text(operation, "path")
        self._add(
            path,
            operation.get("value"),
            missing=f'add operation does not apply: doc is missing path: "{path}"',
            failed=f"error in add for path: '{path}'",
        )

    def remove(self, operation: Json) -> None:
        path = _text(operation, "path")
        try:
            _remove(*self._changeable(path))
        except _Missing:
            raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": missing value') from None
        except PatchError as error:
            raise PatchError(f"error in remove for path: '{path}': {error}") from None

    def replace(self, operation: Json) -> None:
        path, value = _text(operation, "path"), operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array")
            self.document = value
            return
        try:
            _set(*self._changeable(path), value)
        except _Missing:
            raise PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value") from None
        except PatchError:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value") from None

    def move(self, operation: Json) -> None:
        source, path = _text(operation, "from"), _text(operation, "path")
        try:
            container, key = self._changeable(source)
        except _Missing:
            raise PatchError(
                f"move operation does not apply: doc is missing from path: {source}: missing value"
            ) from None
        try:
            value = _get(container, key)
            _remove(container, key)
        except PatchError as error:
            raise PatchError(f"error in move for path: '{key}': {error}") from None
        self._add(
            path,
            value,
            missing=f"move operation does not apply: doc is missing destination path: {path}",
            failed=f"error in move for path: '{path}'",
        )

    def copy(self, operation: Json) -> None:
        source, path = _text(operation, "from"), _text(operation, "path")
        try:
            value = _get(*self._find(source))
        except _Missing:
            raise PatchError(
                f"copy operation does not apply: doc is missing from path: {source}: missing value"
            ) from None
        except PatchError as error:
            raise PatchError(f"error in copy for from: '{source}': {error}") from None
        self._copied_bytes += len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchError(f"the copies of this patch add more than {MAX_COPIED_BYTES} bytes to the document")
        self._add(
            path,
            _copied(value),
            missing=f"copy operation does not apply: doc is missing destination path: {path}",
            failed="error while adding value during copy",
        )

    def test(self, operation: Json) -> None:
        path, expected = _text(operation, "path"), operation.get("value")
        try:
            actual = _get(*self._find(path)) if path else self.document
        except _Missing:
            raise PatchError(f"test operation does not apply: is missing path: {path}: missing value") from None
        except PatchError as error:
            raise PatchError(f"error in test for path: '{path}': {error}") from None
        if not identical(actual, expected):
            raise PatchTestFailed(f"testing value {path} failed: test failed")

    def _find(self, pointer: str) -> tuple[Any, str]:
        """The object or list that holds the target, and the target's key in it."""
        *way, last = _keys(pointer)
        container = self.document
        for key in way:
            container = _step(container, key)
        return _container(container), last

    def _changeable(self, pointer: str) -> tuple[Any, str]:
        """Like `_find`, but the holder and everything above it is ours."""
        *way, last = _keys(pointer)
        container = self.document = self._owned(self.document)
        for key in way:
            child = self._owned(_step(container, key))
            _set(container, key, child)
            container = child
        return container, last

    def _owned(self, value: Any) -> Any:
        container = _container(value)
        if id(container) not in self._own:
            container = container.copy()
            self._own[id(container)] = container
        return container

    def _add(self, path: str, value: Any, *, missing: str, failed: str) -> None:
        try:
            _add(*self._changeable(path), value)
        except _Missing:
            raise PatchError(f"{missing}: missing value") from None
        except PatchError as error:
            raise PatchError(f"{failed}: {error}") from None


_OPERATIONS: dict[str, Callable[[_Patching, Json], None]] = {
    "add": _Patching.add,
    "remove": _Patching.remove,
    "replace": _Patching.replace,
    "move": _Patching.move,
    "copy": _Patching.copy,
    "test": _Patching.test,
}


def _text(operation: Json, name: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        missing = "operation missing path field" if name == "path" else "operation, missing from field"
        raise PatchError(f"{missing}: missing value")
    return text


def _keys(pointer: str) -> list[str]:
    keys = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    if not keys:
        raise _Missing
    return keys


def _container(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise _Missing
    return value


def _step(container: Any, key: str) -> Any:
    try:
        return _get(_container(container), key)
    except PatchError:
        raise _Missing from None


def _get(container: Any, key: str) -> Any:
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container))]


def _set(container: Any, key: str, value: Any) -> None:
    container[key if isinstance(container, dict) else _index(key, len(container))] = value


def _add(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            _number(key)
        except PatchError as error:
            raise PatchError(f"value was not a proper array index: '{key}': {error}") from None
        container.insert(_index(key, len(container) + 1), value)


def _remove(container: Any, key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
        del container[key]
    else:
        del container[_index(key, len(container))]


def _index(key: str, length: int) -> int:
    """The index that a key means in a list of this length; negative ones count from the end."""
    index = _number(key)
    if not -length <= index < length:
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length if index < 0 else index


def _number(key: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", key, re.ASCII):
        raise PatchError(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    if len(key) > 19:
        raise PatchError(f"strconv.Atoi: parsing {quote(key)}: value out of range")
    return int(key)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
