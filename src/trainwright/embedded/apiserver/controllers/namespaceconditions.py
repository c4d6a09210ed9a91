"""What a namespace that is being deleted says about what still keeps it, in kube-controller-manager's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

ALWAYS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


def conditions_of(left: Iterable[tuple[Type, Stored]]) -> list[Json]:
    """The conditions, given the objects that are left."""
    resources: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    for served, stored in left:
        resources[f"{served.plural}.{served.group}"] += 1
        finalizers.update(stored.decode()["metadata"].get("finalizers") or ())
    found = [_condition(kind, "False", reason, message) for kind, reason, message in ALWAYS]
    if resources:
        parts = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
        message = f"Some resources are remaining: {parts}"
        found.append(_condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", message))
    else:
        message = "All content successfully removed"
        found.append(_condition("NamespaceContentRemaining", "False", "ContentRemoved", message))
    if finalizers:
        parts = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {parts}"
        found.append(_condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message))
    else:
        message = "All content-preserving finalizers finished"
        found.append(_condition("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message))
    return found


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def merged(current: list[Json], wanted: list[Json], now: str) -> list[Json] | None:
    """The conditions of others with ours; what says the same keeps its time. None if nothing is new."""
    result = list(current)
    places = {condition.get("type"): index for index, condition in enumerate(current)}
    for condition in wanted:
        index = places.get(condition["type"])
        if index is None:
            result.append({**condition, "lastTransitionTime": now})
        elif any(current[index].get(name) != value for name, value in condition.items()):
            result[index] = {**condition, "lastTransitionTime": now}
    return None if result == current else result
