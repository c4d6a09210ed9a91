"""Changes of a job's template: none while it runs, placement and resources while it is suspended."""

from __future__ import annotations

import copy

from trainwright.embedded.apiserver.builtin.jobstatus import holds
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

IMMUTABLE = "field is immutable"
PLACEMENT = ("nodeSelector", "tolerations", "schedulingGates")


def template_changes(template: Json, old: Json) -> list[FieldError]:
    before = old["spec"]["template"]
    if not _may_change(old):
        return [] if template == before else [field.invalid("spec.template", template, IMMUTABLE)]
    allowed = copy.deepcopy(before["spec"])
    for name in PLACEMENT:
        _take(allowed, template["spec"], name)
    _take_node_affinity(allowed, template["spec"])
    for name in ("containers", "initContainers"):
        ours, theirs = allowed.get(name) or [], template["spec"].get(name) or []
        if len(ours) == len(theirs):
            for mine, new in zip(ours, theirs, strict=True):
                if mine.get("name") == new.get("name"):
                    _take(mine, new, "resources")
    if template["spec"] == allowed:
        return []
    return [field.invalid("spec.template.spec", template["spec"], IMMUTABLE)]


def _may_change(old: Json) -> bool:
    """Whether the job is suspended and without pods: it never started, or its controller reports that it stopped."""
    status = old.get("status") or {}
    if not old["spec"].get("suspend") or status.get("active"):
        return False
    return status.get("startTime") is None or holds(status, "Suspended")


def _take(target: Json, source: Json, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _take_node_affinity(allowed: Json, spec: Json) -> None:
    """Allow changes of the node affinity only; an affinity that has nothing else may be added or removed."""
    affinity = spec.get("affinity")
    mine = dict(allowed.get("affinity") or {})
    mine.pop("nodeAffinity", None)
    if affinity is not None:
        if affinity.get("nodeAffinity") is not None:
            mine["nodeAffinity"] = affinity["nodeAffinity"]
        allowed["affinity"] = mine
    elif mine:
        allowed["affinity"] = mine
    else:
        allowed.pop("affinity", None)
