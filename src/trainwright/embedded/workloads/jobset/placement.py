"""Exclusive placement: one Job for each topology domain. What JobSet's pod webhook writes and refuses. Pure.

The first pod of a Job (the leader) gets affinity to its own Job and anti-affinity to all others; the other pods follow
it by a nodeSelector, and are refused until it has a node.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from trainwright.api.wellknown import COMPLETION_INDEX, JOBSET_NAME
from trainwright.embedded.workloads.jobset.children import EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY, PREFIX
from trainwright.schema.jsonobject import Json

JOB_KEY = f"{PREFIX}job-key"
PRIORITY = f"{PREFIX}priority"
RULES = "requiredDuringSchedulingIgnoredDuringExecution"
NOT_SCHEDULED = "leader pod not yet scheduled, not creating follower pod. this is an expected, transient error"


def is_ours(pod: Json) -> bool:
    """Whether JobSet's pod webhook has anything to do with the pod."""
    annotations = _annotations(pod)
    return JOBSET_NAME in annotations and NODE_SELECTOR_STRATEGY not in annotations


def topology_key(pod: Json) -> str | None:
    return _annotations(pod).get(EXCLUSIVE_TOPOLOGY)


def is_leader(pod: Json) -> bool:
    return _annotations(pod).get(COMPLETION_INDEX) == "0"


def placed(pod: Json, leader_node: Mapping[str, str] | None) -> Json:
    """The pod as the webhook leaves it. `leader_node`: labels of its leader's node, if it is a follower and there is
    one.
    """
    result = copy.deepcopy(pod)
    priority = (pod.get("spec") or {}).get("priority")
    labels = result.setdefault("metadata", {}).setdefault("labels", {})
    if priority is not None:
        labels[PRIORITY] = str(priority)
    key = topology_key(pod)
    if key is None:
        return result
    if is_leader(pod):
        _set_affinities(result["spec"], labels, key)
    elif leader_node is not None and key in leader_node:
        result["spec"]["nodeSelector"] = {**(result["spec"].get("nodeSelector") or {}), key: leader_node[key]}
    return result


def refusal(pod: Json, leader_fault: str | None, leader_has_node: bool) -> str | None:
    """Why a follower cannot be created yet, or None. `leader_fault`: why its leader was not found."""
    key = topology_key(pod)
    if not is_ours(pod) or key is None or is_leader(pod):
        return None
    selector = (pod.get("spec") or {}).get("nodeSelector")
    if not selector:
        return "follower pod node selector not set"
    if key not in selector:
        return f"follower pod node selector for topology domain not found. missing selector: {key}"
    if leader_fault is not None:
        return leader_fault
    return None if leader_has_node else NOT_SCHEDULED


def leader_name(pod: Json) -> str | None:
    """The name of the follower's leader, without its random part."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    parts = [labels.get(name) for name in (JOBSET_NAME, f"{PREFIX}replicatedjob-name", f"{PREFIX}job-index")]
    return f"{'-'.join(map(str, parts))}-0" if None not in parts else None


def _annotations(pod: Json) -> Json:
    annotations: Json = (pod.get("metadata") or {}).get("annotations") or {}
    return annotations


def _set_affinities(spec: Json, labels: Mapping[str, str], key: str) -> None:
    own, priority = labels.get(JOB_KEY, ""), labels.get(PRIORITY, "")
    affinity = spec["affinity"] = spec.get("affinity") or {}
    mine = [{"key": JOB_KEY, "operator": "In", "values": [own]}]
    others = [
        {"key": JOB_KEY, "operator": "Exists"},
        {"key": JOB_KEY, "operator": "NotIn", "values": [own]},
        {"key": PRIORITY, "operator": "In", "values": [priority]},
    ]
    for kind, expressions in (("podAffinity", mine), ("podAntiAffinity", others)):
        term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": key, "namespaceSelector": {}}
        rules = affinity[kind] = affinity.get(kind) or {}
        rules[RULES] = [*(rules.get(RULES) or []), term]
