"""JobSet's admission: defaults and rules of JobSets and of their pods, with the objects that the rules ask for.

In: the request of an AdmissionReview. Out: a `Verdict`. What a rule says is in `defaults`, `validation`, `changes` and
`placement`; here is only where claims, leaders and nodes are found.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

import msgspec

from trainwright.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from trainwright.client import Client, NotFound
from trainwright.embedded.workloads.features import DEFAULTS, Features
from trainwright.embedded.workloads.jobset import placement, volume_claims
from trainwright.embedded.workloads.jobset.changes import faults_of_change
from trainwright.embedded.workloads.jobset.defaults import admitted
from trainwright.embedded.workloads.jobset.validation import faults_of_new
from trainwright.embedded.workloads.objects import ApiObject, without_nulls
from trainwright.schema.errors import FieldError, aggregate
from trainwright.schema.jsonobject import Json


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """`AdmissionReview.request`, as far as it is read."""

    uid: str
    operation: str = "CREATE"
    namespace: str = ""
    object: Json | None = None
    old_object: Json | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Admitted, with a JSON patch perhaps, or refused with a Status."""

    status: Json | None = None
    patch: list[Json] = field(default_factory=list)

    def response(self, uid: str) -> Json:
        response: Json = {"uid": uid, "allowed": self.status is None}
        if self.status is not None:
            response["status"] = self.status
        if self.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(self.patch)).decode()
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


ADMITTED = Verdict()


class JobSetAdmission:
    def __init__(self, client: Client, gates: Features = DEFAULTS) -> None:
        self._client = client
        self._gates = gates

    async def default_job_set(self, review: Review) -> Verdict:
        spec = (review.object or {}).get("spec") or {}
        return Verdict(patch=_patch("/spec", spec, admitted(spec)) if "spec" in (review.object or {}) else [])

    async def validate_job_set(self, review: Review) -> Verdict:
        new = review.object or {}
        name = (new.get("metadata") or {}).get("name", "")
        if review.operation == "UPDATE":
            return _verdict(name, faults_of_change(review.old_object or {}, new, self._gates))
        spec: Json = without_nulls(new.get("spec") or {})
        claims = await self._claims(name, spec, review.namespace)
        return _verdict(name, faults_of_new(name, spec, self._gates, claims))

    async def default_pod(self, review: Review) -> Verdict:
        pod = review.object or {}
        if not placement.is_ours(pod):
            return ADMITTED
        node: dict[str, str] | None = None
        if placement.topology_key(pod) is not None and not placement.is_leader(pod):
            leader, _ = await self._leader(pod, review.namespace)
            if leader is not None and leader.spec.get("nodeName"):
                node = await self._node_labels(leader.spec["nodeName"])
        changed = placement.placed(pod, node)
        return Verdict(
            patch=[
                *_patch("/metadata", pod.get("metadata") or {}, changed["metadata"]),
                *_patch("/spec", pod.get("spec") or {}, changed["spec"]),
            ]
        )

    async def validate_pod(self, review: Review) -> Verdict:
        pod = review.object or {}
        if not placement.is_ours(pod) or placement.topology_key(pod) is None or placement.is_leader(pod):
            return ADMITTED
        leader, fault = await self._leader(pod, review.namespace)
        text = placement.refusal(pod, fault, leader is not None and bool(leader.spec.get("nodeName")))
        if text is None:
            return ADMITTED
        return Verdict({"status": "Failure", "message": text, "reason": "Forbidden", "code": 403})

    async def _claims(self, name: str, spec: Json, namespace: str) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for policy in spec.get("volumeClaimPolicies") or ():
            for template in policy.get("templates") or ():
                claim = volume_claims.claim_name(name, template)
                try:
                    there = await self._client.get(PERSISTENT_VOLUME_CLAIMS, claim, namespace, decode=ApiObject)
                except NotFound:
                    continue
                found[claim] = {"namespace": namespace, "spec": there.spec}
        return found

    async def _leader(self, pod: Json, namespace: str) -> tuple[ApiObject | None, str | None]:
        """The leader that a follower belongs to, or why there is none."""
        name = placement.leader_name(pod)
        job_key = ((pod.get("metadata") or {}).get("labels") or {}).get(placement.JOB_KEY)
        selector = f"{placement.JOB_KEY}={job_key}"
        listed = await self._client.list(PODS, namespace, decode=ApiObject, label_selector=selector)
        leaders = [
            found
            for found in listed.items or ()
            if found.name.rpartition("-")[0] == name and not found.is_being_deleted
        ]
        if len(leaders) != 1:
            text = f"expected 1 leader pod ({name}), but got {len(leaders)}. this is an expected, transient error"
            return None, text
        owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
        mine = next((owner.get("uid") for owner in owners if owner.get("controller")), None)
        theirs = leaders[0].metadata.controller
        if mine is None:
            return None, "follower pod has no owner reference"
        if theirs is None:
            return None, f'leader pod "{leaders[0].name}" has no owner reference'
        if theirs.uid != mine:
            return None, f"follower pod owner UID ({mine}) != leader pod owner UID ({theirs.uid})"
        return leaders[0], None

    async def _node_labels(self, name: str) -> dict[str, str]:
        node = await self._client.get(NODES, name, decode=ApiObject)
        return node.metadata.labels or {}


def _verdict(name: str, faults: list[FieldError]) -> Verdict:
    if not faults:
        return ADMITTED
    causes = [{"reason": fault.reason, "message": fault.body, "field": fault.field or "<nil>"} for fault in faults]
    return Verdict(
        {
            "status": "Failure",
            "message": f'JobSet.jobset.x-k8s.io "{name}" is invalid: {aggregate(faults)}',
            "reason": "Invalid",
            "details": {"name": name, "group": "jobset.x-k8s.io", "kind": "JobSet", "causes": causes},
            "code": 422,
        }
    )


def _patch(at: str, before: Json, after: Json) -> list[Json]:
    """The JSON patch from one object to the other, by whole members."""
    operations: list[Json] = []
    for name, value in after.items():
        path = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in before or before[name] is None:
            operations.append({"op": "add", "path": path, "value": value})
        elif before[name] != value:
            operations.append({"op": "replace", "path": path, "value": value})
    return operations
