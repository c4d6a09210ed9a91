"""Creates and updates: from a decoded object to a stored one.

Every write of every client goes through `create` or `update` here, HTTP or not, so that ownership, admission,
validation and the rules of the kind hold for all. The order is kube-apiserver's: field ownership, mutating admission,
preparation by the kind, validation, validating admission, no-op check, store.

Invariant: between reading the head and writing it there is no await, unless a webhook is called; then the head is
compared again.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.admission.request import AdmissionRequest
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.fieldmanager.entries import same_but_times
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.operations import namespaces
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

RETRIES = 8


class Application(msgspec.Struct):
    """What is known of a server-side apply besides its object, once that was computed.

    The merged object is stored as it was written: empty maps, nulls in labels and fields that pruning drops vanish only
    when it is read. Until it is written in its settled form, no write leaves it as it is.
    """

    settled: bool = True


class Written(msgspec.Struct):
    """The object as stored, and whether it is new."""

    obj: Json
    created: bool


async def create(api: Api, served: Type, namespace: str, obj: Json, options: WriteOptions, user: User) -> Json:
    """Store a new object. `obj` is decoded and defaulted."""
    generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
    for attempt in range(RETRIES):
        fresh = copy.deepcopy(obj) if generated else obj
        if generated:
            fresh["metadata"]["name"] = metadata.generated_name(fresh["metadata"]["generateName"])
        try:
            return await _create_once(api, served, namespace, fresh, options, user)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            if not generated or attempt == RETRIES - 1:
                raise _not_unique(error) if obj["metadata"].get("generateName") else error from None
    raise AssertionError("unreachable")


async def _create_once(
    api: Api,
    served: Type,
    namespace: str,
    obj: Json,
    options: WriteOptions,
    user: User,
    *,
    applied: Application | None = None,
) -> Json:
    meta = obj["metadata"]
    now = api.now()
    if served.namespaced:
        meta["namespace"] = namespace
        namespaces.check_create(api, served, namespace, meta.get("name", ""))
    else:
        meta.pop("namespace", None)
    if applied is None and meta.get("resourceVersion") not in (None, "", "0"):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    meta.pop("resourceVersion", None)
    metadata.fill_system_fields(meta, now)
    key = Key(served.resource, meta.get("namespace", ""), meta.get("name", ""))
    metadata.drop_double_owners(meta)
    if applied is None:
        served.field_manager().update(None, obj, options.manager, now)
    call = AdmissionRequest(served, "CREATE", "", key, user, options)
    mutated = await api.admission.mutate(call, obj, None)
    if mutated is not None:
        obj = mutated
        meta = obj["metadata"]
    if served.strategy.tracks_generation:
        meta["generation"] = 1
    served.strategy.prepare_create(obj)
    faults = metadata.validate(meta, namespaced=served.namespaced, name_faults=served.strategy.name_faults)
    faults = served.strategy.check_create(obj, faults)
    if faults:
        raise errors.invalid(_group(served, obj), obj.get("kind", served.kind), meta.get("name", ""), faults)
    warn(served.strategy.warnings(obj, None))
    await api.admission.validate(call, obj, None)
    existing = api.state.head(key)
    if existing is not None:
        raise _exists(served, key, existing)
    if served.namespaced:
        namespaces.check_create(api, served, namespace, key.name)
    api.check_serving(served, key.name)
    if options.dry_run:
        served.strategy.on_read(obj)
        return obj
    await _store(api, served, key, obj, applied)
    served.strategy.on_read(obj)
    return obj


async def _store(api: Api, served: Type, key: Key, obj: Json, applied: Application | None) -> None:
    stored, future = api.state.put(key, api.to_storage(served, obj))
    if applied is None or applied.settled:
        api.unsettled.pop(key, None)
    else:
        api.unsettled[key] = stored.version
    await asyncio.shield(future)
    if served.from_storage is not None:  # what storage does not know is not answered either
        whole = served.whole_object(stored.data)
        obj.clear()
        obj.update(whole)


def _not_unique(error: StatusError) -> StatusError:
    error.message += ", the server was not able to generate a unique name for the object"
    error.details = {**(error.details or {}), "retryAfterSeconds": 1}
    error.retry_after = 1
    return error


def _group(served: Type, obj: Json) -> str:
    if served.custom:
        return str(obj.get("apiVersion", "")).rpartition("/")[0]
    return served.group if served.strategy.error_group is None else served.strategy.error_group


def _exists(served: Type, key: Key, existing: Stored) -> StatusError:
    found = errors.already_exists(served.group, served.plural, key.name)
    if existing.deleting:
        found.message = f"object is being deleted: {found.message}"
    return found


Compute = Callable[[Json | None], Json]
"""Given the stored object (a copy to change at will; None if there is none), the wanted one, decoded and defaulted."""


async def update(
    api: Api,
    served: Type,
    key: Key,
    compute: Compute,
    options: WriteOptions,
    user: User,
    *,
    subresource: str = "",
    applied: Application | None = None,
    precondition_uid: str = "",
    allow_create: bool = False,
    retry: bool = False,
) -> Written:
    """Change an object. With `retry`, a change that a webhook's wait made stale is computed anew."""
    for attempt in range(RETRIES):
        stored = api.state.head(key)
        if stored is None:
            if not (allow_create or served.strategy.create_on_update) or subresource:
                raise errors.not_found(served.group, served.plural, key.name)
            obj = compute(None)
            uid = precondition_uid or (obj["metadata"].get("uid", "") if applied is not None else "")
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise errors.conflict(served.group, served.plural, key.name, why)
            made = await _create_once(api, served, key.namespace, obj, options, user, applied=applied)
            return Written(made, True)
        if precondition_uid and precondition_uid != stored.uid:
            raise uid_mismatch(served, key, precondition_uid, stored.uid)
        try:
            return await _update_once(api, served, key, stored, compute, options, user, subresource, applied, retry)
        except _Stale:
            if not retry or attempt == RETRIES - 1:
                raise errors.conflict(served.group, served.plural, key.name, errors.MODIFIED) from None
    raise AssertionError("unreachable")


class Unchanged(Exception):
    """Raised by a `Compute`: the object is already as wanted, down to its owners."""


class _Stale(Exception):
    """The head moved while a webhook was asked."""


async def _update_once(
    api: Api,
    served: Type,
    key: Key,
    stored: Stored,
    compute: Compute,
    options: WriteOptions,
    user: User,
    subresource: str,
    applied: Application | None,
    retry: bool,
) -> Written:
    old = served.whole_object(stored.data)
    call = AdmissionRequest(served, "UPDATE", subresource, key, user, options)
    try:
        # An apply leaves what it is given alone; a patch or a controller's change works on a copy.
        obj = compute(served.whole_object(stored.data) if applied is None else old)
    except Unchanged:
        if not api.admission.concerned(call) and not _settles(api, served, stored):
            return Written(old, False)
        obj = served.whole_object(stored.data)
    meta = obj["metadata"]
    now = api.now()
    manager = served.field_manager(subresource)
    metadata.drop_double_owners(meta, patched=retry)
    if applied is None:
        manager.update(old, obj, options.manager, now)
    mutated = await api.admission.mutate(call, obj, old)
    if mutated is not None:
        obj = mutated
        meta = obj["metadata"]
    _check_version(served, key, meta, stored)
    prepare(served, obj, old, subresource)
    meta = obj["metadata"]  # a status update may have put the stored one in its place
    faults = metadata.validate_update(
        meta, old["metadata"], namespaced=served.namespaced, repeats=served.strategy.metadata_repeats
    )
    if subresource == "status":
        faults = served.strategy.check_status_update(obj, old, faults)
    else:
        faults = served.strategy.check_update(obj, old, faults)
    if faults:
        raise errors.invalid(_group(served, obj), obj.get("kind", served.kind), key.name, faults)
    if subresource != "status":
        warn(served.strategy.warnings(obj, old))
    settled = applied is None or applied.settled
    if settled and subresource != "scale" and _same_but_times(obj, old):
        _set(meta, "managedFields", old["metadata"].get("managedFields"))
    await api.admission.validate(call, obj, old)
    if api.state.head(key) is not stored:
        raise _Stale
    meta["resourceVersion"] = str(stored.version)
    if _finished(meta, old["metadata"]) and served.strategy.removable(obj):
        if not options.dry_run:
            # What goes, and what watchers see go, is the object as it was stored.
            _, future = api.state.delete(key, stored.decode())
            await asyncio.shield(future)
        return Written(obj, False)
    if options.dry_run or (settled and same(obj, old) and not _settles(api, served, stored)):
        return Written(obj, False)
    await _store(api, served, key, obj, applied)
    return Written(obj, False)


def _settles(api: Api, served: Type, stored: Stored) -> bool:
    """Whether a write that changes nothing is stored all the same, since storage and reads differ in words."""
    return api.unsettled.get(stored.key) == stored.version or served.strategy.settles(stored)


def _same_but_times(obj: Json, old: Json) -> bool:
    """Whether two objects differ at most in when their fields were last set."""
    owners = obj["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    return same_but_times(*owners) and same(_untracked(obj), _untracked(old))


def _untracked(obj: Json) -> Json:
    skipped = ("managedFields", "resourceVersion")
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name not in skipped}}


def _set(target: Json, name: str, value: object) -> None:
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value


def _check_version(served: Type, key: Key, meta: Json, stored: Stored) -> None:
    version = meta.get("resourceVersion") or "0"
    if not isinstance(version, str) or not version.isdigit():
        raise errors.bad_request(f'metadata.resourceVersion: Invalid value: "{version}": must be a whole number')
    if int(version) == 0:
        if not served.strategy.unconditional_update:
            fault = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(served.group, served.plural, key.name, [fault])
    elif int(version) != stored.version:
        raise errors.conflict(served.group, served.plural, key.name, errors.MODIFIED)


def prepare(served: Type, obj: Json, old: Json, subresource: str) -> None:
    """Metadata and the kind's own preparation; the generation grows with the content."""
    strategy = served.strategy
    meta, old_meta = obj["metadata"], old["metadata"]
    if old_meta.get("generation"):
        meta["generation"] = old_meta["generation"]
    else:
        meta.pop("generation", None)
    if subresource == "status":
        strategy.prepare_status_update(obj, old)
        meta = obj["metadata"]
    else:
        strategy.prepare_update(obj, old)
        if strategy.tracks_generation and not same(strategy.generation_content(obj), strategy.generation_content(old)):
            meta["generation"] = (old_meta.get("generation") or 0) + 1
    generation = meta.get("generation")
    metadata.carry_over(meta, old_meta)
    if generation:
        meta["generation"] = generation


def _finished(meta: Json, old: Json) -> bool:
    """The last finalizer of an object that was deleted has gone."""
    if meta.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return not old.get("deletionGracePeriodSeconds")


def uid_mismatch(served: Type, key: Key, wanted: str, found: str) -> StatusError:
    path = "/".join(part for part in ("/registry", served.group, served.plural, key.namespace, key.name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg:"
        f" Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return errors.conflict(served.group, served.plural, key.name, why)


async def bind(api: Api, served: Type, key: Key, compute: Compute, options: WriteOptions) -> Json:
    """A change that the server itself makes to fields no client may set, such as a pod's node."""
    stored = api.state.head(key)
    if stored is None:
        raise errors.not_found(served.group, served.plural, key.name)
    obj = compute(served.whole_object(stored.data))
    if not options.dry_run:
        _, future = api.state.put(key, api.to_storage(served, obj))
        await asyncio.shield(future)
    return obj
