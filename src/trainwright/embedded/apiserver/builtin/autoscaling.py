"""HorizontalPodAutoscalers, which are stored and shown here; `embedded.workloads` scales by them."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import HORIZONTAL_POD_AUTOSCALER_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json


class HorizontalPodAutoscalers(KindWithStatus):
    group, version = "autoscaling", "v2"
    plural, kind = "horizontalpodautoscalers", "HorizontalPodAutoscaler"
    short_names = ("hpa",)
    categories = ("all",)
    columns = HORIZONTAL_POD_AUTOSCALER_COLUMNS

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found: list[FieldError] = []
        if spec.get("minReplicas", 1) < 1:
            found.append(field.invalid("spec.minReplicas", spec["minReplicas"], "must be greater than or equal to 1"))
        if spec.get("maxReplicas", 0) < 1:
            found.append(field.invalid("spec.maxReplicas", spec.get("maxReplicas", 0), "must be greater than 0"))
        elif spec["maxReplicas"] < spec.get("minReplicas", 1):
            text = "must be greater than or equal to `minReplicas`"
            found.append(field.invalid("spec.maxReplicas", spec["maxReplicas"], text))
        reference = spec.get("scaleTargetRef") or {}
        if not reference.get("apiVersion"):
            text = "apiVersion must specify API group"
            found.append(field.invalid("spec.scaleTargetRef.apiVersion", "", text))
        for name in ("kind", "name"):
            if not reference.get(name):
                found.append(field.required(f"spec.scaleTargetRef.{name}"))
        return found
