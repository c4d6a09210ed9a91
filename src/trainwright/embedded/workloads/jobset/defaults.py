"""The defaults of a JobSet's fields. In a cluster JobSet's webhook writes them; here the controller assumes them."""

from __future__ import annotations

import copy

from trainwright.schema.jsonobject import Json


def defaulted(spec: Json) -> Json:
    """A copy of the spec with every default filled in."""
    result = copy.deepcopy(spec)
    if not result.get("successPolicy"):
        result["successPolicy"] = {"operator": "All"}
    if not result.get("startupPolicy"):
        result["startupPolicy"] = {"startupPolicyOrder": "AnyOrder"}
    network = result.setdefault("network", {}) or {}
    result["network"] = network
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for replicated in result.get("replicatedJobs") or ():
        replicated.setdefault("replicas", 1)
        replicated.setdefault("groupName", "default")
        job = replicated["template"]["spec"]
        job.setdefault("completionMode", "Indexed")
        job["template"]["spec"].setdefault("restartPolicy", "OnFailure")
    for position, rule in enumerate((result.get("failurePolicy") or {}).get("rules") or ()):
        rule["name"] = rule.get("name") or f"failurePolicyRule{position}"
    return result
