"""`metadata` of any object: what the server fills in, what a client may not change, and the rules all kinds share."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Callable
from typing import Any

from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import quote
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults, label_key_faults, label_value_faults

ANNOTATIONS_LIMIT = 256 * 1024
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so no words
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
SYSTEM_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink")
IMMUTABLE = "field is immutable"
NameFaults = Callable[[str], list[str]]


def generated_name(prefix: str) -> str:
    return prefix[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))


def fill_system_fields(metadata: Json, now: str) -> None:
    """A new object: its own UID and birth, and no marks of an earlier life."""
    metadata["creationTimestamp"] = now
    metadata["uid"] = str(uuid.uuid4())
    for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)


def carry_over(metadata: Json, old: Json) -> None:
    """An update: what a client cannot change is taken from the stored object, what it leaves out is filled in."""
    if old.get("generation"):
        metadata["generation"] = old["generation"]
    else:
        metadata.pop("generation", None)
    metadata.setdefault("uid", old.get("uid"))
    if old.get("creationTimestamp"):
        metadata["creationTimestamp"] = old["creationTimestamp"]
    if old.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if old.get("deletionGracePeriodSeconds") is not None:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    metadata.pop("selfLink", None)


def validate(metadata: Json, *, namespaced: bool, name_faults: NameFaults) -> list[FieldError]:
    """The rules for a new object."""
    found: list[FieldError] = []
    prefix = metadata.get("generateName", "")
    if prefix:
        # The suffix to come makes a trailing dash legal.
        checked = prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        found += [field.invalid("metadata.generateName", prefix, text) for text in name_faults(checked)]
    name = metadata.get("name", "")
    if not name:
        found.append(field.required("metadata.name", "name or generateName is required"))
    else:
        found += [field.invalid("metadata.name", name, text) for text in name_faults(name)]
    return found + _common(metadata, namespaced)


def path_segment_faults(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def _common(metadata: Json, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    namespace = metadata.get("namespace", "")
    if namespaced:
        if not namespace:
            found.append(field.required("metadata.namespace"))
        else:
            found += [field.invalid("metadata.namespace", namespace, text) for text in dns1123_label_faults(namespace)]
    elif namespace:
        found.append(field.forbidden("metadata.namespace", "not allowed on this type"))
    generation = metadata.get("generation") or 0
    if generation < 0:
        found.append(field.invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    found += shared(metadata)
    found += finalizers(metadata)
    return found


def standard_finalizers(metadata: Json) -> list[FieldError]:
    """Built-in kinds take finalizers of the system, or such with a domain."""
    found: list[FieldError] = []
    for index, name in enumerate(metadata.get("finalizers") or ()):
        found += _domain_fault(name, f"metadata.finalizers[{index}]")
    return found


def finalizer_faults(names: list[str], at: str) -> list[FieldError]:
    """The names of finalizers outside of the metadata."""
    found: list[FieldError] = []
    for index, name in enumerate(names):
        found += [field.invalid(f"{at}[{index}]", name, text) for text in label_key_faults(name)]
        found += _domain_fault(name, f"{at}[{index}]")
    return found


def _domain_fault(name: str, at: str) -> list[FieldError]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [field.invalid(at, name, text)]


def shared(metadata: Json, at: str = "metadata") -> list[FieldError]:
    """Labels, annotations and owners: judged on creates and updates, and in pod templates."""
    found = label_faults(metadata.get("labels") or {}, f"{at}.labels")
    found += annotation_faults(metadata.get("annotations") or {}, f"{at}.annotations")
    found += _owners(metadata.get("ownerReferences") or [], f"{at}.ownerReferences")
    found += _managed_fields(metadata.get("managedFields") or [], f"{at}.managedFields")
    return found


def label_faults(found: Json, at: str) -> list[FieldError]:
    faults: list[FieldError] = []
    for key in found:
        faults += [field.invalid(at, key, text) for text in label_key_faults(key)]
        faults += [field.invalid(at, found[key], text) for text in label_value_faults(found[key])]
    return faults


def annotation_faults(found: Json, at: str) -> list[FieldError]:
    faults = [field.invalid(at, key, text) for key in found for text in label_key_faults(key.lower())]
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in found.items())
    if size > ANNOTATIONS_LIMIT:
        faults.append(field.too_long(at, ANNOTATIONS_LIMIT))
    return faults


def _owners(references: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    first = ""
    for reference in references:
        api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
        if not api_version.rpartition("/")[2]:
            found.append(field.invalid(f"{at}.apiVersion", api_version, "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                found.append(field.invalid(f"{at}.{name}", reference.get(name, ""), "must not be empty"))
        if (api_version, kind) == ("v1", "Event"):
            found.append(field.invalid(at, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.get("controller"):
            current = f"{kind}/{reference.get('name', '')}"
            if first:
                text = 'Only one reference can have Controller set to true. Found "true" in references for '
                listed = json.dumps([_in_order(entry) for entry in references], separators=(",", ":"))
                found.append(field.invalid(at, field.OMITTED, f"{listed}: {text}{first} and {current}"))
            else:
                first = current
    return found


def drop_double_owners(metadata: Json, *, patched: bool = False) -> None:
    """The same reference twice counts once, with a warning."""
    references = metadata.get("ownerReferences") or []
    kept: list[Json] = []
    doubled: list[str] = []
    for reference in references:
        if reference in kept:
            doubled.append(str(reference.get("uid", "")))
        else:
            kept.append(reference)
    if doubled:
        metadata["ownerReferences"] = kept
        when = " after mutating admission happens" if patched else ""
        text = (
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+,"
            " and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        )
        warn([text + ", ".join(dict.fromkeys(doubled))])


def _in_order(reference: Json) -> Json:
    """An owner reference with its members in Go's order, as messages print it."""
    names = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return {name: reference[name] for name in names if name in reference}


def _managed_fields(entries: list[Any], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        if entry.get("operation") not in ("Apply", "Update"):
            found.append(
                field.invalid(f"{at}[{index}].operation", entry.get("operation", ""), "must be `Apply` or `Update`")
            )
        if entry.get("fieldsType") not in (None, "", "FieldsV1"):
            found.append(field.invalid(f"{at}[{index}].fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        found += manager_faults(entry.get("manager", ""), f"{at}[{index}].manager")
    return found


def manager_faults(manager: str, at: str) -> list[FieldError]:
    found = [field.too_long(at, 128)] if len(manager.encode()) > 128 else []
    for index, char in enumerate(manager):
        if not char.isprintable():
            text = f"invalid character {_go_rune(char)} (at position {index})"
            found.append(field.invalid(at, manager, text))
    return found


def _go_rune(char: str) -> str:
    return f"U+{ord(char):04X}"


def finalizers(metadata: Json) -> list[FieldError]:
    found: list[FieldError] = []
    names = metadata.get("finalizers") or []
    for name in names:
        found += [field.invalid("metadata.finalizers", name, text) for text in label_key_faults(name)]
    if "orphan" in names and "foregroundDeletion" in names:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(field.invalid("metadata.finalizers", names, text))
    return found


def validate_update(metadata: Json, old: Json, *, namespaced: bool, repeats: int = 1) -> list[FieldError]:
    """The rules for a change; the name was fixed when the object was made.

    The real server runs the rules of an update once for all kinds and once more in the kind's own validation, and some
    kinds run those of a create as well (`repeats`): texts are printed once, causes are not, and clients see them.
    """
    found: list[FieldError] = []
    name = metadata.get("name", "")
    found += [field.invalid("metadata.name", name, text) for text in path_segment_faults(name)]
    found += _common(metadata, namespaced)
    return found + 2 * _changes(metadata, old) + repeats * (shared(metadata) + finalizers(metadata))


def _changes(metadata: Json, old: Json) -> list[FieldError]:
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            listed = "[]string{" + ", ".join(quote(name) for name in extra) + "}"
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
            found.append(field.forbidden("metadata.finalizers", text))
    for member in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(member) != old.get(member):
            found.append(field.invalid(f"metadata.{member}", metadata.get(member), IMMUTABLE))
    return found + shared(metadata)
