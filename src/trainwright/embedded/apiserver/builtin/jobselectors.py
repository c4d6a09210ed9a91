"""A job's selector and the labels of its pods: made by the server, or by hand and then right."""

from __future__ import annotations

from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.selectors import SelectorError, label_selector_faults, selector_of

UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")


def selector_faults(spec: Json) -> list[FieldError]:
    """Whoever made the selector, it has to find the pods that the template makes."""
    selector = spec.get("selector")
    at = "spec.selector"
    found = [field.required(at)] if selector is None else label_selector_faults(selector, at)
    labels = _template_labels(spec)
    if not _matches(selector, labels):
        text = "`selector` does not match template `labels`"
        found.append(field.invalid("spec.template.metadata.labels", labels or None, text))
    return found


def generated_selector(obj: Json) -> list[FieldError]:
    """Unless done by hand, the labels are those that the server sets, and the selector asks for them."""
    spec, meta = obj["spec"], obj["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    wanted = dict.fromkeys(UID_LABELS, meta.get("uid", "")) | dict.fromkeys(NAME_LABELS, meta.get("name", ""))
    labels = _template_labels(spec)
    found: list[FieldError] = []
    for key, value in wanted.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            found.append(field.required(at, f"must be '{value}'"))
        elif labels[key] != value:
            found.append(field.invalid(at, labels or None, f"must be '{value}'"))
    if not _matches(selector, wanted):
        found.append(field.invalid("spec.selector", selector, "`selector` not auto-generated"))
    return found


def _template_labels(spec: Json) -> dict[str, str]:
    labels: dict[str, str] | None = (spec["template"].get("metadata") or {}).get("labels")
    return labels or {}


def _matches(selector: Json | None, labels: dict[str, str]) -> bool:
    """A selector that cannot be read was judged elsewhere."""
    try:
        return selector_of(selector).matches(labels)
    except SelectorError:
        return True
