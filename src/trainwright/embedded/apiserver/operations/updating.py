"""Updates, patches and applies: from the stored object to the wanted one, and back to the store.

Every change of every client goes through here, HTTP or not, so that ownership, admission, validation and the rules of
the kind hold for all. The order is kube-apiserver's: the wanted object, field ownership, mutating admission,
preparation by the kind, validation, validating admission, no-op check, store.

Invariant: between reading the head and writing it there is no await, unless a webhook is called; then the head is
compared again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.admission.request import AdmissionRequest
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.fieldmanager.entries import same_but_times
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.operations.creating import create_once
from trainwright.embedded.apiserver.operations.storing import invalid, remove, store
from trainwright.embedded.apiserver.operations.writes import Wanted, Write
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

ATTEMPTS = 8


class Written(msgspec.Struct, frozen=True):
    """The object as stored, and whether it is new."""

    obj: Json
    created: bool


class _Stale(Exception):
    """The head moved while a webhook was asked."""


async def update(api: Api, write: Write) -> Written:
    """Change an object, or make it if it is missing and the write may."""
    for _ in range(ATTEMPTS if write.recomputes else 1):
        stored = api.state.head(write.key)
        if stored is None:
            return await _create_missing(api, write)
        if write.uid and write.uid != stored.uid:
            raise _uid_mismatch(write, stored)
        try:
            return Written(await _update_once(api, write, stored), created=False)
        except _Stale:
            continue
    raise _conflict(write, errors.MODIFIED)


async def _create_missing(api: Api, write: Write) -> Written:
    served = write.served
    if write.subresource or not (write.creates or served.strategy.create_on_update):
        raise errors.not_found(served.group, served.plural, write.key.name)
    wanted = write.compute(None)
    assert wanted is not None, "there is nothing that could be as wanted already"
    uid = write.uid or (wanted.obj["metadata"].get("uid", "") if write.applies else "")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise _conflict(write, why)
    return Written(await create_once(api, write, wanted), created=True)


async def _update_once(api: Api, write: Write, stored: Stored) -> Json:
    """The object after the change, which was made unless nothing had to be."""
    served = write.served
    old = served.whole_object(stored.data)
    request = AdmissionRequest(served, "UPDATE", write.subresource, write.key, write.user, write.options)
    wanted = write.compute(old if write.applies else served.whole_object(stored.data))
    if wanted is None:
        if not api.admission.concerned(request) and not _must_rewrite(api, served, stored):
            return old
        wanted = Wanted(served.whole_object(stored.data))
    obj = wanted.obj
    _note_owners(api, write, obj, old)
    obj = await api.admission.mutate(request, obj, old) or obj
    _check_version(write, obj["metadata"], stored)
    prepare(served, obj, old, write.subresource)
    api.check_escalation(write.user, served, obj, old)
    _validate(write, obj, old)
    if wanted.canonical and write.subresource != "scale" and _differ_in_times_only(obj, old):
        _restore(obj["metadata"], old["metadata"], "managedFields")
    await api.admission.validate(request, obj, old)
    if api.state.head(write.key) is not stored:
        raise _Stale
    obj["metadata"]["resourceVersion"] = str(stored.version)
    await _store_change(api, write, stored, Wanted(obj, wanted.canonical), old)
    return obj


def _note_owners(api: Api, write: Write, obj: Json, old: Json) -> None:
    metadata.drop_double_owners(obj["metadata"], patched=write.method in ("patch", "apply"))
    if not write.applies:
        write.served.field_manager(write.subresource).update(old, obj, write.options.manager, api.now())


def _check_version(write: Write, meta: Json, stored: Stored) -> None:
    version = meta.get("resourceVersion") or "0"
    if not isinstance(version, str) or not version.isdigit() or len(version) > 20:
        raise errors.bad_request(f'metadata.resourceVersion: Invalid value: "{version}": must be a whole number')
    if int(version) == 0:
        if not write.served.strategy.unconditional_update:
            fault = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(write.served.group, write.served.plural, write.key.name, [fault])
    elif int(version) != stored.version:
        raise _conflict(write, errors.MODIFIED)


def prepare(served: Type, obj: Json, old: Json, subresource: str) -> None:
    """Metadata and the kind's own preparation; the generation grows with the content."""
    strategy = served.strategy
    _restore(obj["metadata"], old["metadata"], "generation")
    if subresource == "status":
        strategy.prepare_status_update(obj, old)
    else:
        strategy.prepare_update(obj, old)
        if strategy.tracks_generation and not same(strategy.generation_content(obj), strategy.generation_content(old)):
            obj["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1
    meta = obj["metadata"]  # a status update may have put the stored one in its place
    generation = meta.get("generation")
    metadata.carry_over(meta, old["metadata"])
    if generation:
        meta["generation"] = generation


def _validate(write: Write, obj: Json, old: Json) -> None:
    served, strategy = write.served, write.served.strategy
    faults = metadata.validate_update(
        obj["metadata"], old["metadata"], namespaced=served.namespaced, repeats=strategy.metadata_repeats
    )
    check = strategy.check_status_update if write.subresource == "status" else strategy.check_update
    faults = check(obj, old, faults)
    if faults:
        raise invalid(served, obj, write.key.name, faults)
    if write.subresource != "status":
        warn(strategy.warnings(obj, old))


async def _store_change(api: Api, write: Write, stored: Stored, wanted: Wanted, old: Json) -> None:
    served, obj, dry_run = write.served, wanted.obj, write.options.dry_run
    if _is_released(obj["metadata"], old["metadata"]) and served.strategy.removable(obj):
        if not dry_run:
            await remove(api, write.key, stored.decode())  # watchers see it go as it was stored
        return
    if dry_run or (wanted.canonical and same(obj, old) and not _must_rewrite(api, served, stored)):
        return
    await store(api, served, write.key, wanted)


def _must_rewrite(api: Api, served: Type, stored: Stored) -> bool:
    """Whether even a write that changes nothing is stored, since what is stored is not in canonical form."""
    return api.uncanonical.get(stored.key) == stored.version or served.strategy.rewrites(stored)


def _is_released(meta: Json, old: Json) -> bool:
    """The last finalizer of an object that was deleted has gone."""
    if meta.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return not old.get("deletionGracePeriodSeconds")


def _differ_in_times_only(obj: Json, old: Json) -> bool:
    """Whether two objects differ at most in when their fields were last set."""
    owners = obj["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    return same_but_times(*owners) and same(_untracked(obj), _untracked(old))


def _untracked(obj: Json) -> Json:
    skipped = ("managedFields", "resourceVersion")
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name not in skipped}}


def _restore(target: Json, source: Json, name: str) -> None:
    if source.get(name) is not None:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _conflict(write: Write, why: str) -> StatusError:
    return errors.conflict(write.served.group, write.served.plural, write.key.name, why)


def _uid_mismatch(write: Write, stored: Stored) -> StatusError:
    parts = ("/registry", write.served.group, write.served.plural, write.key.namespace, write.key.name)
    return _conflict(
        write,
        f"StorageError: invalid object, Code: 4, Key: {'/'.join(part for part in parts if part)}, ResourceVersion: 0,"
        " AdditionalErrorMsg: Precondition failed: UID in precondition:"
        f" {write.uid}, UID in object meta: {stored.uid}",
    )


async def override(api: Api, write: Write) -> Json:
    """A change that the server itself makes to fields no client may set, such as a pod's node."""
    served = write.served
    stored = api.state.head(write.key)
    if stored is None:
        raise errors.not_found(served.group, served.plural, write.key.name)
    wanted = write.compute(served.whole_object(stored.data))
    assert wanted is not None, "what overrides always changes something"
    if not write.options.dry_run:
        await store(api, served, write.key, wanted)
    return wanted.obj
