"""CustomResourceDefinitions as objects: defaults, changes, and the conditions that say a type is served.

`custom/` serves the types themselves; definitionrules.py validates the spec.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import CUSTOM_RESOURCE_DEFINITION_COLUMNS
from trainwright.embedded.apiserver.builtin.definitionrules import definition_faults
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.embedded.apiserver.builtin.schemaprops import checked
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceDefinitions(KindWithStatus):
    group = "apiextensions.k8s.io"
    plural, kind = "customresourcedefinitions", "CustomResourceDefinition"
    namespaced = False
    short_names = ("crd", "crds")
    categories = ("api-extensions",)
    columns = CUSTOM_RESOURCE_DEFINITION_COLUMNS
    unconditional_update = False
    any_finalizer = True
    tracks_generation = True

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        decoded, unknown = super().decode(obj)
        for index, version in enumerate((decoded.get("spec") or {}).get("versions") or ()):
            container = version.get("schema") or {}
            if container.get("openAPIV3Schema") is not None:
                at = f"spec.versions[{index}].schema.openAPIV3Schema"
                container["openAPIV3Schema"] = checked(container["openAPIV3Schema"], at, unknown)
        return decoded, unknown

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        spec.setdefault("conversion", {}).setdefault("strategy", "None")
        for version in spec.get("versions") or ():
            for column in version.get("additionalPrinterColumns") or ():
                if column.get("priority") == 0:
                    del column["priority"]
        status = obj.setdefault("status", {})
        if not status.get("storedVersions"):
            status["storedVersions"] = _storage_versions(spec)

    def prepare_create(self, obj: Json) -> None:
        now = self.now()
        accepted = {
            "type": "NamesAccepted",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "NoConflicts",
            "message": "no conflicts found",
        }
        established = {
            "type": "Established",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }
        obj["status"] = {
            "conditions": [accepted, established],
            "acceptedNames": obj["spec"].get("names") or {},
            "storedVersions": _storage_versions(obj["spec"]),
        }

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        status = obj["status"]
        for version in obj["spec"].get("versions") or ():
            stored = status.setdefault("storedVersions", [])
            if version.get("storage") and version["name"] not in stored:
                obj["status"] = status = {**status, "storedVersions": [*stored, version["name"]]}
        status["acceptedNames"] = obj["spec"].get("names") or {}

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self.validate(obj)

    def check_delete(self, obj: Json, policy: object) -> None:
        """Add the finalizer that keeps the definition until its objects are deleted."""
        meta = obj["metadata"]
        if "uid" not in meta:
            return
        meta["finalizers"] = [*(name for name in meta.get("finalizers") or () if name != CLEANUP), CLEANUP]

    def mark_deleting(self, obj: Json) -> None:
        meta, conditions = obj["metadata"], (obj.get("status") or {}).get("conditions") or []
        meta.pop("deletionGracePeriodSeconds", None)
        if any(condition.get("type") == "Terminating" for condition in conditions):
            return
        terminating = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": self.now(),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        meta["generation"] -= 1  # unlike other kinds, a definition keeps its generation when it is deleted
        obj["status"] = {**obj["status"], "conditions": [*conditions, terminating]}

    def validate(self, obj: Json) -> list[FieldError]:
        spec, meta = obj["spec"], obj["metadata"]
        expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
        if meta.get("name") == expected:
            return definition_faults(obj)
        text = 'must be spec.names.plural+"."+spec.group'
        return [field.invalid("metadata.name", meta.get("name", ""), text), *definition_faults(obj)]

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = definition_faults(obj)
        spec, before = obj["spec"], old["spec"]
        for member in ("group", "scope"):
            if spec.get(member) != before.get(member):
                found.append(field.invalid(f"spec.{member}", spec.get(member), "field is immutable"))
        for member in ("plural", "kind"):
            if spec["names"].get(member) != before["names"].get(member):
                found.append(field.invalid(f"spec.names.{member}", spec["names"].get(member), "field is immutable"))
        names = {version.get("name") for version in spec.get("versions") or ()}
        for index, stored in enumerate((obj.get("status") or {}).get("storedVersions") or ()):
            if stored not in names:
                text = (
                    f"missing from spec.versions; {stored} was previously a storage version, and must remain in"
                    " spec.versions until a storage migration ensures no data remains persisted in"
                    f" {stored} and removes {stored} from status.storedVersions"
                )
                found.append(field.invalid(f"status.storedVersions[{index}]", stored, text))
        return found


def _storage_versions(spec: Json) -> list[str]:
    return [version["name"] for version in spec.get("versions") or () if version.get("storage") and version.get("name")]
