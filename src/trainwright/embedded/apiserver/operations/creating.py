"""Creates: from a decoded object to a stored one.

Every new object of every client goes through here, HTTP or not, so that ownership, admission, validation and the rules
of the kind hold for all. The order is kube-apiserver's: namespace, system fields, field ownership, mutating admission,
preparation by the kind, validation, validating admission, store.

Invariant: between looking whether the name is free and taking it there is no await.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.admission.request import AdmissionRequest
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.operations.namespaces import check_namespace
from trainwright.embedded.apiserver.operations.storing import invalid, store
from trainwright.embedded.apiserver.operations.writes import Wanted, Write
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

NAMES_TRIED = 8


async def create(api: Api, write: Write) -> Json:
    """Store a new object, under a generated name if it has only the beginning of one."""
    wanted = write.compute(None)
    assert wanted is not None, "there is nothing that could be as wanted already"
    meta = wanted.obj["metadata"]
    prefix = meta.get("generateName")
    if meta.get("name") or not prefix:
        try:
            return await create_once(api, write, wanted)
        except StatusError as error:
            raise (_not_unique(error) if prefix else error) from None
    for attempt in range(1, NAMES_TRIED + 1):
        fresh = copy.deepcopy(wanted.obj)
        fresh["metadata"]["name"] = metadata.generated_name(prefix)
        try:
            return await create_once(api, write, Wanted(fresh))
        except StatusError as error:
            if error.reason != "AlreadyExists" or attempt == NAMES_TRIED:
                raise _not_unique(error) from None
    raise AssertionError("unreachable")


def _not_unique(error: StatusError) -> StatusError:
    if error.reason == "AlreadyExists":
        error.message += ", the server was not able to generate a unique name for the object"
        error.details = {**(error.details or {}), "retryAfterSeconds": 1}
        error.retry_after = 1
    return error


async def create_once(api: Api, write: Write, wanted: Wanted) -> Json:
    """Store a new object under the name it has."""
    served, obj = write.served, wanted.obj
    _begin(api, write, obj)
    key = Key(served.resource, obj["metadata"].get("namespace", ""), obj["metadata"].get("name", ""))
    request = AdmissionRequest(served, "CREATE", "", key, write.user, write.options)
    obj = await api.admission.mutate(request, obj, None) or obj
    if served.strategy.tracks_generation:
        obj["metadata"]["generation"] = 1
    served.strategy.prepare_create(obj)
    api.check_escalation(write.user, served, obj, None)
    _validate(served, obj)
    await api.admission.validate(request, obj, None)
    _check_vacant(api, served, key)
    if not write.options.dry_run:
        await store(api, served, key, Wanted(obj, wanted.canonical))
    served.strategy.on_read(obj)
    return obj


def _begin(api: Api, write: Write, obj: Json) -> None:
    """What every new object gets: its namespace, its system fields, its first owner."""
    served, meta, now = write.served, obj["metadata"], api.now()
    if served.namespaced:
        meta["namespace"] = write.key.namespace
        check_namespace(api, served, write.key.namespace, meta.get("name", ""))
    else:
        meta.pop("namespace", None)
    if not write.applies and meta.get("resourceVersion") not in (None, "", "0"):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    meta.pop("resourceVersion", None)
    metadata.fill_system_fields(meta, now)
    metadata.drop_double_owners(meta)
    if not write.applies:
        served.field_manager().update(None, obj, write.options.manager, now)


def _validate(served: Type, obj: Json) -> None:
    faults = metadata.validate(obj["metadata"], namespaced=served.namespaced, name_faults=served.strategy.name_faults)
    faults = served.strategy.check_create(obj, faults)
    if faults:
        raise invalid(served, obj, obj["metadata"].get("name", ""), faults)
    warn(served.strategy.warnings(obj, None))


def _check_vacant(api: Api, served: Type, key: Key) -> None:
    """The name is free, and its place still takes new objects: a webhook's answer may have taken a while."""
    existing = api.state.head(key)
    if existing is not None:
        taken = errors.already_exists(served.group, served.plural, key.name)
        if existing.deleting:
            taken.message = f"object is being deleted: {taken.message}"
        raise taken
    if served.namespaced:
        check_namespace(api, served, key.namespace, key.name)
    api.check_serving(served, key.name)
