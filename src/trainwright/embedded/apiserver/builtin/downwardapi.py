"""Rules for the downward API: references to a pod's own fields and resources, in variables and volumes."""

from __future__ import annotations

import re

from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import label_key_faults
from trainwright.schema.quantity import parse_quantity

VARIABLE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
KNOWN_FIELDS = {*VARIABLE_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
RESOURCES = tuple(
    f"{group}.{name}" for group in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
DIVISORS = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (_UNITS, f"only divisor's values {', '.join(_UNITS)} are supported with the memory resource"),
    "ephemeral-storage": (
        _UNITS,
        f"only divisor's values {', '.join(_UNITS)} are supported with the local ephemeral storage resource",
    ),
}


def field_reference(reference: Json, at: str, allowed: tuple[str, ...]) -> list[FieldError]:
    path = reference.get("fieldPath", "")
    if not path:
        return [field.required(f"{at}.fieldPath")]
    if reference.get("apiVersion") != "v1":
        text = f"error converting fieldPath: unsupported pod version: {reference.get('apiVersion')}"
        return [field.invalid(f"{at}.fieldPath", path, text)]
    subscript = re.fullmatch(r"(.*)\['(.*)'\]", path, re.DOTALL)
    if subscript is None:
        if path not in KNOWN_FIELDS:
            text = f"error converting fieldPath: field label not supported: {path}"
            return [field.invalid(f"{at}.fieldPath", path, text)]
        return [] if path in allowed else [field.not_supported(f"{at}.fieldPath", path, sorted(allowed))]
    whole, key = subscript.groups()
    if whole == "metadata.annotations":
        key = key.lower()
    elif whole != "metadata.labels":
        text = f"error converting fieldPath: field label does not support subscript: {path}"
        return [field.invalid(f"{at}.fieldPath", path, text)]
    return [field.invalid(at, key, text) for text in label_key_faults(key)]


def resource_reference(reference: Json, at: str, *, volume: bool) -> list[FieldError]:
    found: list[FieldError] = []
    resource, divisor = reference.get("resource", ""), reference.get("divisor")
    if volume and not reference.get("containerName"):
        found.append(field.required(f"{at}.containerName"))
    elif not resource:
        found.append(field.required(f"{at}.resource"))
    elif resource not in RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        found.append(field.not_supported(f"{at}.resource", resource, RESOURCES))
    group, _, name = resource.partition(".")
    if group in ("limits", "requests") and name in DIVISORS and divisor is not None and parse_quantity(divisor):
        choices, text = DIVISORS[name]
        if parse_quantity(divisor) not in [parse_quantity(choice) for choice in choices]:
            found.append(field.invalid(f"{at}.divisor", resource, text))
    return found
