"""Deletion: preconditions, grace, finalizers, and what becomes of dependents.

An object goes at once, or it is marked (deletionTimestamp) and goes when its last finalizer does. The propagation
policies are finalizers too: `foregroundDeletion` and `orphan` are left for the garbage collector to work off.
"""

from __future__ import annotations

import asyncio
import copy
import time
from typing import TYPE_CHECKING

import msgspec

from trainwright.api.times import rfc3339, seconds_of
from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.operations.writing import User, WriteOptions
from trainwright.embedded.apiserver.storage.state import Stored
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
POLICIES = ("Foreground", "Background", "Orphan")


class DeleteOptions(msgspec.Struct, frozen=True):
    grace: int | None = None
    policy: str | None = None
    orphan: bool | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


class Deleted(msgspec.Struct):
    """What the client is told: the object if it is still there (or the kind shows it), else None; and whether it is
    gone."""

    obj: Json
    gone: bool
    as_object: bool


def check_options(options: DeleteOptions) -> None:
    if options.policy is not None and options.orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        raise errors.invalid_options("DeleteOptions", [field.invalid("propagationPolicy", options.policy, text)])
    if options.policy is not None and options.policy not in POLICIES:
        fault = field.not_supported("propagationPolicy", options.policy, (*POLICIES, "nil"))
        raise errors.invalid_options("DeleteOptions", [fault])


async def delete(api: Api, served: Type, key: Key, options: DeleteOptions, user: User) -> Deleted:
    check_options(options)
    while True:
        stored = api.state.head(key)
        if stored is None:
            # What the options mean for this kind is said even of nothing.
            served.strategy.check_delete({"metadata": {"name": key.name}}, options.policy or options.orphan)
            raise errors.not_found(served.group, served.plural, key.name)
        obj = served.whole_object(stored.data)
        served.strategy.check_delete(obj, options.policy or options.orphan)
        _check_preconditions(served, key, options, stored)
        call = api.admission.call(served, "DELETE", "", key, user, WriteOptions(dry_run=options.dry_run))
        await api.admission.validate(call, None, obj)
        if api.state.head(key) is stored:
            return await _delete_head(api, served, key, options, stored, obj)


def _check_preconditions(served: Type, key: Key, options: DeleteOptions, stored: Stored) -> None:
    why = ""
    if options.uid is not None and options.uid != stored.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid})."
            " The object might have been deleted and then recreated"
        )
    elif options.version is not None and options.version != str(stored.version):
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record"
            f" ({stored.version}). The object might have been modified"
        )
    if why:
        raise errors.conflict(served.group, served.kind, key.name, why)


async def _delete_head(api: Api, served: Type, key: Key, options: DeleteOptions, stored: Stored, obj: Json) -> Deleted:
    meta = obj["metadata"]
    before = copy.deepcopy(obj)
    grace = None if options.grace is None else (1 if options.grace < 0 else options.grace)
    graceful = False
    if meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds"):
        if not _shorten(meta, grace):
            return Deleted(obj, False, True)  # already on its way, nothing to change
        graceful, period = True, meta["deletionGracePeriodSeconds"]
    elif not meta.get("deletionTimestamp"):
        period = served.strategy.check_graceful(obj, grace)
        if period is not None:
            graceful = True
            _mark(meta, period)
    finalizers = _finalizers(meta, options, served.strategy.default_policy())
    if finalizers != (meta.get("finalizers") or []):
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
    pending = bool(meta.get("finalizers")) or not served.strategy.removable(obj)
    if not graceful and pending:
        _mark_now(meta)
        served.strategy.mark_deleting(obj)
    if (graceful and meta["deletionGracePeriodSeconds"] > 0) or pending:
        if obj != before and not options.dry_run:
            _, future = api.state.put(key, api.to_storage(served, obj))
            await asyncio.shield(future)
        return Deleted(obj, False, True)
    if graceful and not options.dry_run and obj != before:
        # Watchers learn that the grace is over before they learn that the object is gone.
        api.state.put(key, api.to_storage(served, obj))
    if not options.dry_run:
        gone, future = api.state.delete(key, api.to_storage(served, copy.deepcopy(obj)))
        await asyncio.shield(future)
        meta["resourceVersion"] = str(gone.version)
    return Deleted(obj, True, served.strategy.returns_deleted)


def _mark(meta: Json, period: int) -> None:
    meta["deletionTimestamp"] = rfc3339(time.time() + period)
    meta["deletionGracePeriodSeconds"] = period
    if meta.get("generation"):
        meta["generation"] += 1


def _mark_now(meta: Json) -> None:
    if not meta.get("deletionTimestamp"):
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = metadata.now_text()
    elif seconds_of(meta["deletionTimestamp"]) > time.time():
        meta["deletionTimestamp"] = metadata.now_text()
    meta["deletionGracePeriodSeconds"] = 0


def _shorten(meta: Json, grace: int | None) -> bool:
    """A later delete may only shorten the grace period."""
    current = meta["deletionGracePeriodSeconds"]
    if grace is None or grace >= current:
        return False
    moment, now = seconds_of(meta["deletionTimestamp"]) + grace - current, time.time()
    if moment < now:
        moment = now
        grace = 1 if grace else 0
    meta["deletionTimestamp"] = rfc3339(moment)
    meta["deletionGracePeriodSeconds"] = grace
    return True


def _finalizers(meta: Json, options: DeleteOptions, default: str) -> list[str]:
    """The finalizers with the policy's own put in or taken out."""
    current = meta.get("finalizers") or []
    if options.orphan is not None:
        orphan, foreground = options.orphan, False
    elif options.policy is not None:
        orphan, foreground = options.policy == "Orphan", options.policy == "Foreground"
    elif FOREGROUND in current:
        orphan, foreground = False, True
    else:
        orphan, foreground = ORPHAN in current or default == "Orphan", False
    wanted = [name for name in current if name not in (ORPHAN, FOREGROUND)]
    wanted += [ORPHAN] * orphan + [FOREGROUND] * foreground
    return current if set(wanted) == set(current) else wanted


async def delete_collection(api: Api, served: Type, found: list[Stored], options: DeleteOptions, user: User) -> None:
    """Each on its own, as the real server does it; what is gone already does not matter."""
    for stored in found:
        try:
            await delete(api, served, stored.key, options, user)
        except errors.StatusError as error:
            if error.code != 404:
                raise
