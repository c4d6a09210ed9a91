"""JobSet's admission webhooks over HTTPS, on JobSet's own paths: AdmissionReview in, AdmissionReview out.

`application` is what an HTTP server serves; `configurations` are the objects by which an API server calls it, as in
JobSet's manifests. A pod of another kind never comes here: the match condition looks for JobSet's annotation.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from trainwright.api.wellknown import JOBSET_NAME
from trainwright.embedded.workloads.jobset.admission import JobSetAdmission, Review, Verdict
from trainwright.http.application import Application, Handler, Request
from trainwright.http.response import JSON, Response
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)

SERVICE = ("jobset-system", "jobset-webhook-service")
LARGEST_REVIEW = 16 * 2**20
DEFAULT_JOB_SET = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
VALIDATE_JOB_SET = "/validate-jobset-x-k8s-io-v1alpha2-jobset"
DEFAULT_POD = "/mutate--v1-pod"
VALIDATE_POD = "/validate--v1-pod"

Judge = Callable[[Review], Awaitable[Verdict]]


class _AdmissionReview(msgspec.Struct):
    request: Review


_decoder = msgspec.json.Decoder(_AdmissionReview)


def application(admission: JobSetAdmission) -> Application:
    judges: dict[str, Judge] = {
        DEFAULT_JOB_SET: admission.default_job_set,
        VALIDATE_JOB_SET: admission.validate_job_set,
        DEFAULT_POD: admission.default_pod,
        VALIDATE_POD: admission.validate_pod,
    }
    return Application(
        {path: {"POST": _handler(path, judge)} for path, judge in judges.items()}, largest_body=LARGEST_REVIEW
    )


def _handler(path: str, judge: Judge) -> Handler:
    async def handle(request: Request) -> Response:
        uid = ""
        try:
            review = _decoder.decode(request.body).request
            uid = review.uid
            verdict = await judge(review)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            verdict = _refused(400, f"not an AdmissionReview: {error}")
        except Exception as error:
            log.error("admission %s: %r", path, error, exc_info=error)
            verdict = _refused(500, f"the JobSet webhook failed on this request: {error!r}")
        return Response(200, msgspec.json.encode(verdict.response(uid)), JSON)

    return handle


def _refused(code: int, message: str) -> Verdict:
    return Verdict({"status": "Failure", "message": message, "code": code})


def configurations(client_config: Callable[[str], Json]) -> Iterator[Json]:
    """The two webhook configurations. `client_config`: path → where the API server finds the webhook."""
    job_sets = ("jobset.x-k8s.io", "v1alpha2", "jobsets")
    pods = ("", "v1", "pods")
    of_job_sets = f"has(object.metadata.annotations) && '{JOBSET_NAME}' in object.metadata.annotations"
    conditions = [{"name": "of-a-jobset", "expression": of_job_sets}]
    hooks = {
        "Mutating": [
            ("mjobset.kb.io", DEFAULT_JOB_SET, job_sets, ["CREATE"], None),
            ("mpod.kb.io", DEFAULT_POD, pods, ["CREATE"], conditions),
        ],
        "Validating": [
            ("vjobset.kb.io", VALIDATE_JOB_SET, job_sets, ["CREATE", "UPDATE"], None),
            (
                "vpod.kb.io",
                VALIDATE_POD,
                pods,
                ["CREATE"],
                [{"name": "exclusive", "expression": f"{of_job_sets} && {_EXCLUSIVE}"}],
            ),
        ],
    }
    for kind, webhooks in hooks.items():
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": f"jobset-{kind.lower()}-webhook-configuration"},
            "webhooks": [_webhook(client_config, *webhook) for webhook in webhooks],
        }


_EXCLUSIVE = "'alpha.jobset.sigs.k8s.io/exclusive-topology' in object.metadata.annotations"


def _webhook(
    client_config: Callable[[str], Json],
    name: str,
    path: str,
    kind: tuple[str, str, str],
    operations: list[str],
    conditions: list[Json] | None,
) -> Json:
    group, version, resource = kind
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": operations}
    webhook: Json = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config(path),
        "failurePolicy": "Fail",
        "rules": [rule],
        "sideEffects": "None",
    }
    return {**webhook, "matchConditions": conditions} if conditions else webhook
