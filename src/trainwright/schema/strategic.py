"""Strategic merge patch: objects merge key by key, lists merge by the key their schema declares.

In: an object, a patch, and a `MergeSchema` that tells which lists merge and by which key. Out: a new object, which
shares unpatched parts with the original; neither input is changed. Directives: `$patch: delete|replace`,
`$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`; null removes.

A merged list has Kubernetes' order: the patched items in the order of the patch, and between them the other items in
their own order. An item that is not patched comes before a patched one only if it did so in the original, so new items
come before the rest.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Protocol

from trainwright.schema.jsonobject import Json

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_FROM = "$deleteFromPrimitiveList/"


class StrategicMergeError(ValueError):
    """A patch that cannot be merged: a bad directive, or a list item without its merge key."""


class MergeField(NamedTuple):
    """How one field merges. `schema` is that of its value, or of its items if it is a list."""

    schema: MergeSchema
    merge: bool = False
    merge_key: str = ""


class MergeSchema(Protocol):
    """What strategic merge needs of a schema. Objects in unknown fields merge, everything else in them is replaced."""

    def merge_field(self, name: str) -> MergeField: ...


class _Untyped:
    """No schema: objects merge, lists are replaced."""

    def merge_field(self, name: str) -> MergeField:
        return _UNTYPED_FIELD


UNTYPED: MergeSchema = _Untyped()
_UNTYPED_FIELD = MergeField(UNTYPED)


def strategic_merge(original: Json, patch: Json, schema: MergeSchema) -> Json:
    """Merge `patch` into `original` by `schema`; raises `StrategicMergeError`."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None:
        raise StrategicMergeError(f"unknown patch type: {directive} in map: {patch}")
    result = _retained(original, patch)
    ordered = _merge_ordered_lists(result, patch, schema)
    for key, value in patch.items():
        if key in ordered or key in (_PATCH, _RETAIN_KEYS) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE_FROM):
            _delete_from(result, key.removeprefix(_DELETE_FROM), value)
        elif value is None:
            result.pop(key, None)
        else:
            _merge_value(result, key, value, schema)
    return result


def _merge_value(result: Json, key: str, value: Any, schema: MergeSchema) -> None:
    current = result.get(key)
    if isinstance(current, dict) and isinstance(value, dict):
        # An object deleted by a directive becomes an empty object, as in Kubernetes.
        result[key] = strategic_merge(current, value, schema.merge_field(key).schema)
    elif isinstance(current, list) and isinstance(value, list):
        field = schema.merge_field(key)
        result[key] = _merge_list(current, value, field, key) if field.merge else value
    else:
        kept = _without_directives(value)
        if kept is _DROPPED:
            result.pop(key, None)
        else:
            result[key] = kept


def _retained(original: Json, patch: Json) -> Json:
    if _RETAIN_KEYS not in patch:
        return dict(original)
    keys = patch[_RETAIN_KEYS]
    if not isinstance(keys, list):
        raise StrategicMergeError("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in keys:
            raise StrategicMergeError("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}


def _merge_ordered_lists(result: Json, patch: Json, schema: MergeSchema) -> set[str]:
    """Merge the lists that have a `$setElementOrder` and put them in that order. Returns their names."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        name = directive.removeprefix(_ORDER)
        if not isinstance(order, list):
            raise StrategicMergeError("invalid patch format of setElementOrder list")
        field = schema.merge_field(name)
        current, changes = result.get(name), patch.get(name)
        for items in (current, changes):
            if items is not None and not isinstance(items, list):
                raise StrategicMergeError(f"expected a list at {name!r}")
        _check_order(changes or [], order, field.merge_key, name)
        if changes is None and current is None:
            continue
        if not changes and not current:
            raise StrategicMergeError("no elements in any of the given slices")
        if changes is None:
            merged = current
        elif current is None:
            merged = _without_directives(changes)
        else:
            merged = _merge_list(current, changes, field, name) if field.merge else changes
        result[name] = _in_order(merged or [], order, current or [], field.merge_key)
        done.add(name)
    return done


def _check_order(changes: list[Any], order: list[Any], merge_key: str, name: str) -> None:
    if not changes or not order:
        return
    wanted = [_identity(item, merge_key) for item in changes if not (isinstance(item, dict) and _PATCH in item)]
    positions = iter(_identity(item, merge_key) for item in order)
    if not all(item in positions for item in wanted):
        raise StrategicMergeError(
            f"The order in patch list:\n{changes}\n doesn't match $setElementOrder list:\n{order}\n"
        )


def _delete_from(result: Json, name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise StrategicMergeError("invalid patch format of primitive list")
    current = result.get(name)
    if isinstance(current, list):
        result[name] = [item for item in current if item not in values]


def _merge_list(current: list[Any], changes: list[Any], field: MergeField, name: str) -> list[Any]:
    if any(isinstance(item, list) for item in (*current, *changes)):
        raise StrategicMergeError("lists of lists are not supported")
    if not any(isinstance(item, dict) for item in (*current, *changes)):
        merged = list({_identity(item, ""): item for item in (*current, *changes)}.values())
        return _in_order(merged, changes, current, "")
    merge_key = field.merge_key
    if not merge_key:
        raise StrategicMergeError(f"cannot merge lists without merge key for {name}")
    original, plain = _apply_item_directives(current, changes, merge_key)
    if plain is None:
        return original
    index = {_identity(item, merge_key): at for at, item in reversed(list(enumerate(original)))}
    merged = list(original)
    for item in plain:
        key = _identity(item, merge_key)
        if key in index:
            merged[index[key]] = strategic_merge(merged[index[key]], item, field.schema)
        else:
            index[key] = len(merged)
            merged.append(_without_nulls(item))
    return _in_order(merged, plain, original, merge_key)


def _apply_item_directives(
    current: list[Any], changes: list[Any], merge_key: str
) -> tuple[list[Any], list[Any] | None]:
    """The items to merge into and the items to merge, None if the patch replaces the list."""
    plain: list[Any] = []
    replace = False
    for item in changes:
        if not isinstance(item, dict):
            raise StrategicMergeError(f"expected a map, but received {item!r}")
        match item.get(_PATCH):
            case None:
                plain.append(item)
            case "delete":
                key = _identity(item, merge_key)
                current = [other for other in current if _identity(other, merge_key) != key]
            case "replace":
                replace = True
            case "merge":
                raise StrategicMergeError("merging lists cannot yet be specified in the patch")
            case other:
                raise StrategicMergeError(f"unknown patch type: {other} in map: {item}")
    return (plain, None) if replace else (current, plain)


def _identity(item: Any, merge_key: str) -> Any:
    value = item
    if merge_key and isinstance(item, dict):
        if merge_key not in item:
            raise StrategicMergeError(f"map: {item} does not contain declared merge key: {merge_key}")
        value = item[merge_key]
    if isinstance(value, dict | list):
        return ("json", json.dumps(value, sort_keys=True))
    # 1 and True are the same dictionary key in Python but two values in JSON.
    return (type(value).__name__, value) if isinstance(value, bool) else value


def _in_order(merged: list[Any], wanted: list[Any], original: list[Any], merge_key: str) -> list[Any]:
    """The items of `wanted` in its order, and between them the others by their place in `original`."""
    place: dict[Any, int] = {}
    for at, item in enumerate(wanted):
        place.setdefault(_identity(item, merge_key), at)
    was: dict[Any, int] = {}
    for at, item in enumerate(original):
        was.setdefault(_identity(item, merge_key), at)
    keyed = [(_identity(item, merge_key), item) for item in merged]
    patched = sorted((pair for pair in keyed if pair[0] in place), key=lambda pair: place[pair[0]])
    others = sorted((pair for pair in keyed if pair[0] not in place), key=lambda pair: was.get(pair[0], len(was)))
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(patched):
        before, after = was.get(others[left][0]), was.get(patched[right][0])
        if before is not None and after is not None and before < after:
            result.append(others[left][1])
            left += 1
        else:
            result.append(patched[right][1])
            right += 1
    result += [item for _, item in others[left:]]
    result += [item for _, item in patched[right:]]
    return result


_DROPPED: Any = object()


def _without_directives(value: Any) -> Any:
    """A patch value that becomes part of the object, without directives, which have nothing to act on."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DROPPED
        return {
            key: kept
            for key, item in value.items()
            if item is not None and not key.startswith((_PATCH, _RETAIN_KEYS, _ORDER, _DELETE_FROM))
            if (kept := _without_directives(item)) is not _DROPPED
        }
    if isinstance(value, list):
        return [kept for item in value if (kept := _without_directives(item)) is not _DROPPED]
    return value


def _without_nulls(item: Json) -> Json:
    kept: Json = _without_directives(item)
    return kept
