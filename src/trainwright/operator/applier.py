"""Writes the objects of a plan, and never one that is not this TrainJob's (I2).

In: the plan's intentions in order, and the TrainJob that owns them. Out: the objects exist as planned, or an error
says why not. Server-side apply cannot be create-only, and it merges into a stranger's object; so before the first
apply of a name we look, and every later one carries the uid of the object we saw: deleted or replaced since, the
server refuses.

Secrets are created and never read (I10). Whose a Secret is that exists already is told by what stands beside it
(D15): a JobSet or ConfigMap of this TrainJob's uid means that we created it; otherwise a dry-run create tells that
the name is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import CONFIG_MAPS, JOB_SETS, POD_GROUPS, SECRETS, VOLCANO_POD_GROUPS, Resource
from trainwright.api.trainjob import TrainJob
from trainwright.client import AlreadyExists, Client, Forbidden, NotFound
from trainwright.client.errors import ApiError, Conflict, Invalid, Status, not_served
from trainwright.pipeline import Apply, CreateOnce, NameTaken
from trainwright.plugins.jobset import StoredJobSet

FIELD_MANAGER = "trainer"

KINDS: Mapping[tuple[str, str], Resource] = {
    (resource.api_version, resource.kind): resource
    for resource in (JOB_SETS, POD_GROUPS, VOLCANO_POD_GROUPS, CONFIG_MAPS, SECRETS)
}


class NotWritten(Exception):
    """The API server refused one object of the plan. The message names the object and has the server's words (D20)."""

    def __init__(self, kind: str, name: str, error: ApiError, *, words: str = "") -> None:
        super().__init__(f'{kind} "{name}": {words or error}')
        self.error = error

    @property
    def is_about_immutability(self) -> bool:
        """The server, or JobSet's own webhook, says that a field cannot be changed any more."""
        return isinstance(self.error, (Invalid, Forbidden)) and "immutable" in str(self.error)


class Applied(msgspec.Struct):
    """What came of it: the JobSet if it was written, and the version of each ConfigMap that is as it should be."""

    job_set: StoredJobSet | None = None
    config_maps: dict[str, str] = {}


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None

    def equals(self, body: Mapping[str, Any]) -> bool:
        labels = self.metadata.labels or {}
        wanted = body["metadata"].get("labels") or {}
        return (self.data or {}) == (body.get("data") or {}) and wanted.items() <= labels.items()


class Applier:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def apply(self, objects: Sequence[Apply | CreateOnce], owner: TrainJob, *, has_job_set: bool) -> Applied:
        """Writes all, in order, but a ConfigMap that is so already. `has_job_set`: the store shows ours."""
        if not has_job_set:
            await self._claim_secrets(objects, owner)
        applied = Applied()
        for intention in objects:
            resource = resource_of(intention.object)
            name = str(intention.object["metadata"]["name"])
            try:
                if isinstance(intention, CreateOnce) or resource is SECRETS:  # what cannot be read cannot be applied
                    await self._create_once(resource, name, intention.object, owner)
                elif resource is CONFIG_MAPS:
                    applied.config_maps[name] = await self._apply_config_map(name, intention.object, owner)
                else:
                    present = await self._look(resource, name, owner.metadata.namespace)
                    answer = await self._apply(resource, name, intention.object, owner, present)
                    if resource is JOB_SETS:
                        applied.job_set = msgspec.json.decode(answer, type=StoredJobSet)
            except Conflict:
                raise  # somebody was faster: read again, no news for the user
            except ApiError as error:
                absent = isinstance(error, NotFound) and error.is_missing_type
                words = not_served(resource.group_resource) if absent else ""
                raise NotWritten(resource.kind, name, error, words=words) from error
        return applied

    async def _apply_config_map(self, name: str, body: dict[str, Any], owner: TrainJob) -> str:
        """Looks at the content too: a pass that finds a ConfigMap as it should be writes nothing. Returns its
        version.
        """
        try:
            found = await self._client.get(CONFIG_MAPS, name, owner.metadata.namespace, decode=_ConfigMap)
        except NotFound:
            found = None
        if found is not None and is_controlled_by(found.metadata, owner) and found.equals(body):
            return found.metadata.resource_version
        answer = await self._apply(CONFIG_MAPS, name, body, owner, found.metadata if found else None)
        return msgspec.json.decode(answer, type=PartialObjectMetadata).metadata.resource_version

    async def _apply(
        self, resource: Resource, name: str, body: dict[str, Any], owner: TrainJob, present: ObjectMeta | None
    ) -> bytes:
        namespace = owner.metadata.namespace
        if present is not None:
            if not is_controlled_by(present, owner):
                raise NameTaken(resource.kind, name)
            if present.is_being_deleted:
                raise Replaced(f'{resource.kind} "{name}" is being deleted')
            body = {**body, "metadata": {**body["metadata"], "uid": present.uid}}
        try:
            answer: bytes = await self._client.apply(
                resource, body, name=name, namespace=namespace, field_manager=FIELD_MANAGER, decode=bytes
            )
        except Invalid as error:
            if error.is_about_uid:
                raise Replaced(str(error)) from error
            raise
        return answer

    async def _create_once(self, resource: Resource, name: str, body: dict[str, Any], owner: TrainJob) -> None:
        try:
            await self._client.create(
                resource, body, owner.metadata.namespace, field_manager=FIELD_MANAGER, decode=bytes
            )
        except AlreadyExists:
            if resource is SECRETS:
                return  # ours: `_claim_secrets` has seen to it
            present = await self._look(resource, name, owner.metadata.namespace)
            if present is None:
                raise
            if not is_controlled_by(present, owner):
                raise NameTaken(resource.kind, name) from None

    async def _claim_secrets(self, objects: Sequence[Apply | CreateOnce], owner: TrainJob) -> None:
        """At the first build: make sure that no Secret of the plan is a stranger's or a predecessor's (D15)."""
        secrets = [intention.object for intention in objects if resource_of(intention.object) is SECRETS]
        if not secrets:
            return
        names = [str(i.object["metadata"]["name"]) for i in objects if resource_of(i.object) is CONFIG_MAPS]
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
            if not is_controlled_by(present, owner):
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


class Replaced(Conflict):
    """The object under this name is not the one we looked at a moment ago."""

    def __init__(self, message: str) -> None:
        super().__init__(Status(code=409, reason="Conflict", message=message))


def is_controlled_by(metadata: ObjectMeta, owner: TrainJob) -> bool:
    controller = metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid


def resource_of(body: Mapping[str, Any]) -> Resource:
    """The resource of a rendered object. Plugins may render only kinds that the operator may write."""
    key = (str(body["apiVersion"]), str(body["kind"]))
    if key not in KINDS:
        raise ValueError(f"a plugin built a {key[1]} of {key[0]}, which the operator does not write")
    return KINDS[key]
