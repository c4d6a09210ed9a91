"""Deletion: preconditions, grace, finalizers, and what becomes of dependents.

An object goes at once, or it is marked (deletionTimestamp) and goes when its last finalizer does. The propagation
policies are finalizers too: `foregroundDeletion` and `orphan` are left for the garbage collector to work off.

Invariant: between reading the head and writing it there is no await, unless a webhook is called; then the head is
compared again.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from trainwright.api.times import rfc3339, seconds_of
from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.admission.request import AdmissionRequest
from trainwright.embedded.apiserver.operations.storing import remove
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.storage.objects import Stored
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

    def check(self) -> None:
        """Raises 422 for options that contradict each other."""
        if self.policy is not None and self.orphan is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            raise errors.invalid_options("DeleteOptions", [field.invalid("propagationPolicy", self.policy, text)])
        if self.policy is not None and self.policy not in POLICIES:
            fault = field.not_supported("propagationPolicy", self.policy, (*POLICIES, "nil"))
            raise errors.invalid_options("DeleteOptions", [fault])


BACKGROUND = DeleteOptions(policy="Background")


class Deletion(msgspec.Struct, frozen=True):
    """One object that is to go, and on whose behalf."""

    served: Type
    key: Key
    user: User
    options: DeleteOptions = DeleteOptions()

    def check_kind(self, obj: Json) -> None:
        """Refuses or warns as the kind has it."""
        self.served.strategy.check_delete(obj, self.options.policy or self.options.orphan)


class Deleted(msgspec.Struct, frozen=True):
    """What the client is told: the object as it is now, whether it is gone, and whether the answer shows it."""

    obj: Json
    gone: bool
    as_object: bool


async def delete(api: Api, deletion: Deletion) -> Deleted:
    deletion.options.check()
    while True:
        served, key = deletion.served, deletion.key
        stored = api.state.head(key)
        if stored is None:
            deletion.check_kind({"metadata": {"name": key.name}})  # warn about the options even so
            raise errors.not_found(served.group, served.plural, key.name)
        obj = served.whole_object(stored.data)
        deletion.check_kind(obj)
        _check_preconditions(deletion, stored)
        options = WriteOptions(dry_run=deletion.options.dry_run)
        request = AdmissionRequest(served, "DELETE", "", key, deletion.user, options)
        await api.admission.validate(request, None, obj)
        if api.state.head(key) is stored:
            return await _delete_head(api, deletion, obj)


def _check_preconditions(deletion: Deletion, stored: Stored) -> None:
    uid, version = deletion.options.uid, deletion.options.version
    if uid is not None and uid != stored.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({stored.uid})."
            " The object might have been deleted and then recreated"
        )
    elif version is not None and version != str(stored.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record"
            f" ({stored.version}). The object might have been modified"
        )
    else:
        return
    raise errors.conflict(deletion.served.group, deletion.served.kind, deletion.key.name, why)


async def _delete_head(api: Api, deletion: Deletion, obj: Json) -> Deleted:
    """Mark the object or remove it; it is ours to change."""
    meta, strategy, now = obj["metadata"], deletion.served.strategy, api.clock.wall()
    before = copy.deepcopy(obj)
    graceful = _begin_grace(deletion, obj, now)
    if graceful is None:
        return Deleted(obj, gone=False, as_object=True)
    _set_finalizers(meta, deletion.options, strategy.default_policy())
    waits = bool(meta.get("finalizers")) or not strategy.removable(obj)
    if waits and not graceful:
        _mark_now(meta, now)
        strategy.mark_deleting(obj)
    changed = obj != before
    if waits or (graceful and meta["deletionGracePeriodSeconds"] > 0):
        if changed and not deletion.options.dry_run:
            _, future = api.state.put(deletion.key, api.to_storage(deletion.served, obj))
            await asyncio.shield(future)
        return Deleted(obj, gone=False, as_object=True)
    if not deletion.options.dry_run:
        await _remove(api, deletion, obj, mark_first=graceful and changed)
    return Deleted(obj, gone=True, as_object=strategy.returns_deleted)


def _begin_grace(deletion: Deletion, obj: Json, now: float) -> bool | None:
    """Whether the object gets time to end; None if it has it already and this deletion changes nothing."""
    meta, wanted = obj["metadata"], deletion.options.grace
    grace = 1 if wanted is not None and wanted < 0 else wanted
    if meta.get("deletionTimestamp"):
        if not meta.get("deletionGracePeriodSeconds"):
            return False
        return True if _shorten(meta, grace, now) else None
    period = deletion.served.strategy.check_graceful(obj, grace)
    if period is None:
        return False
    meta["deletionTimestamp"] = rfc3339(now + period)
    meta["deletionGracePeriodSeconds"] = period
    _next_generation(meta)
    return True


async def _remove(api: Api, deletion: Deletion, obj: Json, *, mark_first: bool) -> None:
    if mark_first:  # watchers learn that the grace is over before they learn that the object is gone
        api.state.put(deletion.key, api.to_storage(deletion.served, obj))
    version = await remove(api, deletion.key, api.to_storage(deletion.served, copy.deepcopy(obj)))
    obj["metadata"]["resourceVersion"] = str(version)


def _next_generation(meta: Json) -> None:
    if meta.get("generation"):
        meta["generation"] += 1


def _mark_now(meta: Json, now: float) -> None:
    if not meta.get("deletionTimestamp"):
        _next_generation(meta)
        meta["deletionTimestamp"] = rfc3339(now)
    elif seconds_of(meta["deletionTimestamp"]) > now:
        meta["deletionTimestamp"] = rfc3339(now)
    meta["deletionGracePeriodSeconds"] = 0


def _shorten(meta: Json, grace: int | None, now: float) -> bool:
    """A later delete may only shorten the grace period."""
    current = meta["deletionGracePeriodSeconds"]
    if grace is None or grace >= current:
        return False
    moment = seconds_of(meta["deletionTimestamp"]) + grace - current
    if moment < now:
        moment = now
        grace = 1 if grace else 0
    meta["deletionTimestamp"] = rfc3339(moment)
    meta["deletionGracePeriodSeconds"] = grace
    return True


def _set_finalizers(meta: Json, options: DeleteOptions, default: str) -> None:
    """Put the finalizer of the policy in, and take the other one out."""
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
    if set(wanted) == set(current):
        return
    if wanted:
        meta["finalizers"] = wanted
    else:
        meta.pop("finalizers", None)


async def delete_all(api: Api, deletions: Iterable[Deletion]) -> None:
    """Each on its own, as the real server does it; what is gone already does not matter."""
    for deletion in deletions:
        try:
            await delete(api, deletion)
        except errors.StatusError as error:
            if error.code != 404:
                raise
