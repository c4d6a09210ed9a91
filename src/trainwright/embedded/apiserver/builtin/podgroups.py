"""Kubernetes' own PodGroup, alpha in 1.36: pods that the scheduler starts together.

A cluster has it with the feature gates GenericWorkload and GangScheduling; fields that belong to further gates are
dropped here as they are there. There are no Workloads, so a group that names one is refused as naming none that is
there.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import POD_GROUP_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.embedded.apiserver.errors import forbidden
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults, dns1123_subdomain_faults

GATED = ("schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")
IMMUTABLE = ("podGroupTemplateRef", "schedulingPolicy")
POLICIES = ("basic", "gang")


class PodGroups(KindWithStatus):
    group, version, plural, kind = "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"
    columns = POD_GROUP_COLUMNS
    any_finalizer = True

    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {}).setdefault("disruptionMode", "Pod")

    def prepare_create(self, obj: Json) -> None:
        super().prepare_create(obj)
        _drop_gated(obj)

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        _drop_gated(obj)

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        faults = super().check_create(obj, found)
        reference = (obj.get("spec") or {}).get("podGroupTemplateRef")
        if reference and not faults:
            why = f'PodGroup rejected: Workload "{reference["workload"]["workloadName"]}" not found'
            raise forbidden(self.group, self.plural, obj["metadata"].get("name", ""), why)
        return faults

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        return _template(spec.get("podGroupTemplateRef")) + _policy(spec.get("schedulingPolicy") or {})

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        return [
            field.invalid(f"spec.{name}", None, "field is immutable")
            for name in IMMUTABLE
            if spec.get(name) != before.get(name)
        ]


def _drop_gated(obj: Json) -> None:
    spec = obj.get("spec") or {}
    for name in GATED:
        spec.pop(name, None)
    spec["disruptionMode"] = "Pod"  # the default, which needs no gate


def _policy(policy: Json) -> list[FieldError]:
    there, all_of_them = [name for name in POLICIES if policy.get(name) is not None], "`basic`, `gang`"
    if not there:
        return [field.invalid("spec.schedulingPolicy", "", f"must specify one of: {all_of_them}")]
    found = []
    if len(there) > 1:
        text = f"must specify exactly one of: {all_of_them}"
        found.append(field.invalid("spec.schedulingPolicy", "{" + ", ".join(there) + "}", text))
    if "gang" in there:
        count, at = policy["gang"].get("minCount", 0), "spec.schedulingPolicy.gang.minCount"
        if count == 0:
            found.append(field.required(at, ""))
        elif count < 1:
            found.append(field.invalid(at, count, "must be greater than or equal to 1"))
    return found


def _template(reference: Json | None) -> list[FieldError]:
    if reference is None:
        return []
    at = "spec.podGroupTemplateRef"
    workload = reference.get("workload")
    if workload is None:
        return [field.invalid(at, "", "must specify one of: `workload`")]
    found: list[FieldError] = []
    rules = (("workloadName", dns1123_subdomain_faults), ("podGroupTemplateName", dns1123_label_faults))
    for name, faults in rules:
        value = workload.get(name, "")
        if not value:
            found.append(field.required(f"{at}.workload.{name}", ""))
        else:
            found += [field.invalid(f"{at}.workload.{name}", value, text) for text in faults(value)]
    return found
