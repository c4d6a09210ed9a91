"""What admission decides about TrainJobs and runtimes, apart from HTTP (D3, D5, D22).

In: the request of an AdmissionReview. Out: a `Decision`: refused with the reference's words, or admitted with
warnings and perhaps a patch. The rules are the pipeline's; here is only where the runtime that they need is found.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.resources import PRIORITY_CLASSES
from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.times import rfc3339
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.client import Client, ClientError, NotFound
from trainwright.operator.revisions import Revisions
from trainwright.pipeline import (
    Framework,
    Observed,
    PipelineError,
    RuntimeNotFound,
    RuntimeNotSupported,
    Workload,
    runtime_kind,
    workload_of,
)
from trainwright.pipeline.mutation import mutate
from trainwright.pipeline.validation import needs_runtime, runtime_not_found, validate_runtime, validate_trainjob
from trainwright.schema.errors import ErrorType, FieldError, aggregate
from trainwright.schema.jsonobject import Json


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """`AdmissionReview.request`, as far as it is read."""

    uid: str
    operation: str = "CREATE"
    namespace: str = ""
    object: Json | None = None
    old_object: Json | None = None


class Decision(msgspec.Struct, frozen=True):
    """`code` 200 admits. `patch` is a JSON patch."""

    code: int = 200
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: list[Json] | None = None

    def response(self, uid: str) -> Json:
        """The body to answer with."""
        response: Json = {"uid": uid, "allowed": self.code == 200}
        if self.code != 200:
            response["status"] = {"status": "Failure", "message": self.message, "code": self.code}
            if self.code == 403:
                response["status"]["reason"] = "Forbidden"
        if self.warnings:
            response["warnings"] = list(self.warnings)
        if self.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(self.patch)).decode()
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def refused(message: str, code: int = 403) -> Decision:
    return Decision(code, message)


class Admission:
    def __init__(self, client: Client, framework: Framework, *, now: Callable[[], datetime] | None = None) -> None:
        self._client = client
        self._framework = framework
        self._revisions = Revisions(client)
        self._now = now or (lambda: datetime.fromtimestamp(client.server_time.now(), UTC))

    async def default_train_job(self, review: Review) -> Decision:
        new = review.object or {}
        changed = mutate(new, review.old_object, rfc3339(self._now()))
        return Decision(patch=_patch(new, changed))

    async def validate_train_job(self, review: Review) -> Decision:
        try:
            job = trainjob_from(_of_namespace(review.object, review.namespace))
            old = trainjob_from(_of_namespace(review.old_object, review.namespace)) if review.old_object else None
        except msgspec.ValidationError as error:
            return refused(str(error), 400)
        if job.spec is None:
            return refused(str(RuntimeNotSupported("")))
        try:
            runtime_kind(job.spec.runtime_ref)
        except RuntimeNotSupported as error:
            return refused(str(error))
        if not needs_runtime(job, old):
            return Decision()
        try:
            workload = await self._workload(job) if old is not None else None
            runtime = await self._runtime(job, old, workload)
            gang = runtime.spec.pod_group_policy if runtime.spec else None
            classes = await self._priority_classes() if gang is not None and gang.volcano is not None else None
        except RuntimeNotFound as error:
            return refused(str(runtime_not_found(job.spec.runtime_ref, error.cause)))
        except PipelineError as error:
            return refused(str(error))
        except ClientError as error:
            return refused(str(FieldError(ErrorType.INTERNAL, "spec.runtimePatches", None, str(error))))
        try:
            observed = Observed(workload=workload, priority_classes=classes)
            verdict = validate_trainjob(job, runtime, old, observed, self._framework)
        except PipelineError as error:
            return refused(str(error))
        if verdict.errors:
            return Decision(403, aggregate(verdict.errors), tuple(verdict.warnings))
        return Decision(warnings=tuple(verdict.warnings))

    async def validate_training_runtime(self, review: Review) -> Decision:
        if review.operation == "UPDATE":
            return Decision()  # as the reference: an update of the namespaced kind is never judged
        return self._judge_runtime(review)

    async def validate_cluster_training_runtime(self, review: Review) -> Decision:
        return self._judge_runtime(review)

    def _judge_runtime(self, review: Review) -> Decision:
        try:
            runtime = runtime_from(review.object or {})
        except msgspec.ValidationError as error:
            return refused(str(error), 400)
        verdict = validate_runtime(runtime, is_update=review.operation == "UPDATE")
        if verdict.errors:
            return Decision(403, aggregate(verdict.errors), tuple(verdict.warnings))
        return Decision(warnings=tuple(verdict.warnings))

    async def _runtime(self, job: TrainJob, old: TrainJob | None, workload: Workload | None) -> TrainingRuntime:
        """The runtime to judge by: the job's revision once it has one (D5), else the one that is there now."""
        if old is not None:
            bound = await self._revisions.read_bound(old, workload)
            if bound is not None:
                return bound
        assert job.spec is not None
        return runtime_from(await self._revisions.live_runtime(job.metadata.namespace, job.spec.runtime_ref))

    async def _workload(self, job: TrainJob) -> Workload | None:
        """The job's workload as it is at this moment, of whichever kind it is."""
        found = []
        for named in self._framework.watches:
            watch = named.watch
            if not watch.workload:
                continue
            try:
                thing = await self._client.get(
                    watch.resource, job.metadata.name, job.metadata.namespace, decode=watch.decode
                )
            except NotFound:
                continue
            found.append((named, thing))
        return workload_of(job, found, self._framework)

    async def _priority_classes(self) -> frozenset[str]:
        found = await self._client.list(PRIORITY_CLASSES, decode=PartialObjectMetadata, metadata_only=True)
        return frozenset(item.metadata.name for item in found.items or ())


def _of_namespace(body: Json | None, namespace: str) -> Json:
    """The object, with the namespace that a client may leave to the path."""
    body = body or {}
    metadata = body.get("metadata") or {}
    return body if metadata.get("namespace") else {**body, "metadata": {**metadata, "namespace": namespace}}


def _patch(old: Json, new: Json) -> list[Json] | None:
    """The JSON patch from one object to the other, by whole members of `metadata` and `spec`."""
    operations: list[Json] = []
    for part in ("metadata", "spec"):
        before, after = old.get(part) or {}, new.get(part) or {}
        for name, value in after.items():
            if name not in before:
                operations.append({"op": "add", "path": f"/{part}/{name}", "value": value})
            elif before[name] != value:
                operations.append({"op": "replace", "path": f"/{part}/{name}", "value": value})
    return operations or None
