"""PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

import copy

from trainwright.embedded.apiserver.builtin.columns import (
    PERSISTENT_VOLUME_CLAIM_COLUMNS,
    PERSISTENT_VOLUME_COLUMNS,
    STORAGE_CLASS_COLUMNS,
)
from trainwright.embedded.apiserver.builtin.differences import difference
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind, KindWithStatus
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.quantity import parse_quantity
from trainwright.schema.selectors import label_selector_faults

MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def validate_claim_spec(spec: Json, at: str) -> list[FieldError]:
    """The rules of a claim's spec, also for the claim template of an ephemeral volume."""
    found: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(field.required(f"{at}.accessModes", "at least 1 access mode is required"))
    found += [field.not_supported(f"{at}.accessModes", mode, MODES) for mode in modes if mode not in MODES]
    if "ReadWriteOncePod" in modes and any(mode in MODES and mode != "ReadWriteOncePod" for mode in modes):
        found.append(field.forbidden(f"{at}.accessModes", "may not use ReadWriteOncePod with other access modes"))
    if spec.get("selector") is not None:
        found += label_selector_faults(spec["selector"], f"{at}.selector")
    chosen = spec.get("storageClassName")
    if chosen:
        found += [field.invalid(f"{at}.storageClassName", chosen, text) for text in dns1123_subdomain_faults(chosen)]
    for name in ("dataSource", "dataSourceRef"):
        source = spec.get(name)
        if source is not None:
            found += [field.required(f"{at}.{name}.{part}") for part in ("name", "kind") if not source.get(part)]
            if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
                text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
                found.append(field.invalid(f"{at}.{name}", source.get("kind", ""), text))
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        found.append(field.required(f"{at}.resources[storage]"))
    elif not parse_quantity("0") < parse_quantity(amount):
        found.append(field.invalid(f"{at}.resources[storage]", amount, "must be greater than zero"))
    if spec.get("volumeMode") not in (None, "Block", "Filesystem"):
        found.append(field.not_supported(f"{at}.volumeMode", spec["volumeMode"], ["Block", "Filesystem"]))
    return found


class PersistentVolumeClaims(KindWithStatus):
    plural, kind = "persistentvolumeclaims", "PersistentVolumeClaim"
    short_names = ("pvc",)
    columns = PERSISTENT_VOLUME_CLAIM_COLUMNS
    returns_deleted = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("volumeMode", "Filesystem")
        obj.setdefault("status", {}).setdefault("phase", "Pending")
        if spec.get("dataSource") is not None:
            spec["dataSource"].setdefault("apiGroup", None)

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}
        source = obj["spec"].get("dataSource")
        if source is not None and not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
            # Claims are the only data source in the core group; others are dropped.
            del obj["spec"]["dataSource"]
        _same_source(obj["spec"])
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if "kubernetes.io/pvc-protection" not in finalizers:
            finalizers.append("kubernetes.io/pvc-protection")

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        _same_source(obj["spec"])

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self.validate(obj)
        spec, before = copy.deepcopy(obj["spec"]), copy.deepcopy(old["spec"])
        if not before.get("volumeName") and spec.get("volumeName"):
            before["volumeName"] = spec["volumeName"]  # set once, when the claim is bound
        if before.get("storageClassName") is None and spec.get("storageClassName") is not None:
            del spec["storageClassName"]
        size, former = _size(spec), _size(before)
        if (obj.get("status") or {}).get("phase") == "Bound":
            spec.setdefault("resources", {}).setdefault("requests", {})["storage"] = former
            spec.pop("volumeAttributesClassName", None)
            before.pop("volumeAttributesClassName", None)
        if spec != before:
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            text += f" for bound claims{difference(before, spec)}"
            found.append(field.forbidden("spec", text))
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if parse_quantity(size) < parse_quantity(former) and not parse_quantity(capacity) < parse_quantity(size):
            text = "field can not be less than status.capacity"
            found.append(field.forbidden("spec.resources.requests.storage", text))
        return found


def _same_source(spec: Json) -> None:
    """Copy dataSource to dataSourceRef, the newer field for the same."""
    if spec.get("dataSource") is not None:
        spec.setdefault("dataSourceRef", dict(spec["dataSource"]))


def _size(spec: Json) -> str:
    size: str = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    return size


class PersistentVolumes(KindWithStatus):
    plural, kind = "persistentvolumes", "PersistentVolume"
    namespaced = False
    short_names = ("pv",)
    columns = PERSISTENT_VOLUME_COLUMNS
    returns_deleted = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        obj.setdefault("status", {}).setdefault("phase", "Pending")
        if spec.get("hostPath") is not None:
            spec["hostPath"].setdefault("type", "")

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Json) -> list[FieldError]:
        spec, found = obj["spec"], []
        if not spec.get("accessModes"):
            found.append(field.required("spec.accessModes"))
        if not (spec.get("capacity") or {}).get("storage"):
            found.append(field.required("spec.capacity"))
        policy = spec.get("persistentVolumeReclaimPolicy")
        if policy not in ("Delete", "Recycle", "Retain"):
            found.append(
                field.not_supported("spec.persistentVolumeReclaimPolicy", policy, ["Delete", "Recycle", "Retain"])
            )
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self.validate(obj)


class StorageClasses(BuiltinKind):
    group, plural, kind = "storage.k8s.io", "storageclasses", "StorageClass"
    namespaced = False
    short_names = ("sc",)
    columns = STORAGE_CLASS_COLUMNS
    any_finalizer = True

    def default(self, obj: Json) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Json) -> list[FieldError]:
        return [] if obj.get("provisioner") else [field.required("provisioner")]

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self.validate(obj)
        for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            if obj.get(name) != old.get(name):
                found.append(field.forbidden(name, f"updates to {name} are forbidden."))
        return found
