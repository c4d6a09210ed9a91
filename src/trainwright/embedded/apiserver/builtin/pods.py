"""Pods: defaults, status, graceful deletion, QoS class."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainwright.embedded.apiserver.builtin.columns import POD_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import CREATE_ONLY, BuiltinKind, KindWithStatus
from trainwright.embedded.apiserver.builtin.podcells import pod_conditions
from trainwright.embedded.apiserver.builtin.podchanges import spec_changes, status_changes
from trainwright.embedded.apiserver.builtin.podrules import validate_pod_spec
from trainwright.embedded.apiserver.builtin.podtemplates import default_pod_spec
from trainwright.embedded.apiserver.builtin.podwarnings import pod_warnings
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

_STATUS = ["get", "patch", "update"]
_BOTH = ["create", "get"]
SUBRESOURCES: dict[str, Any] = {
    "attach": {"verbs": _BOTH, "kind": "PodAttachOptions"},
    "binding": {"verbs": ["create"], "kind": "Binding"},
    "ephemeralcontainers": {"verbs": _STATUS},
    "eviction": {"verbs": ["create"], "group": "policy", "version": "v1", "kind": "Eviction"},
    "exec": {"verbs": _BOTH, "kind": "PodExecOptions"},
    "log": {"verbs": ["get"]},
    "portforward": {"verbs": _BOTH, "kind": "PodPortForwardOptions"},
    "proxy": {"verbs": ["create", "delete", "get", "patch", "update"], "kind": "PodProxyOptions"},
    "resize": {"verbs": _STATUS},
    "status": {"verbs": _STATUS},
}
UNSUPPORTED = frozenset({"proxy", "ephemeralcontainers", "resize"})
IGNORED_ON_STATUS: FieldSet = {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}


class Pods(KindWithStatus):
    plural, kind = "pods", "Pod"
    short_names = ("po",)
    categories = ("all",)
    subresources = SUBRESOURCES
    columns = POD_COLUMNS
    metadata_repeats = 1
    tracks_generation = True
    returns_deleted = True
    ignored_on_status = IGNORED_ON_STATUS

    def served(self) -> Type:
        return dataclasses.replace(super().served(), row_conditions=pod_conditions)

    def default(self, obj: Json) -> None:
        default_pod_spec(obj.setdefault("spec", {}), is_pod=True)
        # Go's conversion keeps the two forms of the address in step.
        _agree_on_address(obj.setdefault("status", {}))

    def prepare_create(self, obj: Json) -> None:
        spec = obj["spec"]
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": self.now(),
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        obj["spec"] = old["spec"]
        meta, before = obj["metadata"], old["metadata"]
        for name in ("deletionTimestamp", "ownerReferences"):
            if name in before:
                meta[name] = before[name]
            else:
                meta.pop(name, None)
        qos = (old.get("status") or {}).get("qosClass")
        if qos:
            obj.setdefault("status", {}).setdefault("qosClass", qos)

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found = validate_pod_spec(spec, "spec", is_pod=True)
        if spec.get("nodeName") and spec.get("schedulingGates"):
            found.append(field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return spec_changes(obj["spec"], old["spec"])

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return list(status_changes(obj, old))

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        return pod_warnings(obj["spec"]) if old is None else []

    def check_graceful(self, obj: Json, grace: int | None) -> int | None:
        """The grace period; none for a pod that never started or has ended, because no kubelet would finish it."""
        period = grace
        if period is None:
            period = (obj.get("spec") or {}).get("terminationGracePeriodSeconds") or 0
        if not (obj.get("spec") or {}).get("nodeName"):
            period = 0
        if (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            period = 0
        return 1 if period < 0 else period

    def fields(self, obj: Json) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        ips = status.get("podIPs") or []
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.podIPs": ips[0].get("ip", "") if ips else "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


class Bindings(BuiltinKind):
    """Binds a pod to a node by a create, as the `binding` subresource of pods does; it is never stored."""

    plural, kind = "bindings", "Binding"
    verbs = CREATE_ONLY


def _agree_on_address(status: Json) -> None:
    """Make podIP the first of podIPs: if they differ podIP counts, if one is missing it is filled in."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from requests and limits of cpu and memory."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    members = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if spec.get("resources") is not None:
        members = [spec]  # resources of the whole pod take precedence
    for member in members:
        resources = member.get("resources") or {}
        limited: set[str] = set()
        for name, amount in (resources.get("requests") or {}).items():
            if name in ("cpu", "memory") and parse_quantity(amount):
                requests[name] = requests.get(name, parse_quantity("0")) + parse_quantity(amount)
        for name, amount in (resources.get("limits") or {}).items():
            if name in ("cpu", "memory") and parse_quantity(amount):
                limited.add(name)
                limits[name] = limits.get(name, parse_quantity("0")) + parse_quantity(amount)
        if limited != {"cpu", "memory"}:
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and requests == limits:
        return "Guaranteed"
    return "Burstable"
