"""Jobs: defaults, the generated selector, and which parts may change."""

from __future__ import annotations

from typing import Any

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.selectors import selector_of
from ..errors import Json
from ..metadata import annotation_faults, label_faults
from ..state import Stored
from ..warnings import warn
from .jobrules import validate_indexes, validate_policies
from .podrules import validate_pod_spec
from .podtemplates import default_pod_spec
from .podwarnings import pod_warnings
from .strategy import StatusStrategy

UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
MAX_INT32 = 2**31 - 1
AT_LEAST_ZERO = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
LITERAL_NULL = field.OMITTED  # absent labels print as a bare null
MISMATCH = "`selector` does not match template `labels`"
PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


class Jobs(StatusStrategy):
    tracks_generation = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        if spec.get("parallelism") is None:
            spec["parallelism"] = 1
        if spec.get("backoffLimit") is None:
            spec["backoffLimit"] = MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6
        template = spec.setdefault("template", {})
        own = (template.get("metadata") or {}).get("labels")
        if own and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = own  # the very same map, as in Go: on a create they grow together
        if spec.get("completionMode") is None:
            spec["completionMode"] = "NonIndexed"
        if spec.get("suspend") is None:
            spec["suspend"] = False
        if spec.get("manualSelector") is None:
            spec["manualSelector"] = False
        if spec.get("podReplacementPolicy") is None:
            spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                if not pattern.get("status"):
                    pattern["status"] = "True"
        default_pod_spec(template.setdefault("spec", {}), is_pod=False)

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {}
        spec, meta = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        for name in NAME_LABELS:
            labels[name] = meta.get("name", "")
        for name in UID_LABELS:
            labels[name] = meta.get("uid", "")
        selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        selector["batch.kubernetes.io/controller-uid"] = meta.get("uid", "")

    def on_read(self, obj: Json) -> None:
        """Defaulting gives a job the labels of its template. The generated ones come too late for it on a create, so
        they are
        stored with the first update; until then every read adds them."""
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def settles(self, stored: Stored) -> bool:
        return stored.labels is None and self.labels_of(stored) is not None

    def labels_of(self, stored: Stored) -> dict[str, str] | None:
        if stored.labels is not None:
            return stored.labels
        obj = stored.decode()
        self.on_read(obj)
        labels: dict[str, str] | None = obj["metadata"].get("labels")
        return labels

    def default_policy(self, user_agent: str = "") -> str:
        """An old promise of batch/v1, with a warning."""
        return "Orphan"

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        if old is not None and obj["spec"]["template"] == old["spec"]["template"]:
            return []
        return pod_warnings(obj["spec"]["template"]["spec"], "spec.template.spec")

    def check_delete(self, obj: Json, policy: object) -> None:
        finalizers = obj["metadata"].get("finalizers") or ()
        if policy is None and not {"orphan", "foregroundDeletion"} & set(finalizers):
            warn([PRESERVED])

    # ------------------------------------------------------------------------------------------------ rules

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found = self._numbers(spec)
        template = spec["template"]
        found += label_faults((template.get("metadata") or {}).get("labels") or {}, "spec.template.labels")
        found += annotation_faults(
            (template.get("metadata") or {}).get("annotations") or {}, "spec.template.annotations"
        )
        found += validate_pod_spec(template["spec"], "spec.template.spec", is_pod=False)
        found += self._selector(obj)
        restart = template["spec"].get("restartPolicy", "")
        if restart in ("", "Always"):
            found.append(field.required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
        elif restart not in ("OnFailure", "Never"):
            found.append(field.not_supported("spec.template.spec.restartPolicy", restart, ["OnFailure", "Never"]))
        elif spec.get("podFailurePolicy") is not None and restart != "Never":
            text = 'only "Never" is supported when podFailurePolicy is specified'
            found.append(field.invalid("spec.template.spec.restartPolicy", restart, text))
        return found

    @staticmethod
    def _numbers(spec: Json) -> list[FieldError]:
        found: list[FieldError] = []
        names = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
        for name in (*names, "backoffLimitPerIndex", "maxFailedIndexes"):
            value = spec.get(name)
            if value is not None and value < 0:
                found.append(field.invalid(f"spec.{name}", value, AT_LEAST_ZERO))
        mode = spec.get("completionMode")
        if mode not in (None, "NonIndexed", "Indexed"):
            found.append(field.not_supported("spec.completionMode", mode, ["NonIndexed", "Indexed"]))
        if mode == "Indexed":
            if spec.get("completions") is None:
                text = "when completion mode is Indexed"
                found.append(field.required("spec.completions", text))
            elif (spec.get("parallelism") or 0) > 100_000:
                text = "must be less than or equal to 100000 when completion mode is Indexed"
                found.append(field.invalid("spec.parallelism", spec["parallelism"], text))
        return found + validate_indexes(spec) + validate_policies(spec)

    @staticmethod
    def _selector(obj: Json, *, update: bool = False) -> list[FieldError]:
        spec = obj["spec"]
        selector = spec.get("selector")
        labels = (spec["template"].get("metadata") or {}).get("labels")
        shown = labels or LITERAL_NULL
        text = MISMATCH if labels else f"null: {MISMATCH}"
        found: list[FieldError] = []
        if not selector:
            if not spec.get("manualSelector"):
                return []
            found.append(field.required("spec.selector"))
        if not selector or not selector_of(selector).matches(labels or {}):
            found.append(field.invalid("spec.template.metadata.labels", shown, text))
        if selector and not spec.get("manualSelector"):
            uid = obj["metadata"].get("uid", "")
            wanted = {"batch.kubernetes.io/controller-uid": uid}
            match = selector.get("matchLabels") or {}
            if match not in (wanted, {"controller-uid": uid}) or selector.get("matchExpressions"):
                found.append(field.invalid("spec.selector", selector, "`selector` not auto-generated"))
                if update and not selector_of(selector).matches(labels or {}):
                    # The real server asks the same question of the labels once more.
                    found.append(field.invalid("spec.template.metadata.labels", shown, text))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        # The real server judges the numbers with the job and once more with the change: causes come twice.
        found = 2 * self._numbers(spec) + self._selector(obj, update=True)
        if spec.get("completions") != before.get("completions") and not self._elastic(spec, before):
            found.append(field.invalid("spec.completions", spec.get("completions"), IMMUTABLE))
        if spec.get("selector") != before.get("selector"):
            found.append(field.invalid("spec.selector", spec.get("selector"), IMMUTABLE))
        if _template_fixed(spec["template"], before, old) != _template_fixed(before["template"], before, old):
            at = "spec.template.spec" if _suspended_before_start(before, old) else "spec.template"
            found.append(field.invalid(at, spec["template"], IMMUTABLE))
        for name in ("completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "managedBy"):
            if spec.get(name) != before.get(name):
                found.append(field.invalid(f"spec.{name}", spec.get(name), IMMUTABLE))
        return found

    @staticmethod
    def _elastic(spec: Json, before: Json) -> bool:
        """An indexed job may grow or shrink if completions and parallelism move together."""
        if spec.get("completionMode") != "Indexed" or before.get("completionMode") != "Indexed":
            return False
        return spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism")

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        status = obj.get("status") or {}
        return [
            field.invalid(f"status.{name}", status[name], AT_LEAST_ZERO)
            for name in ("active", "ready", "succeeded", "failed", "terminating")
            if (status.get(name) or 0) < 0
        ]

    def fields(self, obj: Json) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}

    def field_names(self) -> frozenset[str]:
        return frozenset({"status.successful"})


def _template_fixed(template: Json, before: Json, old: Json) -> Any:
    """The parts of a template that never change; a suspended job that never started may still be placed elsewhere."""
    if not _suspended_before_start(before, old):
        return template
    meta = {k: v for k, v in (template.get("metadata") or {}).items() if k not in ("labels", "annotations")}
    movable = ("nodeSelector", "tolerations", "affinity", "schedulingGates")
    spec = {k: v for k, v in template["spec"].items() if k not in movable}
    return {"metadata": meta, "spec": spec}


def _suspended_before_start(before: Json, old: Json) -> bool:
    return bool(before.get("suspend")) and (old.get("status") or {}).get("startTime") is None


def from_storage(obj: Json) -> Json:
    Jobs().on_read(obj)
    return obj
