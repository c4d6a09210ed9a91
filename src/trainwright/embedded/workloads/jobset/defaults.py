"""The defaults of a JobSet's fields: the webhook writes them, and the controller assumes them.

`defaulted` fills in what JobSet's webhook does and, for JobSets that no webhook has seen, what the CRD does.
"""

from __future__ import annotations

import copy

from trainwright.embedded.workloads.objects import without_nulls
from trainwright.schema.jsonobject import Json


def defaulted(spec: Json) -> Json:
    """A copy of the spec with every default filled in, without nulls."""
    result: Json = without_nulls(copy.deepcopy(spec))
    if result.get("successPolicy") is None:
        result["successPolicy"] = {"operator": "All"}
    if result.get("startupPolicy") is None:
        result["startupPolicy"] = {"startupPolicyOrder": "AnyOrder"}
    network = result.setdefault("network", {}) or {}
    result["network"] = network
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for replicated in result.setdefault("replicatedJobs", []):
        replicated.setdefault("name", "")
        replicated.setdefault("replicas", 1)
        replicated.setdefault("groupName", "default")
        job = replicated.setdefault("template", {}).setdefault("spec", {})
        job.setdefault("completionMode", "Indexed")
        job.setdefault("template", {}).setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
    for position, rule in enumerate((result.get("failurePolicy") or {}).get("rules") or ()):
        rule["name"] = rule.get("name") or f"failurePolicyRule{position}"
        rule.setdefault("action", "RestartJobSet")
    for policy in result.get("volumeClaimPolicies") or ():
        policy.setdefault("retentionPolicy", {"whenDeleted": "Delete"})
    return result


def admitted(spec: Json) -> Json:
    """The spec as JobSet's mutating webhook leaves it: defaults, and the empty values that Go writes for members which
    the user had to give. The schema's words about those are the ones that the user sees.
    """
    result = defaulted(spec)
    if not result["replicatedJobs"]:
        del result["replicatedJobs"]
    for replicated in result.get("replicatedJobs") or ():
        replicated["template"]["spec"]["template"]["spec"].setdefault("containers", None)
    result["successPolicy"].setdefault("operator", "")
    result["startupPolicy"].setdefault("startupPolicyOrder", "")
    if result.get("coordinator") is not None:
        result["coordinator"].setdefault("replicatedJob", "")
    given = (spec.get("failurePolicy") or {}).get("rules") or ()
    for before, rule in zip(given, (result.get("failurePolicy") or {}).get("rules") or (), strict=False):
        rule["action"] = (before or {}).get("action") or ""
    return result
