"""Jobs: defaults, the generated selector, rules, immutable parts."""

from __future__ import annotations

import dataclasses

from trainwright.embedded.apiserver.builtin.columns import JOB_COLUMNS
from trainwright.embedded.apiserver.builtin.jobrules import success_policy_text, validate_numbers, validate_policies
from trainwright.embedded.apiserver.builtin.jobselectors import (
    NAME_LABELS,
    UID_LABELS,
    generated_selector,
    selector_faults,
)
from trainwright.embedded.apiserver.builtin.jobstatus import status_changes
from trainwright.embedded.apiserver.builtin.jobtemplates import template_changes
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.embedded.apiserver.builtin.podrules import validate_pod_spec
from trainwright.embedded.apiserver.builtin.podtemplates import default_pod_spec
from trainwright.embedded.apiserver.builtin.podwarnings import pod_warnings
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.metadata import annotation_faults, label_faults
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults

MAX_INT32 = 2**31 - 1
IMMUTABLE = "field is immutable"
NAME_WARNING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior;"
    " a DNS label is recommended"
)
MANY_INDEXES = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
    " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


class Jobs(KindWithStatus):
    group, plural, kind = "batch", "jobs", "Job"
    categories = ("all",)
    columns = JOB_COLUMNS
    tracks_generation = True
    metadata_repeats = 1

    def served(self) -> Type:
        return dataclasses.replace(super().served(), from_storage=self._from_storage)

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
            obj["metadata"]["labels"] = (
                own  # the same map, as in Go: labels added to one on create are also in the other
            )
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
        # Labels and selectors that the client set stay; validation reports wrong ones.
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        for name in NAME_LABELS:
            labels.setdefault(name, meta.get("name", ""))
        for name in UID_LABELS:
            labels.setdefault(name, meta.get("uid", ""))
        selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        selector.setdefault("batch.kubernetes.io/controller-uid", meta.get("uid", ""))

    def on_read(self, obj: Json) -> None:
        """Add the labels of the template, as defaulting does.

        On a create, defaulting runs before the labels are generated. They are stored with the first update; until then
        every read adds them.
        """
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def _from_storage(self, obj: Json) -> Json:
        self.on_read(obj)
        return obj

    def rewrites(self, stored: Stored) -> bool:
        return stored.labels is None and self.labels_of(stored) is not None

    def labels_of(self, stored: Stored) -> dict[str, str] | None:
        if stored.labels is not None:
            return stored.labels
        obj = stored.decode()
        self.on_read(obj)
        labels: dict[str, str] | None = obj["metadata"].get("labels")
        return labels

    def default_policy(self) -> str:
        """batch/v1 orphans the pods of a deleted job by default, and warns of it."""
        return "Orphan"

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        spec = obj["spec"]
        found: list[str] = []
        if old is None:
            faults = dns1123_label_faults(obj["metadata"].get("name", ""))
            found = [f"{NAME_WARNING}: [{' '.join(faults)}]"] if faults else []
        elif spec == old["spec"]:
            return []
        if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 100_000:
            found += [MANY_INDEXES] if (spec.get("parallelism") or 0) > 10_000 else []
        if old is None or spec["template"] != old["spec"]["template"]:
            found += pod_warnings(spec["template"]["spec"], "spec.template.spec")
        return found

    def check_delete(self, obj: Json, policy: object) -> None:
        finalizers = obj["metadata"].get("finalizers") or ()
        if policy is None and not {"orphan", "foregroundDeletion"} & set(finalizers):
            warn([PRESERVED])

    def validate(self, obj: Json) -> list[FieldError]:
        return generated_selector(obj) + self._spec(obj["spec"]) + self._hostnames(obj)

    def _spec(self, spec: Json) -> list[FieldError]:
        template = spec["template"]
        found = validate_numbers(spec) + validate_policies(spec)
        found += label_faults((template.get("metadata") or {}).get("labels") or {}, "spec.template.labels")
        found += annotation_faults(
            (template.get("metadata") or {}).get("annotations") or {}, "spec.template.annotations"
        )
        found += validate_pod_spec(template["spec"], "spec.template.spec", is_pod=False)
        restart = template["spec"].get("restartPolicy", "")
        if restart in ("", "Always"):
            found.append(field.required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
        elif restart not in ("OnFailure", "Never"):
            found.append(field.not_supported("spec.template.spec.restartPolicy", restart, ["OnFailure", "Never"]))
        elif spec.get("podFailurePolicy") is not None and restart != "Never":
            text = 'only "Never" is supported when podFailurePolicy is specified'
            found.append(field.invalid("spec.template.spec.restartPolicy", restart, text))
        return found + selector_faults(spec)

    @staticmethod
    def _hostnames(obj: Json) -> list[FieldError]:
        """The pods of an indexed job are named after their index; the longest of these names must be a hostname."""
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        if spec.get("completionMode") != "Indexed" or (spec.get("completions") or 0) <= 0:
            return []
        longest = f"{name}-{spec['completions'] - 1}"
        if not dns1123_label_faults(longest):
            return []
        text = f"will not able to create pod with invalid DNS label: {longest}"
        return [field.invalid("metadata.name", name, text)]

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        spec, before = obj["spec"], old["spec"]
        # kube-apiserver validates the spec with the job and again with the change, so causes come twice.
        found = self.validate(obj) + self._spec(spec)
        if spec.get("completions") != before.get("completions"):
            if spec.get("completionMode") != "Indexed":
                found.append(field.invalid("spec.completions", spec.get("completions"), IMMUTABLE))
            elif spec.get("completions") not in (None, spec.get("parallelism")):
                text = "can only be modified in tandem with spec.parallelism"
                found.append(field.invalid("spec.completions", spec["completions"], text))
        if spec.get("selector") != before.get("selector"):
            found.append(field.invalid("spec.selector", spec.get("selector"), IMMUTABLE))
        found += template_changes(spec["template"], old)
        for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
            if spec.get(name) != before.get(name):
                found.append(field.invalid(f"spec.{name}", spec.get(name), IMMUTABLE))
        if spec.get("successPolicy") != before.get("successPolicy"):
            text = success_policy_text(spec.get("successPolicy"))
            found.append(field.invalid("spec.successPolicy", field.OMITTED, f"{text}: {IMMUTABLE}"))
        return found

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return status_changes(obj, old)

    def fields(self, obj: Json) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}
