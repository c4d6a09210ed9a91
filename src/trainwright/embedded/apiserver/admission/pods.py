"""Built-in admission of pods: the Priority, RuntimeClass and DefaultTolerationSeconds plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.admission.limitranges import apply_defaults
from trainwright.embedded.apiserver.errors import StatusError, forbidden
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
LOWER = "PreemptLowerPriority"


def admit_pod(api: Api, obj: Json, *, create: bool) -> None:
    """Change the pod in place. Raises 403 for a class that does not exist or a value that contradicts it."""
    spec = obj["spec"]
    if create:
        apply_defaults(api, obj)
        _priority(api, obj, spec)
        _runtime_class(api, obj, spec)
    _tolerate(spec)


def _refused(obj: Json, why: str) -> StatusError:
    return forbidden("", "pods", obj["metadata"].get("name", ""), why)


def _priority(api: Api, obj: Json, spec: Json) -> None:
    name, value, policy = _class_of(api, obj, spec)
    given = spec.get("priority")
    if given is not None and given != value:
        raise _refused(
            obj,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller"
            f" computed {value} from the given PriorityClass name",
        )
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and wanted != policy:
        raise _refused(
            obj,
            f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; priority admission"
            f" controller computed {policy} from the given PriorityClass name",
        )
    if name:
        spec["priorityClassName"] = name
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _class_of(api: Api, obj: Json, spec: Json) -> tuple[str, int, str]:
    name = spec.get("priorityClassName", "")
    if name in SYSTEM_CLASSES:
        return name, SYSTEM_CLASSES[name], LOWER
    if name:
        stored = api.state.head(Key(PRIORITY_CLASSES, "", name))
        if stored is None:
            raise _refused(obj, f"no PriorityClass with name {name} was found")
        found = stored.decode()
        return name, found.get("value", 0), found.get("preemptionPolicy", LOWER)
    table = api.state.tables.get(PRIORITY_CLASSES)
    for stored in table.select("") if table is not None else ():
        found = stored.decode()
        if found.get("globalDefault"):
            return stored.key.name, found.get("value", 0), found.get("preemptionPolicy", LOWER)
    return "", 0, LOWER


def _runtime_class(api: Api, obj: Json, spec: Json) -> None:
    name = spec.get("runtimeClassName")
    if name:
        stored = api.state.head(Key(RUNTIME_CLASSES, "", name))
        if stored is None:
            raise _refused(obj, f'pod rejected: RuntimeClass "{name}" not found')
        overhead = (stored.decode().get("overhead") or {}).get("podFixed")
        if overhead:
            spec.setdefault("overhead", overhead)
    elif spec.get("overhead"):
        raise _refused(obj, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _tolerate(spec: Json) -> None:
    """Tolerate a node that is not ready for five minutes, unless the pod sets its own toleration."""
    tolerations = spec.get("tolerations") or []
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in TOLERATIONS
        if not any(t.get("key") in (key, None, "") and t.get("effect") in ("NoExecute", None, "") for t in tolerations)
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]
