"""What `trainwright run` creates: one TrainJob, and the objects that go with it.

    companions   objects of the user's file. Server-side apply, so that running the file again updates them
    belongings   objects of this run alone (Secret, ConfigMap, TrainingRuntime). Created, then owned by the TrainJob
    the TrainJob created last

A finished TrainJob of the same name has to go first. It is deleted only after the server has accepted the new one in a
dry run, so that a typo costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainwright.api.phases import name_of
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    SECRETS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    Resource,
)
from trainwright.api.runid import fresh_id
from trainwright.api.wellknown import RUN
from trainwright.cli.failure import Failure
from trainwright.client.client import Client
from trainwright.client.errors import AlreadyExists, ApiError, ClientError, NotFound
from trainwright.client.requests import MERGE_PATCH
from trainwright.schema.jsonobject import Json

FIELD_MANAGER = "trainwright-run"


OWNED = {resource.kind: resource for resource in (SECRETS, CONFIG_MAPS, TRAINING_RUNTIMES)}
"""The kinds of belongings."""


class Submission:
    """One TrainJob and its objects, to be created. The TrainJob says which run it is."""

    def __init__(
        self, job: Json, companions: Sequence[Json], namespace: str, *, belongings: Sequence[Json] = ()
    ) -> None:
        self.job = job
        self.companions = companions
        self.belongings = belongings
        self.namespace: str = job["metadata"].get("namespace") or namespace
        self.run: str = job["metadata"]["annotations"][RUN]
        """The run's id."""

    @property
    def name(self) -> str:
        return name_of(self.job)

    @property
    def documents(self) -> list[Json]:
        """All objects, in the order of their creation."""
        return [*self.companions, *self.belongings, self.job]

    async def check_runtime(self, client: Client) -> None:
        """Fails if the job's runtime is neither in the API nor in the file; the message lists the runtimes."""
        reference = (self.job.get("spec") or {}).get("runtimeRef") or {}
        name, kind = reference.get("name"), reference.get("kind", CLUSTER_TRAINING_RUNTIMES.kind)
        brought = [*self.companions, *self.belongings]
        resource = {it.kind: it for it in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)}.get(kind)
        if not name or not resource or any(other["kind"] == kind and name_of(other) == name for other in brought):
            return
        try:
            await client.get(resource, name, self.namespace if resource.namespaced else None)
        except NotFound:
            from trainwright.cli.launch.runtimes import available

            raise Failure(
                f'TrainJob {self.name} names a runtime that does not exist: there is no {kind} named "{name}"'
                f"{f' in namespace {self.namespace}' if resource.namespaced else ''}"
                f"{await available(client, self.namespace, name)}"
            ) from None

    async def apply_companions(self, client: Client) -> None:
        for companion in self.companions:
            resource = await self._resource_of(client, companion)
            namespace = (companion["metadata"].get("namespace") or self.namespace) if resource.namespaced else None
            try:
                await client.apply(
                    resource, companion, name=name_of(companion), namespace=namespace, field_manager=FIELD_MANAGER
                )
            except ApiError as error:
                raise Failure(f"{companion['kind']} {name_of(companion)}: {error}") from error

    async def create_belongings(self, client: Client) -> None:
        """Creates what belongs to the run alone, all of it or nothing. What an earlier try of this run made stays."""
        for item in self.belongings:
            try:
                await client.create(OWNED[item["kind"]], item, self.namespace, field_manager=FIELD_MANAGER)
            except ApiError as error:
                if isinstance(error, AlreadyExists) and await self._is_ours(client, item):
                    continue
                await self.remove_belongings(client)
                raise Failure(f"{item['kind']} {name_of(item)} of the run: {error}") from error

    async def _is_ours(self, client: Client, item: Json) -> bool:
        """Whether the object of this name belongs to this run."""
        try:
            found = await client.get(OWNED[item["kind"]], name_of(item), self.namespace)
        except NotFound:
            return False
        return bool((found["metadata"].get("labels") or {}).get(RUN) == self.run)

    async def remove_belongings(self, client: Client) -> None:
        """After a refusal: nothing of the run stays behind, as far as the server lets us."""
        for item in self.belongings:
            try:
                await client.delete(OWNED[item["kind"]], name_of(item), self.namespace)
            except ClientError:
                continue

    async def check(self, client: Client) -> None:
        """Has the server judge the TrainJob without storing it. One of the same name may be there."""
        try:
            await self._post(client, dry_run=True)
        except AlreadyExists:
            pass
        except ApiError as error:
            raise Failure(f"TrainJob {self.name}: {error}{_advice(error)}") from error

    async def create(self, client: Client) -> Json:
        """Creates the TrainJob."""
        try:
            created = await self._post(client, dry_run=False)
        except ApiError as error:
            raise Failure(f"TrainJob {self.name}: {error}{_advice(error)}") from error
        return created

    async def own_belongings(self, client: Client, job: Json) -> list[str]:
        """Makes the created TrainJob the owner of its belongings. Returns a sentence for each that it cannot own: the
        job runs all the same.
        """
        owner = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "name": self.name,
            "uid": job["metadata"]["uid"],
        }
        faults = []
        for item in self.belongings:
            try:
                await client.patch(
                    OWNED[item["kind"]],
                    {"metadata": {"ownerReferences": [owner]}},
                    name=name_of(item),
                    namespace=self.namespace,
                    content_type=MERGE_PATCH,
                    field_manager=FIELD_MANAGER,
                )
            except ClientError as error:
                faults.append(f"{item['kind']} {name_of(item)} will not be deleted with the TrainJob: {error}")
        return faults

    async def _post(self, client: Client, *, dry_run: bool) -> Json:
        created: Json = await client.create(
            TRAIN_JOBS,
            self.job,
            self.namespace,
            field_manager=FIELD_MANAGER,
            field_validation="Strict",
            dry_run=dry_run,
        )
        return created

    async def _resource_of(self, client: Client, obj: Json) -> Resource:
        """The resource of an object's kind, from discovery."""
        group, _, version = obj["apiVersion"].rpartition("/")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            served = await client.raw(path)
        except NotFound:
            served = {"resources": []}
        for item in served["resources"]:
            if item["kind"] == obj["kind"] and "/" not in item["name"]:
                return Resource(group, version, item["name"], obj["kind"], item["namespaced"])
        raise Failure(f"{obj['kind']} {name_of(obj)}: the cluster serves no {obj['kind']} of {obj['apiVersion']}")


def _advice(error: ApiError) -> str:
    """What was meant by fields that the server does not know."""
    unknown = re.findall(r'unknown field "([^"]+)"', str(error))
    if not unknown:
        return ""
    from trainwright.api.schema import schema_for
    from trainwright.cli.files.hints import near_field

    schema = schema_for(TRAIN_JOBS.kind)
    return "".join(f"\n  {path}: {near_field(schema, path)}" for path in dict.fromkeys(unknown))


def read_submission(file: str, namespace: str) -> Submission:
    from trainwright.cli.files import documents  # with its YAML parser, which a script does not need

    found = documents.read([file])
    jobs = [document for document in found if document.kind == TRAIN_JOBS.kind]
    if len(jobs) != 1:
        what = "no TrainJob" if not jobs else f"{len(jobs)} TrainJobs ({', '.join(job.name for job in jobs)})"
        raise Failure(f"{found[0].file}: {what} in it; run takes a file with exactly one")
    for document in found:
        if not document.name:
            raise Failure(f"{document.file}:{document.place.line}: the {document.kind} has no metadata.name")
    metadata = jobs[0].value["metadata"]
    # Always a new id, also where the file has one: it may come from `run --dry-run`, and be run more than once.
    metadata["annotations"] = {**(metadata.get("annotations") or {}), RUN: fresh_id(jobs[0].name)}
    return Submission(jobs[0].value, [document.value for document in found if document not in jobs], namespace)
