"""Namespaces, leases, priority classes and runtime classes."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import (
    LEASE_COLUMNS,
    NAMESPACE_COLUMNS,
    PRIORITY_CLASS_COLUMNS,
    RUNTIME_CLASS_COLUMNS,
)
from trainwright.embedded.apiserver.builtin.containerrules import validate_resources
from trainwright.embedded.apiserver.builtin.kind import STATUS_SUBRESOURCE, BuiltinKind, KindWithStatus
from trainwright.embedded.apiserver.builtin.podrules import validate_tolerations
from trainwright.embedded.apiserver.errors import forbidden
from trainwright.embedded.apiserver.metadata import label_faults
from trainwright.embedded.apiserver.types import ALL_VERBS
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults

NAMESPACE_SUBRESOURCES = {"finalize": {"verbs": ["update"]}, **STATUS_SUBRESOURCE}
IMMORTAL = ("default", "kube-system", "kube-public")


class Namespaces(KindWithStatus):
    """A namespace lives until the finalizer in its spec is removed."""

    plural, kind = "namespaces", "Namespace"
    namespaced = False
    short_names = ("ns",)
    verbs = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    subresources = NAMESPACE_SUBRESOURCES
    columns = NAMESPACE_COLUMNS

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
        # A grace period has no meaning for a namespace, which ends with its finalizer.
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def fields(self, obj: Json) -> dict[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase", ""), "name": obj["metadata"].get("name", "")}


class Leases(BuiltinKind):
    group, plural, kind = "coordination.k8s.io", "leases", "Lease"
    columns = LEASE_COLUMNS
    unconditional_update = False
    create_on_update = True
    any_finalizer = True

    def prepare_create(self, obj: Json) -> None:
        _without_elections(obj)

    def prepare_update(self, obj: Json, old: Json) -> None:
        _without_elections(obj)

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


def _without_elections(lease: Json) -> None:
    """Drop the fields of coordinated leader election, an alpha feature that is off by default."""
    for name in ("strategy", "preferredHolder"):
        (lease.get("spec") or {}).pop(name, None)


class PriorityClasses(BuiltinKind):
    group, plural, kind = "scheduling.k8s.io", "priorityclasses", "PriorityClass"
    namespaced = False
    short_names = ("pc",)
    columns = PRIORITY_CLASS_COLUMNS
    tracks_generation = True

    def default(self, obj: Json) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def generation_content(self, obj: Json) -> object:
        return None  # the generation stays 1

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


class RuntimeClasses(BuiltinKind):
    group, plural, kind = "node.k8s.io", "runtimeclasses", "RuntimeClass"
    namespaced = False
    columns = RUNTIME_CLASS_COLUMNS
    unconditional_update = False
    create_on_update = True
    any_finalizer = True
    metadata_repeats = 1

    def validate(self, obj: Json) -> list[FieldError]:
        handler = obj.get("handler", "")
        if not handler:
            found = [field.required("handler")]
        else:
            found = [field.invalid("handler", handler, text) for text in dns1123_label_faults(handler)]
        overhead, scheduling = (obj.get("overhead") or {}).get("podFixed") or {}, obj.get("scheduling") or {}
        found += validate_resources({"limits": overhead}, "overhead")
        found += label_faults(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        return found + validate_tolerations(scheduling, "scheduling")

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self.validate(obj)
        if obj.get("handler") != old.get("handler"):
            found.append(field.invalid("handler", obj.get("handler", ""), "field is immutable"))
        return found
