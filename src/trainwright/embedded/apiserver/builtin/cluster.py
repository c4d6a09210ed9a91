"""Namespaces, nodes, leases, limit ranges, priority classes and runtime classes."""

from __future__ import annotations

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.names import dns1123_label_faults
from ..errors import Json, forbidden
from .strategy import BuiltinStrategy, StatusStrategy

IMMORTAL = ("default", "kube-system", "kube-public")


class Namespaces(StatusStrategy):
    """A namespace lives until its own finalizer, kept in the spec, is gone."""

    def name_faults(self, name: str) -> list[str]:
        return dns1123_label_faults(name)

    def default(self, obj: Json) -> None:
        meta = obj["metadata"]
        name = meta.get("name")
        if name:
            meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        obj.setdefault("status", {}).setdefault("phase", "Active")

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Active"}
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        spec = obj.setdefault("spec", {})
        finalizers = spec.setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")

    def prepare_update(self, obj: Json, old: Json) -> None:
        obj["spec"] = {**obj.get("spec", {}), "finalizers": (old.get("spec") or {}).get("finalizers", [])}
        if not obj["spec"]["finalizers"]:
            del obj["spec"]["finalizers"]
        obj["status"] = old.get("status", {})

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return []

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        phase = (obj.get("status") or {}).get("phase", "")
        if not old["metadata"].get("deletionTimestamp") and phase != "Active":
            text = "may only be 'Active' if `deletionTimestamp` is empty"
            return [field.invalid("status.Phase", phase, text)]
        if old["metadata"].get("deletionTimestamp") and phase != "Terminating":
            text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [field.invalid("status.Phase", phase, text)]
        return []

    def removable(self, obj: Json) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")

    def check_delete(self, obj: Json, policy: object) -> None:
        if obj["metadata"].get("name") in IMMORTAL:
            raise forbidden("", "namespaces", obj["metadata"]["name"], "this namespace may not be deleted")

    def mark_deleting(self, obj: Json) -> None:
        # A namespace ends when its finalizer goes; a grace period means nothing to it.
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def fields(self, obj: Json) -> dict[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase", ""), "name": obj["metadata"].get("name", "")}

    def field_names(self) -> frozenset[str]:
        return frozenset({"status.phase", "name"})


class Nodes(StatusStrategy):
    def default(self, obj: Json) -> None:
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: Json) -> None:
        """The kubelet registers with its status, so it stays."""

    def fields(self, obj: Json) -> dict[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}

    def field_names(self) -> frozenset[str]:
        return frozenset({"spec.unschedulable"})


class Leases(BuiltinStrategy):
    unconditional_update = False
    create_on_update = True
    any_finalizer = True

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found: list[FieldError] = []
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            found.append(field.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        transitions = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            found.append(field.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return found


class LimitRanges(BuiltinStrategy):
    create_on_update = True

    def default(self, obj: Json) -> None:
        """What a container gets by default: the limit is the maximum, the request is the limit, else the minimum."""
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") != "Container":
                continue
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item.update({name: value for name, value in (("default", limits), ("defaultRequest", requests)) if value})


class PriorityClasses(BuiltinStrategy):
    tracks_generation = True

    def default(self, obj: Json) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def generation_content(self, obj: Json) -> object:
        return None  # it is 1 for life

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        name = obj["metadata"].get("name", "")
        if name.startswith("system-"):
            text = "priority class names with 'system-' prefix are reserved for system use only."
            text += f" error: {name} is not a known system priority class"
            found.append(field.forbidden("metadata.name", text))
        elif obj.get("value", 0) > 1_000_000_000:
            found.append(field.forbidden("value", "maximum allowed value of a user defined priority is 1000000000"))
        return found + _preemption(obj)

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("value") != old.get("value"):
            found.append(field.forbidden("value", "may not be changed in an update."))
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            found.append(field.invalid("preemptionPolicy", obj.get("preemptionPolicy"), "field is immutable"))
        return found


def _preemption(obj: Json) -> list[FieldError]:
    policy = obj.get("preemptionPolicy", "PreemptLowerPriority")
    if policy in ("PreemptLowerPriority", "Never"):
        return []
    return [field.not_supported("preemptionPolicy", policy, ["PreemptLowerPriority", "Never"])]


class RuntimeClasses(BuiltinStrategy):
    unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        handler = obj.get("handler", "")
        return [field.invalid("handler", handler, text) for text in dns1123_label_faults(handler)]

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        if obj.get("handler") != old.get("handler"):
            return [field.invalid("handler", obj.get("handler"), "field is immutable")]
        return []
