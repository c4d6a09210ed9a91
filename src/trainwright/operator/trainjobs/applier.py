"""Writes the objects of a plan, and never one that is not this TrainJob's.

In: a plan, and the TrainJob that owns its objects. Out: the objects exist as planned, or an error says why not.
Server-side apply cannot be create-only, and it merges into a stranger's object. What a first build makes is applied
without a look, where the stores know no object of its name: the answer tells whether it was created, and what turns
out to be a stranger's is given back as it was. Before any other apply of an object beside the workload we look. Every
later apply carries the uid of the object we saw: deleted or replaced since, the server refuses.

Secrets are created and never read. We infer the owner of a Secret that exists already from what stands beside it: a
workload or ConfigMap of this TrainJob's uid means that we created it; otherwise a dry-run create tells that the name
is free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import CONFIG_MAPS, SECRETS, TRAIN_JOBS, Resource
from trainwright.api.times import seconds_of
from trainwright.api.trainjob import TrainJob
from trainwright.client import AlreadyExists, Client, Forbidden, NotFound
from trainwright.client.errors import ApiError, Conflict, Invalid, Status, not_served
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.pipeline import CreateOnce, NameTaken, ObjectName, Plan, Repair, Workload
from trainwright.pipeline.coverage import covers
from trainwright.pipeline.plan import Intention
from trainwright.schema.jsonobject import Json

MOST_GIVEN_BACK = 1000
SUFFIX_LENGTH = 5  # of what the API server appends to a generateName

ResourceOf = Callable[[Mapping[str, Any]], Resource]


class NotWritten(Exception):
    """The API server refused one object of the plan. The message names the object and has the server's words."""

    def __init__(self, kind: str, name: str, error: ApiError, *, words: str = "") -> None:
        super().__init__(f'{kind} "{name}": {words or error}')
        self.error = error


class WorkloadRefused(NotWritten):
    """The API server refused the workload itself."""


class Written(msgspec.Struct):
    """What came of a plan."""

    workload: bytes | None = None
    """The API server's answer, where the workload was written."""
    versions: dict[ObjectName, str] = {}
    """Each object that is to be put right when it changes, with the version in which it is right."""


class Applier:
    """`resource_of` finds the resource of a rendered object."""

    def __init__(self, client: Client, resource_of: ResourceOf) -> None:
        self._client = client
        self._resource_of = resource_of
        self._given_back: dict[tuple[str, ObjectName], None] = {}  # looked at before another try, which would wake us

    async def write(
        self, plan: Plan, owner: TrainJob, workload: Workload | None, known: Collection[ObjectName]
    ) -> Written:
        """Writes all, in order, but what is so already. `known` are the names that the stores know, whoever's."""
        if workload is None:
            await self._claim_secrets(plan.objects, owner)
        written = Written()
        for intention in plan.objects:
            body = intention.object
            resource, name = self._resource_of(body), str(body["metadata"]["name"])
            failed = WorkloadRefused if intention.workload else NotWritten
            try:
                if intention.workload and workload is None:
                    written.workload, _ = await self._create(resource, body, owner)
                elif intention.workload and workload is not None:
                    versioned = {
                        **body,
                        "metadata": {**body["metadata"], "resourceVersion": workload.metadata.resource_version},
                    }
                    written.workload = await self._apply(resource, versioned, owner, workload.metadata)
                else:
                    met = (owner.metadata.uid, ObjectName.of(body)) in self._given_back
                    new = workload is None and not met and ObjectName.of(body) not in known
                    await self._write(resource, intention, owner, written, new=new)
            except Conflict:
                raise  # somebody was faster: read again, and do not bother the user
            except ApiError as error:
                absent = isinstance(error, NotFound) and error.is_missing_type
                words = not_served(resource.group_resource) if absent else ""
                raise failed(resource.kind, name, error, words=words) from error
        return written

    async def _create(self, resource: Resource, body: Json, owner: TrainJob) -> tuple[bytes, bool]:
        """Creates an object by one request, without looking first. Returns it, and whether it is new.

        An apply without force tells whether it created. Where it did not, or was refused, we look once: an object
        that this TrainJob controls, whose content nobody else set, and which is not older than the TrainJob, is ours
        from a lost answer, a crash or a second operator, and stands. Any other object is given back.
        """
        name, namespace = str(body["metadata"]["name"]), owner.metadata.namespace
        refusal: ApiError | None = None
        try:
            answer, created = await self._client.apply_new(
                resource, body, name=name, namespace=namespace, field_manager=FIELD_MANAGER
            )
            if created:
                return answer, True
        except (Conflict, Forbidden, Invalid) as error:
            refusal = error
        try:
            found: Json = await self._client.get(resource, name, namespace)
        except NotFound as error:
            raise refusal or error from None
        metadata = msgspec.convert(found["metadata"], ObjectMeta)
        others, older = _has_other_authors(found, body), _is_older(metadata, owner.metadata)
        if metadata.is_controlled_by(owner.metadata.uid) and not others and not older:
            if metadata.is_being_deleted:
                raise Replaced(f'{resource.kind} "{name}" is being deleted')
            return msgspec.json.encode(found), False
        self._given_back[owner.metadata.uid, ObjectName.of(body)] = None
        while len(self._given_back) > MOST_GIVEN_BACK:
            del self._given_back[next(iter(self._given_back))]
        if refusal is None:
            await self._client.apply(
                resource,
                _without_owner(body, content=not others),
                name=name,
                namespace=namespace,
                field_manager=FIELD_MANAGER,
                decode=bytes,
            )
        raise NameTaken(resource.kind, name)

    async def could_be_created(self, body: Json, owner: TrainJob, present: ObjectMeta) -> bool:
        """Whether a refused change is refused only because the object exists already, so that one in its place
        would be accepted.

        Two dry runs tell. A patch that changes nothing must be let through, or we may not write the object at all,
        whatever is in it; and a create of the same object under another name must be accepted.
        """
        resource, name = self._resource_of(body), str(body["metadata"]["name"])
        stem = name[: max(1, len(name) - SUFFIX_LENGTH)]  # no longer than the name it stands for
        metadata = {key: value for key, value in body["metadata"].items() if key != "name"} | {"generateName": stem}
        namespace = owner.metadata.namespace
        try:
            await self._client.patch(
                resource, {"metadata": {"uid": present.uid}}, name=name, namespace=namespace, dry_run=True, decode=bytes
            )
            await self._client.create(
                resource,
                {**body, "metadata": metadata},
                namespace,
                field_manager=FIELD_MANAGER,
                dry_run=True,
                decode=bytes,
            )
        except (Invalid, Forbidden):
            return False
        return True

    async def _write(
        self, resource: Resource, intention: Intention, owner: TrainJob, written: Written, *, new: bool
    ) -> None:
        """An object beside the workload."""
        body = intention.object
        if isinstance(intention, CreateOnce):
            await self._create_once(resource, body, owner)
        elif intention.repair is Repair.CHANGED:
            written.versions[ObjectName.of(body)] = await self._make_right(resource, body, owner, new=new)
        elif new:
            await self._create(resource, body, owner)
        else:
            present = await self._look(resource, str(body["metadata"]["name"]), owner.metadata.namespace)
            await self._apply(resource, body, owner, present)

    async def _make_right(self, resource: Resource, body: Json, owner: TrainJob, *, new: bool) -> str:
        """Creates an object whose content counts, or looks whether one that was there is as it should be."""
        if new:
            answer, is_new = await self._create(resource, body, owner)
            if is_new:
                return version_of(msgspec.json.decode(answer, type=PartialObjectMetadata).metadata)
        return await self._keep(resource, body, owner)

    async def _keep(self, resource: Resource, body: Json, owner: TrainJob) -> str:
        """Looks at the content too: a pass that finds an object as it should be writes nothing. The version of it."""
        found: Json | None
        try:
            found = await self._client.get(resource, str(body["metadata"]["name"]), owner.metadata.namespace)
        except NotFound as error:
            if error.is_missing_type:
                raise
            found = None
        present = msgspec.convert(found["metadata"], ObjectMeta) if found is not None else None
        if found is not None and present is not None and present.is_controlled_by(owner.metadata.uid):
            kept = {**body, "metadata": {"labels": body["metadata"]["labels"]}}
            if covers({"apiVersion": body["apiVersion"], "kind": body["kind"], **found}, kept):
                return version_of(present)
        answer = await self._apply(resource, body, owner, present)
        return version_of(msgspec.json.decode(answer, type=PartialObjectMetadata).metadata)

    async def _apply(self, resource: Resource, body: Json, owner: TrainJob, present: ObjectMeta | None) -> bytes:
        name = str(body["metadata"]["name"])
        if present is None:
            await self._check_lives(owner)
        else:
            if not present.is_controlled_by(owner.metadata.uid):
                raise NameTaken(resource.kind, name)
            if present.is_being_deleted:
                raise Replaced(f'{resource.kind} "{name}" is being deleted')
            body = {**body, "metadata": {**body["metadata"], "uid": present.uid}}
        try:
            answer: bytes = await self._client.apply(
                resource,
                body,
                name=name,
                namespace=owner.metadata.namespace,
                field_manager=FIELD_MANAGER,
                decode=bytes,
            )
        except Invalid as error:
            if error.is_about_uid:
                raise Replaced(str(error)) from error
            raise
        return answer

    async def _check_lives(self, owner: TrainJob) -> None:
        """A child that was there is missing. Somebody deleted it, or it went with its TrainJob, and the watch does not
        show that yet: what we made for that one would be collected at once, and stand in the way of a successor.
        """
        metadata = owner.metadata
        live = await self._look(TRAIN_JOBS, metadata.name, metadata.namespace)
        if live is None or live.uid != metadata.uid or live.is_being_deleted:
            raise Replaced(f'TrainJob "{metadata.name}" is gone')

    async def _create_once(self, resource: Resource, body: Json, owner: TrainJob) -> None:
        namespace, name = owner.metadata.namespace, str(body["metadata"]["name"])
        try:
            await self._client.create(resource, body, namespace, field_manager=FIELD_MANAGER, decode=bytes)
        except AlreadyExists:
            if resource is SECRETS:
                return  # ours: `_claim_secrets` has seen to it
            present = await self._look(resource, name, namespace)
            if present is None:
                raise
            if not present.is_controlled_by(owner.metadata.uid):
                raise NameTaken(resource.kind, name) from None

    async def _claim_secrets(self, objects: Sequence[Intention], owner: TrainJob) -> None:
        """At the first build: make sure that no Secret of the plan is a stranger's or a predecessor's."""
        secrets = [it.object for it in objects if self._resource_of(it.object) is SECRETS]
        if not secrets:
            return
        names = [str(it.object["metadata"]["name"]) for it in objects if self._resource_of(it.object) == CONFIG_MAPS]
        if await self._any_of_ours(names, owner):
            return
        for secret in secrets:
            name = str(secret["metadata"]["name"])
            try:
                await self._client.create(
                    SECRETS, secret, owner.metadata.namespace, field_manager=FIELD_MANAGER, dry_run=True, decode=bytes
                )
            except AlreadyExists:
                # Another operator may just have passed the same point: its ConfigMap came before its Secret.
                if not await self._any_of_ours(names, owner):
                    raise NameTaken("Secret", name) from None
            except ApiError as error:
                raise NotWritten("Secret", name, error) from error

    async def _any_of_ours(self, names: Sequence[str], owner: TrainJob) -> bool:
        ours = False
        for name in names:
            present = await self._look(CONFIG_MAPS, name, owner.metadata.namespace)
            if present is None:
                continue
            if not present.is_controlled_by(owner.metadata.uid):
                raise NameTaken("ConfigMap", name)
            ours = True
        return ours

    async def _look(self, resource: Resource, name: str, namespace: str) -> ObjectMeta | None:
        try:
            found = await self._client.get(resource, name, namespace, decode=PartialObjectMetadata, metadata_only=True)
        except NotFound as error:
            if error.is_missing_type:
                raise
            return None
        return found.metadata


def _has_other_authors(found: Json, body: Json) -> bool:
    """Whether another manager owns part of what makes this object ours: its data, or any list or object in its spec
    that we set.

    Single values are nobody's signature: a queue sets `suspend` on objects of others.
    """
    parts = {f"f:{name}" for name, value in (body.get("spec") or {}).items() if isinstance(value, (dict, list))}
    others = [
        entry.get("fieldsV1") or {}
        for entry in found["metadata"].get("managedFields") or ()
        if entry.get("manager") != FIELD_MANAGER
    ]
    return any(
        parts & (fields.get("f:spec") or {}).keys() or ("data" in body and "f:data" in fields) for fields in others
    )


def _is_older(child: ObjectMeta, owner: ObjectMeta) -> bool:
    """Whether an object was there before the TrainJob, so that it cannot be this one's: a predecessor's, which it left
    behind as an orphan. Our own apply has just made it look like ours.
    """
    created, began = child.creation_timestamp, owner.creation_timestamp
    return created is not None and began is not None and seconds_of(created) < seconds_of(began)


def _without_owner(body: Json, *, content: bool) -> Json:
    """What gives an object back that is not ours. A stranger's loses all that we added. An orphan keeps its content,
    which our field manager wrote for its former owner, and loses its new one.
    """
    metadata = body["metadata"]
    if not content:
        return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": metadata["name"]}}
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "ownerReferences"}}


class Replaced(Conflict):
    """The object under this name is not the one we looked at a moment ago."""

    def __init__(self, message: str) -> None:
        super().__init__(Status(code=409, reason="Conflict", message=message))


def version_of(metadata: ObjectMeta) -> str:
    """What changes when somebody changes an object: its generation, or its version where the kind counts none."""
    return str(metadata.generation) if metadata.generation else metadata.resource_version
