"""The admission webhooks over HTTP: AdmissionReview in, AdmissionReview out, on the reference's paths.

A request that cannot be read, or a fault of ours, is an answer too: the API server then refuses the write with our
sentence instead of waiting for its time-out. Deletes never come here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trainwright.http.application import Application, Handler, Request
from trainwright.http.response import JSON, Response
from trainwright.operator.admission.decisions import Admission, Decision, Review
from trainwright.operator.figures.metrics import OperatorMetrics

log = logging.getLogger(__name__)

LARGEST_REVIEW = 16 * 2**20  # an object of 3 MiB, twice, and its managed fields
DEFAULT_TRAIN_JOB = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
VALIDATE_TRAIN_JOB = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
VALIDATE_TRAINING_RUNTIME = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
VALIDATE_CLUSTER_TRAINING_RUNTIME = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"

Judge = Callable[[Review], Awaitable[Decision]]


class _AdmissionReview(msgspec.Struct):
    request: Review
    apiVersion: str = ""
    kind: str = ""


_decoder = msgspec.json.Decoder(_AdmissionReview)


def application(admission: Admission, metrics: OperatorMetrics) -> Application:
    judges: Mapping[str, Judge] = {
        DEFAULT_TRAIN_JOB: admission.default_train_job,
        VALIDATE_TRAIN_JOB: admission.validate_train_job,
        VALIDATE_TRAINING_RUNTIME: admission.validate_training_runtime,
        VALIDATE_CLUSTER_TRAINING_RUNTIME: admission.validate_cluster_training_runtime,
    }
    routes = {path: {"POST": _handler(path, judge, metrics)} for path, judge in judges.items()}
    return Application(routes, largest_body=LARGEST_REVIEW)


def _handler(path: str, judge: Judge, metrics: OperatorMetrics) -> Handler:
    async def handle(request: Request) -> Response:
        started = time.monotonic()
        if request.is_too_large:
            return _answer(Decision(413, f"larger than {LARGEST_REVIEW} bytes").response(""), status=413)
        try:
            review = _decoder.decode(request.body)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            metrics.admitted(path, 400, time.monotonic() - started)
            return _answer(Decision(400, f"not an AdmissionReview: {error}").response(""), status=400)
        try:
            decision = await judge(review.request)
        except Exception as error:
            log.error("admission %s: %r", path, error, exc_info=error)
            decision = Decision(500, f"the operator failed on this request: {error!r}")
        code = decision.code if decision.code >= 500 else 200  # a refusal is an answer, a failure of ours is not
        metrics.admitted(path, code, time.monotonic() - started)
        return _answer(decision.response(review.request.uid))

    return handle


def _answer(body: dict[str, object], status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(body), JSON)
