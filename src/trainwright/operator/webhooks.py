"""The admission webhooks over HTTP: AdmissionReview in, AdmissionReview out, on the reference's paths.

A request that cannot be read, or a fault of ours, is an answer too: the API server then refuses the write with our
sentence instead of waiting for its time-out. Deletes never come here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from aiohttp import web

from trainwright.operator.admission import Admission, Decision, Review
from trainwright.operator.metrics import OperatorMetrics

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


def application(admission: Admission, metrics: OperatorMetrics) -> web.Application:
    app = web.Application(client_max_size=LARGEST_REVIEW)
    judges: Mapping[str, Judge] = {
        DEFAULT_TRAIN_JOB: admission.default_train_job,
        VALIDATE_TRAIN_JOB: admission.validate_train_job,
        VALIDATE_TRAINING_RUNTIME: admission.validate_training_runtime,
        VALIDATE_CLUSTER_TRAINING_RUNTIME: admission.validate_cluster_training_runtime,
    }
    for path, judge in judges.items():
        app.router.add_post(path, _handler(path, judge, metrics))
    return app


def _handler(path: str, judge: Judge, metrics: OperatorMetrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        started = time.monotonic()
        try:
            review = _decoder.decode(await request.read())
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            metrics.admitted(path, 400, time.monotonic() - started)
            return _answer(Decision(400, f"not an AdmissionReview: {error}").response(""), status=400)
        try:
            decision = await judge(review.request)
        except Exception as error:
            log.error("admission %s: %r", path, error, exc_info=error)
            decision = Decision(500, f"the operator failed on this request: {error!r}")
        metrics.admitted(path, 200, time.monotonic() - started)
        return _answer(decision.response(review.request.uid))

    return handle


def _answer(body: dict[str, object], status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
