"""Volumes that a pod waits for: claims that are missing or not bound, and mounts that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence, label_of, name_of, phase_name, status_of
from trainwright.schema.jsonobject import Json

MISSING = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
UNBOUND = re.compile(
    r"unbound immediate PersistentVolumeClaims|didn't find available persistent volumes|PersistentVolumeClaims? .*bound"
)
MOUNT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")

CLAIM_MISSING = Cause(
    "ClaimMissing",
    "A volume claim does not exist",
    "The pod mounts a PersistentVolumeClaim that is not in its namespace.",
    "Create the claim, or correct its name in the runtime or the TrainJob: kubectl get pvc",
)
CLAIM_UNBOUND = Cause(
    "ClaimUnbound",
    "A volume claim has no volume yet",
    "The claim exists and nothing provides a volume for it: no storage class, a class whose provisioner is away, no"
    " volume of that size or access mode, or one in another zone.",
    "See what the claim waits for: kubectl describe pvc",
)
MOUNT_FAILED = Cause(
    "MountFailed",
    "A volume cannot be mounted",
    "The node got the pod and cannot mount one of its volumes: a ConfigMap or Secret that does not exist, a disk that"
    " another node holds, a network file system that does not answer.",
    "Create what is missing, or see the node's words: kubectl describe pod",
)
CAUSES = (CLAIM_MISSING, CLAIM_UNBOUND, MOUNT_FAILED)


def in_scheduling(evidence: Evidence, pod: Json, who: str, message: str) -> Finding | None:
    """What the scheduler's message says about volumes, if it does."""
    if found := MISSING.search(message):
        what = f'{who} waits: it mounts the claim "{found[1]}", which does not exist'
        return Finding(cause=CLAIM_MISSING, what=what, kind="PersistentVolumeClaim", name=found[1])
    if UNBOUND.search(message) is None:
        return None
    names = list(_claims_of(pod))
    unbound = [
        claim for claim in evidence.claims or () if name_of(claim) in names and status_of(claim).get("phase") != "Bound"
    ]
    return Finding(
        cause=CLAIM_UNBOUND,
        what=f"{who} waits for a volume: {message}",
        kind="PersistentVolumeClaim",
        name=name_of(unbound[0]) if unbound else next(iter(names), ""),
        details=tuple(line for claim in unbound for line in _told(evidence, claim)),
    )


def _claims_of(pod: Json) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim:
            yield str(claim)


def _told(evidence: Evidence, claim: Json) -> Iterator[str]:
    spec = claim.get("spec") or {}
    kind = spec.get("storageClassName") or "the default one"
    yield f"claim {name_of(claim)} is {status_of(claim).get('phase') or 'Pending'}; storage class: {kind}"
    for event in evidence.events:
        about = event.get("involvedObject") or {}
        if about.get("kind") == "PersistentVolumeClaim" and about.get("name") == name_of(claim):
            yield f"{event.get('reason')}: {event.get('message')}"


def find(evidence: Evidence) -> Iterator[Finding]:
    """Mounts that fail, by the events of pods that wait on their node."""
    waiting = {name_of(pod): pod for pod in evidence.pods if phase_name(pod) == "Pending"}
    for event in evidence.events:
        about = event.get("involvedObject") or {}
        pod = waiting.get(str(about.get("name") or ""))
        if pod is not None and event.get("reason") in MOUNT_REASONS:
            message = str(event.get("message") or "").rstrip(". ")
            what = f"{label_of(pod)} waits for a volume: {message}"
            yield Finding(cause=MOUNT_FAILED, what=what, kind="Pod", name=name_of(pod))
