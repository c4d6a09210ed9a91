"""LimitRanges as objects: defaults, and rules for their bounds. admission/limitranges.py enforces them."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import LIMIT_RANGE_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import label_key_faults
from trainwright.schema.quantity import parse_quantity

TYPES = ("Container", "PersistentVolumeClaim", "Pod")
MEMBERS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
FOR_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
STANDARD = (*FOR_CONTAINERS, "storage", "requests.storage", "pods", "services", "secrets", "configmaps")


class LimitRanges(BuiltinKind):
    plural, kind = "limitranges", "LimitRange"
    short_names = ("limits",)
    columns = LIMIT_RANGE_COLUMNS
    create_on_update = True

    def default(self, obj: Json) -> None:
        """The default limit is the maximum; the default request is the default limit, or else the minimum."""
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") != "Container":
                continue
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item.update({name: value for name, value in (("default", limits), ("defaultRequest", requests)) if value})

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        seen: set[str] = set()
        for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            at, kind = f"spec.limits[{index}]", limit.get("type", "")
            found += _type(kind, f"{at}.type")
            if kind in seen:
                found.append(field.duplicate(f"{at}.type", kind))
            seen.add(kind)
            found += _limit(limit, kind, at)
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self.validate(obj)


def _type(kind: str, at: str) -> list[FieldError]:
    faults = [field.invalid(at, kind, text) for text in label_key_faults(kind)]
    if not faults and "/" not in kind and kind not in TYPES:
        faults.append(field.invalid(at, kind, "must be a standard limit type or fully qualified"))
    return faults


def _limit(limit: Json, kind: str, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    bounds: dict[str, Json] = {}
    for member in MEMBERS:
        amounts = limit.get(member) or {}
        if amounts and kind == "Pod" and member.startswith("default"):
            found.append(field.forbidden(f"{at}.{member}", "may not be specified when `type` is 'Pod'"))
            continue
        for key in amounts:
            found += _resource(key, kind, f"{at}.{member}[{key}]")
            bounds.setdefault(key, {})[member] = amounts[key]
    if kind == "PersistentVolumeClaim" and not {"min", "max"} & set(bounds.get("storage", ())):
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(field.required(f"{at}.limits", text))
    for key, given in bounds.items():
        found += _agreement(given, key, at)
    return found


def _resource(name: str, kind: str, at: str) -> list[FieldError]:
    found = [field.invalid(at, name, text) for text in label_key_faults(name)]
    huge = name.startswith("hugepages-")
    if not found and "/" not in name and name not in STANDARD and not huge:
        found.append(field.invalid(at, name, "must be a standard resource type or fully qualified"))
    if kind in ("Pod", "Container") and "/" not in name and name not in FOR_CONTAINERS and not huge:
        found.append(field.invalid(at, name, "must be a standard resource for containers"))
    return found


def _agreement(given: Json, key: str, at: str) -> list[FieldError]:
    """Minimum ≤ default request ≤ default ≤ maximum. A fault shows the same value as in kube-apiserver."""
    found: list[FieldError] = []
    words = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
    pairs = (
        ("min", "max", "min", "min"),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        ("min", "default", "default", "min"),
        ("default", "max", "default", "max"),
    )
    for low, high, where, shown in pairs:
        if low in given and high in given and parse_quantity(given[high]) < parse_quantity(given[low]):
            name = "default limit" if (low, high) == ("defaultRequest", "default") else words[high]
            text = f"{words[low]} value {given[low]} is greater than {name} value {given[high]}"
            found.append(field.invalid(f"{at}.{where}[{key}]", given[shown], text))
    ratio = given.get("maxLimitRequestRatio")
    if ratio is None:
        return found
    where = f"{at}.maxLimitRequestRatio[{key}]"
    if parse_quantity(ratio) < parse_quantity("1"):
        found.append(field.invalid(where, ratio, f"ratio {ratio} is less than 1"))
    if "min" in given and "max" in given:
        most = parse_quantity(given["max"]).as_float() / parse_quantity(given["min"]).as_float()
        if parse_quantity(ratio).as_float() > most:
            found.append(field.invalid(where, ratio, f"ratio {ratio} is greater than max/min = {most:f}"))
    return found
