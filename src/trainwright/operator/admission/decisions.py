"""What admission decides about TrainJobs and runtimes, apart from HTTP.

In: the request of an AdmissionReview. Out: a `Decision`: refused with the reference's words, or admitted with
warnings and perhaps a patch. The flow and the rules are the pipeline's; here is only where the objects that they need
are found.
"""

from __future__ import annotations

import base64

import msgspec

from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.resources import PRIORITY_CLASSES
from trainwright.api.runtime import runtime_from
from trainwright.api.times import rfc3339
from trainwright.api.trainjob import RuntimeRef, TrainJob, trainjob_from
from trainwright.client import Client, ClientError, Forbidden, NotFound
from trainwright.operator.runtimes.revisions import Revisions
from trainwright.operator.stores.kinds import Kinds, NotYetListed
from trainwright.operator.stores.views import Views
from trainwright.pipeline import (
    Framework,
    Observed,
    PipelineError,
    RuntimeNotFound,
    Workload,
    WorkloadUnknown,
    workload_of,
)
from trainwright.pipeline.admission import Found, judge, needs_priority_classes, runtime_needed
from trainwright.pipeline.mutation import PATCHES_KEPT, loses_patches, mutate
from trainwright.pipeline.validation import Verdict, validate_runtime
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
    """Reads runtimes and workloads from the stores, which every replica has, and asks the API server for what they do
    not have.
    """

    def __init__(self, client: Client, views: Views, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds
        self._revisions = Revisions(client, views)

    async def default_train_job(self, review: Review) -> Decision:
        new = review.object or {}
        changed = mutate(new, review.old_object, rfc3339(self._client.server_time.now()))
        warnings = (PATCHES_KEPT,) if loses_patches(new, review.old_object) else ()
        return Decision(warnings=warnings, patch=_patch(new, changed))

    async def validate_train_job(self, review: Review) -> Decision:
        try:
            job = trainjob_from(_of_namespace(review.object, review.namespace))
            old = trainjob_from(_of_namespace(review.old_object, review.namespace)) if review.old_object else None
        except msgspec.ValidationError as error:
            return refused(str(error), 400)
        framework = self._kinds.framework
        try:
            ref = runtime_needed(job, old)
            found = await self._find(job, old, ref, framework) if ref is not None else None
            return _decision(judge(job, old, found, framework))
        except PipelineError as error:
            return refused(str(error))
        except ClientError as error:
            return refused(str(FieldError(ErrorType.INTERNAL, "spec.runtimePatches", None, str(error))))

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
        return _decision(validate_runtime(runtime, is_update=review.operation == "UPDATE"))

    async def _find(self, job: TrainJob, old: TrainJob | None, ref: RuntimeRef, framework: Framework) -> Found:
        """What the judgement needs, as it is at this moment: the runtime is the job's revision once it has one."""
        workload = await self._workload(job, framework) if old is not None else None
        runtime = await self._revisions.read_bound(old, workload) if old is not None else None
        if runtime is None:
            try:
                runtime = await self._revisions.present_runtime(job.metadata.namespace, ref)
            except RuntimeNotFound as error:
                return Found(None, error.cause)
        classes = await self._priority_classes() if needs_priority_classes(runtime) else None
        return Found(runtime, observed=Observed(workload=workload, priority_classes=classes))

    async def _workload(self, job: TrainJob, framework: Framework) -> Workload | None:
        """The job's workload, of whichever kind it is."""
        try:
            stored = self._kinds.workload_of(job)
        except (NotYetListed, WorkloadUnknown):
            stored = None
        if stored is not None:
            return stored
        found = []
        for named in framework.watches:
            watch = named.watch
            if not watch.workload:
                continue
            try:
                thing = await self._client.get(
                    watch.resource, job.metadata.name, job.metadata.namespace, decode=watch.decode
                )
            except (NotFound, Forbidden):
                continue  # a kind that we may not read has no workload that we made
            found.append((named, thing))
        return workload_of(job, found, framework)

    async def _priority_classes(self) -> frozenset[str]:
        found = await self._client.list(PRIORITY_CLASSES, decode=PartialObjectMetadata, metadata_only=True)
        return frozenset(item.metadata.name for item in found.items or ())


def _decision(verdict: Verdict) -> Decision:
    code, message = (403, aggregate(verdict.errors)) if verdict.errors else (200, "")
    return Decision(code, message, tuple(verdict.warnings))


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
