"""Objects that the API server does not accept: webhooks, certificates, quotas, limits and rights.

In: the text of a refusal, from the operator's status or from an event of a Job or JobSet that could not create its
pods. Out: the cause. The texts are kube-apiserver's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence

CERTIFICATE = Cause(
    "CertificateExpired",
    "The certificate of a webhook has expired, or is not trusted",
    "The API server calls a webhook over TLS and does not trust its certificate: it has expired, or the caBundle of the"
    " webhook's configuration belongs to another certificate.",
    "Renew it: restart the webhook's Deployment, and compare caBundle with its Secret: trainwright doctor",
    "Trainwright renews its own certificate and caBundle by itself. A second operator that writes the same caBundle"
    " breaks it for both.",
)
WEBHOOK_AWAY = Cause(
    "WebhookAway",
    "A webhook does not answer",
    "The API server must ask a webhook before it accepts the object, and cannot reach it: its Deployment is not"
    " running, or a network policy lies between them.",
    "Start what serves the webhook: kubectl get validatingwebhookconfigurations, then its Service and pods",
)
WEBHOOK_REFUSED = Cause(
    "WebhookRefused",
    "A webhook refuses the object",
    "An admission webhook of the cluster, or of JobSet, does not allow the object; its message says why.",
    "Change what the message names, in the TrainJob or its runtime, or ask who runs the webhook",
)
QUOTA = Cause(
    "QuotaExceeded",
    "The namespace's quota is used up",
    "A ResourceQuota limits what all pods of the namespace may ask for together, and this job would exceed it.",
    "Ask for less, wait until other jobs of the namespace end, or raise the quota: kubectl describe resourcequota",
)
LIMIT_RANGE = Cause(
    "LimitRangeRefused",
    "A LimitRange refuses the pod",
    "A LimitRange says how much a container of the namespace may ask for at least or at most.",
    "Keep resourcesPerNode within the LimitRange: kubectl describe limitrange",
)
POD_SECURITY = Cause(
    "PodSecurityRefused",
    "The namespace's security level refuses the pod",
    "Pod Security admission forbids what the pod asks for, such as host paths, privileged containers or running as"
    " root.",
    "Set the securityContext that the message asks for, or use a namespace with another level",
)
SERVICE_ACCOUNT = Cause(
    "ServiceAccountMissing",
    "The pod's service account does not exist",
    "Pods of the job run as a service account that is not in the namespace.",
    "Create it: kubectl create serviceaccount, or remove serviceAccountName",
)
FORBIDDEN = Cause(
    "Forbidden",
    "Trainwright lacks a right",
    "The API server forbids the operator to do what it needs for this job.",
    "Apply the operator's role of this version: manifests/base/rbac",
)
NOT_CREATED = Cause(
    "PodsNotCreated",
    "The pods cannot be created",
    "The Job or JobSet controller tried to create pods or Jobs and was refused, for the reason in its event.",
    "Change what the message names",
)
CAUSES = (
    CERTIFICATE, WEBHOOK_AWAY, WEBHOOK_REFUSED, QUOTA, LIMIT_RANGE, POD_SECURITY, SERVICE_ACCOUNT, FORBIDDEN,
    NOT_CREATED,
)  # fmt: skip
_PATTERNS = (
    (
        CERTIFICATE,
        re.compile(r"failed calling webhook.*(?:x509|certificate|CERTIFICATE)|certificate has expired", re.S),
    ),
    (WEBHOOK_AWAY, re.compile(r"failed calling webhook|no endpoints available for service")),
    (WEBHOOK_REFUSED, re.compile(r'admission webhook "[^"]+" denied the request')),
    (QUOTA, re.compile(r"exceeded quota|failed quota")),
    (LIMIT_RANGE, re.compile(r"(?:maximum|minimum) \S+ (?:usage|limit|request)|limit to request ratio")),
    (POD_SECURITY, re.compile(r"violates PodSecurity")),
    (SERVICE_ACCOUNT, re.compile(r'error looking up service account|serviceaccounts? "[^"]+" not found')),
    (FORBIDDEN, re.compile(r'User "system:serviceaccount:[^"]*" cannot ')),
)
CREATORS = ("Job", "JobSet", "TrainJob")
CREATION_REASONS = ("FailedCreate", "JobCreationFailed", "FailedCreatePod", "CreationFailed", "FailedToCreate")


def cause_of(text: str) -> Cause | None:
    """The cause, if this is the text of a refusal."""
    return next((cause for cause, pattern in _PATTERNS if pattern.search(text)), None)


def find(evidence: Evidence) -> Iterator[Finding]:
    """What kept a controller from creating pods, by its last event about it."""
    for event in reversed(evidence.events):
        about = event.get("involvedObject") or {}
        if about.get("kind") not in CREATORS or event.get("type") != "Warning":
            continue
        message = str(event.get("message") or "")
        cause = cause_of(message)
        if cause is None and event.get("reason") in CREATION_REASONS:
            cause = NOT_CREATED
        if cause is not None:
            kind, name = str(about["kind"]), str(about.get("name") or "")
            what = f"pods are not created: {message.rstrip('. ')}"
            yield Finding(cause=cause, what=what, kind=kind, name=name)
            return
