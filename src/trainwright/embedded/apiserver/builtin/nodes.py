"""Nodes: rules for what kubelets register and report, and immutable fields."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import NODE_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.schema import errors as field
from trainwright.schema.errors import ErrorType, FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import label_key_faults, label_value_faults
from trainwright.schema.quantity import parse_quantity

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Nodes(KindWithStatus):
    plural, kind = "nodes", "Node"
    namespaced = False
    short_names = ("no",)
    columns = NODE_COLUMNS
    metadata_repeats = 1

    def default(self, obj: Json) -> None:
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: Json) -> None:
        """Keep the status: the kubelet registers with it."""

    def validate(self, obj: Json) -> list[FieldError]:
        found = _taints((obj.get("spec") or {}).get("taints") or [])
        for group in ("capacity", "allocatable"):
            for name, amount in ((obj.get("status") or {}).get(group) or {}).items():
                if parse_quantity(amount) < parse_quantity("0"):
                    text = "must be greater than or equal to 0"
                    found.append(field.invalid(f"status.{group}.{name}", str(amount), text))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self.validate(obj) + self._changes(obj, old)

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self._changes(obj, old)

    def _changes(self, obj: Json, old: Json) -> list[FieldError]:
        """Faults of a change; kube-apiserver validates the object again with it."""
        found = self.validate(obj)
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        seen: list[Json] = []
        for index, address in enumerate((obj.get("status") or {}).get("addresses") or ()):
            if address in seen:
                shown = f'{{"Type":"{address.get("type", "")}","Address":"{address.get("address", "")}"}}'
                at = f"status.addresses[{index}]"
                found.append(FieldError(ErrorType.DUPLICATE, at, field.OMITTED, shown))
            seen.append(address)
        ranges = before.get("podCIDRs") or []
        if ranges and spec.get("podCIDRs") != ranges:
            text = 'node updates may not change podCIDR except from "" to valid'
            found.append(field.forbidden("spec.podCIDRs", text))
        if before.get("providerID") and spec.get("providerID") != before["providerID"]:
            text = 'node updates may not change providerID except from "" to valid'
            found.append(field.forbidden("spec.providerID", text))
        if (spec.get("externalID") or "") != (before.get("externalID") or ""):
            found.append(field.forbidden("spec.externalID", "may not be updated"))
        return found

    def fields(self, obj: Json) -> dict[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def _taints(taints: list[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"metadata.taints[{index}]"  # the path that kube-apiserver prints
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found += [field.invalid(f"{at}.key", key, text) for text in label_key_faults(key)]
        faults = label_value_faults(value)
        if faults:
            found.append(field.invalid(f"{at}.value", value, ";".join(faults)))
        if not effect:
            found.append(field.required(f"{at}.effect"))
        elif effect not in EFFECTS:
            found.append(field.not_supported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            since = json_text(taint.get("timeAdded"))
            shown = f'{{"Key":"{key}","Value":"{value}","Effect":"{effect}","TimeAdded":{since}}}'
            text = f"{shown}: taints must be unique by key and effect pair"
            found.append(FieldError(ErrorType.DUPLICATE, at, field.OMITTED, text))
        seen.add((key, effect))
    return found
