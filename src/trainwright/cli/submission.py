"""The input of `trainwright run`: one TrainJob, and the objects that go with it.

In: a file. Out: a `Submission`, which checks that its runtime exists and creates the objects: the others first and by
server-side apply, so that running the file again updates them; the TrainJob last and by create.
"""

from __future__ import annotations

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.cli import documents
from trainwright.cli.failure import Failure
from trainwright.cli.sentences import name_of
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, NotFound
from trainwright.schema.jsonobject import Json

FIELD_MANAGER = "trainwright-run"


class Submission:
    """One TrainJob and its companions, to be created."""

    def __init__(self, job: Json, companions: list[Json], namespace: str) -> None:
        self.job = job
        self.companions = companions
        self.namespace: str = job["metadata"].get("namespace") or namespace

    @property
    def name(self) -> str:
        return name_of(self.job)

    async def check_runtime(self, client: Client) -> None:
        """Fails if the job's runtime is neither in the API nor in the file; the message lists the runtimes."""
        reference = (self.job.get("spec") or {}).get("runtimeRef") or {}
        name, kind = reference.get("name"), reference.get("kind", CLUSTER_TRAINING_RUNTIMES.kind)
        if not name or any(other["kind"] == kind and name_of(other) == name for other in self.companions):
            return
        shared = await client.list(CLUSTER_TRAINING_RUNTIMES)
        local = await client.list(TRAINING_RUNTIMES, self.namespace)
        there = {CLUSTER_TRAINING_RUNTIMES.kind: shared.items or [], TRAINING_RUNTIMES.kind: local.items or []}
        if any(name_of(runtime) == name for runtime in there.get(kind, [])):
            return
        listed = "".join(
            f"\n  {found}: {', '.join(sorted(map(name_of, items))) or 'none'}" for found, items in there.items()
        )
        raise Failure(
            f'TrainJob {self.name} names a runtime that does not exist: there is no {kind} named "{name}"'
            f"{f' in namespace {self.namespace}' if kind == TRAINING_RUNTIMES.kind else ''}. Available:{listed}"
        )

    async def create(self, client: Client) -> None:
        for companion in self.companions:
            resource = await self._resource_of(client, companion)
            namespace = (companion["metadata"].get("namespace") or self.namespace) if resource.namespaced else None
            try:
                await client.apply(
                    resource, companion, name=name_of(companion), namespace=namespace, field_manager=FIELD_MANAGER
                )
            except ApiError as error:
                raise Failure(f"{companion['kind']} {name_of(companion)}: {error}") from error
        try:
            await client.create(
                TRAIN_JOBS, self.job, self.namespace, field_manager=FIELD_MANAGER, field_validation="Strict"
            )
        except ApiError as error:
            raise Failure(f"TrainJob {self.name}: {error}") from error

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
        raise Failure(f"{obj['kind']} {name_of(obj)}: the local cluster serves no {obj['kind']} of {obj['apiVersion']}")


def read_submission(file: str, namespace: str) -> Submission:
    found = documents.read([file])
    jobs = [document for document in found if document.kind == TRAIN_JOBS.kind]
    if len(jobs) != 1:
        what = "no TrainJob" if not jobs else f"{len(jobs)} TrainJobs ({', '.join(job.name for job in jobs)})"
        raise Failure(f"{found[0].file}: {what} in it; run takes a file with exactly one")
    for document in found:
        if not document.name:
            raise Failure(f"{document.file}:{document.place.line}: the {document.kind} has no metadata.name")
    return Submission(jobs[0].value, [document.value for document in found if document not in jobs], namespace)
