"""Changes of a pod: the few mutable fields of its spec, and the transitions of its status."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Iterator
from typing import Any

from trainwright.embedded.apiserver.builtin.differences import difference
from trainwright.embedded.apiserver.builtin.podrules import validate_pod_spec, validate_tolerations
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults, label_key_faults

IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
NOT_NEGATIVE = "must be a non-negative integer"


def spec_changes(new: Json, old: Json) -> list[FieldError]:
    """Faults of the new spec, then of its difference from the old one."""
    found = validate_pod_spec({**new, "ephemeralContainers": None}, "spec", is_pod=True)
    for group in ("containers", "initContainers"):
        members, before = new.get(group) or [], old.get(group) or []
        if len(members) != len(before):
            return [*found, field.forbidden(f"spec.{group}", "pod updates may not add or remove containers")]
        for index, container in enumerate(members):
            if not container.get("image"):
                found.append(field.required(f"spec.{group}[{index}].image"))
    deadline, final = _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    found += deadline
    if final:
        return found
    found += _tolerations(new, old)
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            found.append(field.forbidden(f"spec.schedulingGates[{index}].name", text))
    fixed = _without_mutable(new, old)
    if known:
        found += _gated(fixed, old)
    if fixed != old:
        found.append(field.forbidden("spec", IMMUTABLE + difference(old, fixed)))
    return found


def _deadline(wanted: int | None, before: int | None) -> tuple[list[FieldError], bool]:
    """The fault of a changed deadline, and whether kube-apiserver stops validating there."""
    at = "spec.activeDeadlineSeconds"
    if wanted is None:
        text = "must not update from a positive integer to nil value"
        return ([] if before is None else [field.invalid(at, None, text)]), False
    if wanted < 0 or wanted > 2**31 - 1:
        return [field.invalid(at, wanted, "must be between 0 and 2147483647, inclusive")], True
    if before is not None and before < wanted:
        return [field.invalid(at, wanted, "must be less than or equal to previous value")], True
    return [], False


def _tolerations(new: Json, old: Json) -> list[FieldError]:
    def known(toleration: Json) -> tuple[Any, ...]:
        return tuple(toleration.get(name) for name in ("key", "operator", "value", "effect"))

    kept = {known(toleration) for toleration in new.get("tolerations") or ()}
    if not all(known(toleration) in kept for toleration in old.get("tolerations") or ()):
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [field.forbidden("spec.tolerations", text)]
    return validate_tolerations(new, "spec")


def _without_mutable(new: Json, old: Json) -> Json:
    """The new spec with the old values of its mutable fields."""
    fixed = copy.deepcopy(new)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _put_back(fixed, old, name)
    for group in ("containers", "initContainers"):
        for container, before in zip(fixed.get(group) or (), old.get(group) or (), strict=True):
            _put_back(container, before, "image")
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        _put_back(fixed, old, "terminationGracePeriodSeconds")
    return fixed


def _put_back(target: Json, old: Json, name: str) -> None:
    if name in old:
        target[name] = old[name]
    else:
        target.pop(name, None)


def _gated(fixed: Json, old: Json) -> list[FieldError]:
    """Changes of a gated pod, which may be restricted to fewer nodes."""
    found: list[FieldError] = []
    wanted, before = fixed.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(wanted.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(field.invalid("spec.nodeSelector", wanted, text))
    _put_back(fixed, old, "nodeSelector")
    affinity, former = fixed.get("affinity"), (old.get("affinity") or {}).get("nodeAffinity")
    chosen = (affinity or {}).get("nodeAffinity")
    if chosen == former:
        return found
    found += _node_affinity(chosen or {}, former or {})
    if affinity is None:
        fixed["affinity"] = {"nodeAffinity": former}
    elif old.get("affinity") is None and not affinity.get("podAffinity") and not affinity.get("podAntiAffinity"):
        del fixed["affinity"]
    else:
        _put_back(affinity, old.get("affinity") or {}, "nodeAffinity")
    return found


def _node_affinity(new: Json, old: Json) -> list[FieldError]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    at = f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms"
    before = (old.get(required) or {}).get("nodeSelectorTerms") or []
    terms = (new.get(required) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [field.invalid(at, terms or None, text)]
    found: list[FieldError] = []
    for index, (was, term) in enumerate(zip(before, terms, strict=False)):
        grown = all(
            (term.get(name) or [])[: len(was.get(name) or [])] == (was.get(name) or [])
            for name in ("matchExpressions", "matchFields")
        )
        # An empty term selects nothing, so adding to it would widen the choice.
        if not grown or (not any(was.values()) and any(term.values())):
            text = "only additions are allowed (no mutations or deletions)"
            found.append(field.invalid(f"{at}[{index}]", term, text))
    return found


def status_changes(pod: Json, old_pod: Json) -> Iterator[FieldError]:
    status, old, spec = pod.get("status") or {}, old_pod.get("status") or {}, old_pod["spec"]
    for index, condition in enumerate(status.get("conditions") or ()):
        at, kind = f"status.conditions[{index}]", condition.get("type", "")
        if (condition.get("observedGeneration") or 0) < 0:
            yield field.invalid(f"{at}.observedGeneration", condition["observedGeneration"], NOT_NEGATIVE)
        if kind not in SYSTEM_CONDITIONS:
            yield from (field.invalid(f"{at}.Type", kind, text) for text in label_key_faults(kind))
    node = status.get("nominatedNodeName", "")
    if node and node != old.get("nominatedNodeName", ""):
        yield from (field.invalid("status.nominatedNodeName", node, text) for text in dns1123_subdomain_faults(node))
        if spec.get("nodeName"):
            text = "may not be set on pods that are already bound to a node"
            yield field.forbidden("status.nominatedNodeName", text)
    if (status.get("observedGeneration") or 0) < 0:
        yield field.invalid("status.observedGeneration", status["observedGeneration"], NOT_NEGATIVE)
    if status.get("qosClass") != old.get("qosClass"):
        yield field.invalid("status.qosClass", status.get("qosClass", ""), "field is immutable")
    yield from _revived(status, old, spec, "containers", "containerStatuses")
    yield from _revived(status, old, spec, "initContainers", "initContainerStatuses")
    yield from _addresses(status, old, "podIPs")
    hosts = status.get("hostIPs") or []
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        yield field.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), "must be equal to `hostIP`")
    yield from _addresses(status, old, "hostIPs")


def _revived(status: Json, old: Json, spec: Json, group: str, name: str) -> Iterator[FieldError]:
    """A terminated container stays terminated unless its restart policy allows a restart."""
    containers = {container.get("name"): container for container in spec.get(group) or ()}
    running = {s.get("name") for s in status.get(name) or () if not (s.get("state") or {}).get("terminated")}
    for index, was in enumerate(old.get(name) or ()):
        ended = (was.get("state") or {}).get("terminated")
        if ended is None or was.get("name") not in running:
            continue
        container = containers.get(was.get("name"))
        policy = None if container is None else container.get("restartPolicy") or spec.get("restartPolicy")
        if policy == "Always" or (policy == "OnFailure" and ended.get("exitCode")):
            continue
        text = "may not be transitioned to non-terminated state"
        yield field.forbidden(f"status.{name}[{index}].state", text)


def _addresses(status: Json, old: Json, name: str) -> Iterator[FieldError]:
    """Addresses must be valid, unless they were there before, and at most one of each family."""
    addresses = [entry.get("ip", "") for entry in status.get(name) or ()]
    known = {entry.get("ip", "") for entry in old.get(name) or ()}
    families: list[int] = []
    for index, address in enumerate(addresses):
        try:
            families.append(ipaddress.ip_address(address).version)
        except ValueError:
            if address not in known:
                text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                yield field.invalid(f"status.{name}[{index}]", address, text)
    if len(addresses) > 1 and sorted(families) != [4, 6]:
        shown = json_text([{"IP": address} for address in addresses])
        text = "may specify no more than one IP for each IP family"
        yield field.invalid(f"status.{name}", field.OMITTED, f"{shown}: {text}")
