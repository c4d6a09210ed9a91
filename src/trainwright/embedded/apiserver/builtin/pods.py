"""Pods: defaults, what may change, how they end."""

from __future__ import annotations

from typing import Any

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.quantity import parse_quantity
from ..errors import Json
from ..fieldmanager.fieldset import FieldSet
from ..metadata import now_text
from .podrules import validate_pod_spec
from .podtemplates import default_pod_spec
from .podwarnings import pod_warnings
from .strategy import StatusStrategy

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
UNSUPPORTED = frozenset({"attach", "exec", "portforward", "proxy", "ephemeralcontainers", "resize"})
IGNORED_ON_STATUS: FieldSet = {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}
IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class Pods(StatusStrategy):
    metadata_repeats = 1
    tracks_generation = True
    returns_deleted = True
    ignored_on_status = IGNORED_ON_STATUS

    def default(self, obj: Json) -> None:
        default_pod_spec(obj.setdefault("spec", {}), is_pod=True)
        # What an empty status becomes on the way through Go's types.
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
                    "lastTransitionTime": now_text(),
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
            obj.setdefault("status", {})["qosClass"] = qos

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_pod_spec(obj["spec"], "spec", is_pod=True)

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        ephemeral = obj["spec"].get("ephemeralContainers")
        spec = {**obj["spec"], "ephemeralContainers": None} if ephemeral else obj["spec"]
        found = validate_pod_spec(spec, "spec", is_pod=True)
        for group in ("containers", "initContainers"):
            if len(obj["spec"].get(group) or ()) != len(old["spec"].get(group) or ()):
                return [*found, field.forbidden(f"spec.{group}", "pod updates may not add or remove containers")]
        found += self._deadline(obj["spec"], old["spec"])
        new_spec, old_spec = _mutable_removed(obj["spec"]), _mutable_removed(old["spec"])
        if not _tolerations_only_added(obj["spec"], old["spec"]):
            text = "existing toleration can not be modified except its tolerationSeconds"
            return [field.forbidden("spec.tolerations", text)]
        if new_spec != old_spec:
            found.append(field.forbidden("spec", IMMUTABLE + difference(old_spec, new_spec)))
        for index, container in enumerate(obj["spec"].get("containers") or ()):
            if not container.get("image"):
                found.append(field.required(f"spec.containers[{index}].image"))
        return found

    @staticmethod
    def _deadline(new: Json, old: Json) -> list[FieldError]:
        at = "spec.activeDeadlineSeconds"
        wanted, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
        if wanted is not None:
            if wanted < 0 or wanted > 2**31 - 1:
                return [field.invalid(at, wanted, "must be between 0 and 2147483647, inclusive")]
            if before is not None and before < wanted:
                return [field.invalid(at, wanted, "must be less than or equal to previous value")]
        elif before is not None:
            return [field.invalid(at, None, "must not update from a positive integer to nil value")]
        return []

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return []

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        return pod_warnings(obj["spec"]) if old is None else []

    def check_graceful(self, obj: Json, grace: int | None) -> int | None:
        """Grace unless the pod never started: nobody would finish it."""
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

    def field_names(self) -> frozenset[str]:
        return frozenset(self.fields({}))


def _agree_on_address(status: Json) -> None:
    """podIP is the first of podIPs. Where they differ podIP counts, where one is missing the other fills it in."""
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
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
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


def _mutable_removed(spec: Json) -> Json:
    copy = {key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations")}
    for group in ("containers", "initContainers"):
        if group in copy:
            copy[group] = [{k: v for k, v in c.items() if k != "image"} for c in copy[group]]
    return copy


def _tolerations_only_added(new: Json, old: Json) -> bool:
    def known(toleration: Json) -> tuple[Any, ...]:
        return tuple(toleration.get(name) for name in ("key", "operator", "value", "effect"))

    kept = {known(t) for t in new.get("tolerations") or ()}
    return all(known(t) in kept for t in old.get("tolerations") or ())


def difference(old: Json, new: Json) -> str:
    """Which fields differ, in place of Go's dump of both structs."""
    changed = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return "\n" + ", ".join(changed) + "\n"
