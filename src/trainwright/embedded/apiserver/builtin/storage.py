"""PersistentVolumeClaims."""

from __future__ import annotations

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.quantity import parse_quantity
from ..errors import Json
from .strategy import StatusStrategy

MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def validate_claim_spec(spec: Json, at: str) -> list[FieldError]:
    """The rules of a claim, also of one that a pod's volume makes."""
    found: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(field.required(f"{at}.accessModes", "at least 1 access mode is required"))
    found += [field.not_supported(f"{at}.accessModes", mode, MODES) for mode in modes if mode not in MODES]
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        found.append(field.required(f"{at}.resources[storage]"))
    elif not parse_quantity("0") < parse_quantity(amount):
        found.append(field.invalid(f"{at}.resources[storage]", amount, "must be greater than zero"))
    if spec.get("volumeMode") not in (None, "Block", "Filesystem"):
        found.append(field.not_supported(f"{at}.volumeMode", spec["volumeMode"], ["Block", "Filesystem"]))
    return found


class PersistentVolumeClaims(StatusStrategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("volumeMode", "Filesystem")
        obj.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if "kubernetes.io/pvc-protection" not in finalizers:
            finalizers.append("kubernetes.io/pvc-protection")

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        def fixed(spec: Json) -> Json:
            return {k: v for k, v in spec.items() if k not in ("resources", "volumeName", "volumeAttributesClassName")}

        if fixed(obj["spec"]) != fixed(old["spec"]):
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            text += " for bound claims"
            return [field.forbidden("spec", text)]
        return []
