"""CustomResourceDefinitions as objects: defaults, rules, and the conditions that say a type is served.

Serving the types themselves is customresources.py's work.
"""

from __future__ import annotations

import json
import re

from trainwright.embedded.apiserver.builtin.columns import CUSTOM_RESOURCE_DEFINITION_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.embedded.apiserver.builtin.schemaprops import checked
from trainwright.embedded.apiserver.builtin.schemarules import schema_faults
from trainwright.embedded.apiserver.metadata import now_text
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1035_label_faults, dns1123_subdomain_faults

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_APPROVED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")


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
            status["storedVersions"] = [
                v["name"] for v in spec.get("versions") or () if v.get("storage") and v.get("name")
            ]

    def prepare_create(self, obj: Json) -> None:
        stored = [v["name"] for v in obj["spec"].get("versions") or () if v.get("storage") and v.get("name")]
        names = obj["spec"].get("names") or {}
        now = now_text()
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
        obj["status"] = {"conditions": [accepted, established], "acceptedNames": names, "storedVersions": stored}

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        status = obj["status"]
        for version in obj["spec"].get("versions") or ():
            stored = status.setdefault("storedVersions", [])
            if version.get("storage") and version["name"] not in stored:
                obj["status"] = status = {**status, "storedVersions": [*stored, version["name"]]}
        status["acceptedNames"] = obj["spec"].get("names") or {}

    # ------------------------------------------------------------------------------------------------ rules

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return found + self.validate(obj)

    def check_delete(self, obj: Json, policy: object) -> None:
        """Its objects go before it does."""
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
            "lastTransitionTime": now_text(),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        meta["generation"] -= 1  # of all kinds only this one's generation does not grow when it is deleted
        obj["status"] = {**obj["status"], "conditions": [*conditions, terminating]}

    def validate(self, obj: Json) -> list[FieldError]:
        spec, meta = obj["spec"], obj["metadata"]
        expected = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
        if meta.get("name") == expected:
            return self._validate(obj)
        text = 'must be spec.names.plural+"."+spec.group'
        return [field.invalid("metadata.name", meta.get("name", ""), text), *self._validate(obj)]

    def _validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found: list[FieldError] = []
        names = spec.get("names") or {}
        found += self._group(obj, spec)
        scope = spec.get("scope", "")
        if not scope:
            found.append(field.required("spec.scope"))
        elif scope not in ("Cluster", "Namespaced"):
            found.append(field.not_supported("spec.scope", scope, ["Cluster", "Namespaced"]))
        found += self._names(names)
        found += self._versions(spec.get("versions"))
        if not (obj.get("status") or {}).get("storedVersions"):
            text = "null: must have at least one stored version"
            found.append(field.invalid("status.storedVersions", field.OMITTED, text))
        if spec.get("preserveUnknownFields"):
            text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema"
            text += " instead"
            found.append(field.invalid("spec.preserveUnknownFields", True, text))
        strategy = (spec.get("conversion") or {}).get("strategy")
        if strategy == "Webhook":
            text = "conversion webhooks are not supported by this server; use None, or serve one version only"
            found.append(field.invalid("spec.conversion.strategy", strategy, text))
        elif strategy != "None":
            found.append(field.not_supported("spec.conversion.strategy", strategy, ["None", "Webhook"]))
        return found

    @staticmethod
    def _group(obj: Json, spec: Json) -> list[FieldError]:
        group = spec.get("group", "")
        if not group:
            return [field.required("spec.group")]
        found = [field.invalid("spec.group", group, text) for text in dns1123_subdomain_faults(group)]
        if not found and len(group.split(".")) < 2:
            found.append(field.invalid("spec.group", group, "should be a domain with at least one dot"))
        annotation = "api-approved.kubernetes.io"
        if _APPROVED.search(group) and not (obj["metadata"].get("annotations") or {}).get(annotation):
            text = 'protected groups must have approval annotation "api-approved.kubernetes.io", see'
            text += " https://github.com/kubernetes/enhancements/pull/1111"
            found.append(field.required(f"metadata.annotations[{annotation}]", text))
        return found

    @staticmethod
    def _names(names: Json) -> list[FieldError]:
        found: list[FieldError] = []
        for member in ("plural", "singular", "kind", "listKind"):
            value = names.get(member, "")
            if not value:
                found.append(field.required(f"spec.names.{member}"))
                continue
            mixed = member in ("kind", "listKind")
            for text in dns1035_label_faults(value.lower() if mixed else value):
                shown = f"may have mixed case, but should otherwise match: {text}" if mixed else text
                found.append(field.invalid(f"spec.names.{member}", value, shown))
        for member in ("shortNames", "categories"):
            for index, value in enumerate(names.get(member) or ()):
                where = f"spec.names.{member}[{index}]"
                found += [field.invalid(where, value, text) for text in dns1035_label_faults(value)]
        if names.get("kind") and names.get("kind") == names.get("listKind"):
            found.append(
                field.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
            )
        return found

    def _versions(self, versions: list[Json] | None) -> list[FieldError]:
        found: list[FieldError] = []
        stored = sum(bool(version.get("storage")) for version in versions or ())
        # With a single version the real server judges its parts at the places they had before there were versions.
        single = versions is not None and len(versions) == 1
        seen: set[str] = set()
        for index, version in enumerate(versions or ()):
            at = f"spec.versions[{index}]"
            name = version.get("name", "")
            faults = [field.invalid(f"{at}.name", name, text) for text in dns1035_label_faults(name)]
            found += faults
            if single and name:
                found += [fault._replace(field="spec.version") for fault in faults]
            if name in seen:
                text = f"{_shown(versions)}: must contain unique version names"
                found.append(field.invalid("spec.versions", field.OMITTED, text))
            seen.add(name)
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is None:
                found.append(field.required(f"{at}.schema.openAPIV3Schema"))
            elif isinstance(schema, dict):
                where = "spec.validation" if single else f"{at}.schema"
                found += schema_faults(schema, f"{where}.openAPIV3Schema")
            if version.get("deprecationWarning") is not None and not version.get("deprecated"):
                text = "can only be set for deprecated versions"
                found.append(field.invalid(f"{at}.deprecationWarning", version["deprecationWarning"], text))
            found += self._extras(version, "spec" if single else at)
        if stored != 1:
            text = f"{_shown(versions)}: must have exactly one version marked as storage version"
            found.append(field.invalid("spec.versions", field.OMITTED, text))
        return found

    @staticmethod
    def _extras(version: Json, at: str) -> list[FieldError]:
        """Printer columns and the scale subresource."""
        found: list[FieldError] = []
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            where = f"{at}.additionalPrinterColumns[{index}]"
            if not column.get("name"):
                found.append(field.required(f"{where}.name"))
            path = column.get("jsonPath", "")
            if not path:
                found.append(field.required(f"{where}.JSONPath"))
            elif not path.startswith("."):
                text = "must be a simple json path starting with ."
                found.append(field.invalid(f"{where}.JSONPath", path, text))
            if column.get("format") and column["format"] not in COLUMN_FORMATS:
                text = f"must be one of {','.join(COLUMN_FORMATS)}"
                found.append(field.invalid(f"{where}.format", column["format"], text))
            if column.get("type") not in COLUMN_TYPES:
                text = f"must be one of {','.join(COLUMN_TYPES)}"
                found.append(field.invalid(f"{where}.type", column.get("type", ""), text))
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            for name, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
                path = scale.get(name, "")
                where = f"{at}.subresources.scale.{name}"
                if not path:
                    found.append(field.required(where))
                elif not path.startswith("."):
                    found.append(field.invalid(where, path, "must be a simple json path starting with ."))
                elif not path.startswith(start):
                    found.append(field.invalid(where, path, f"should be a json path under {start.rstrip('.')}"))
            path = scale.get("labelSelectorPath") or ".status."
            if not path.startswith((".spec.", ".status.")):
                text = "should be a json path under either .spec or .status"
                found.append(field.invalid(f"{at}.subresources.scale.labelSelectorPath", path, text))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self._validate(obj)
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


def _shown(versions: list[Json] | None) -> str:
    """Versions as Go prints them, members in the order of its struct."""
    if versions is None:
        return "null"
    shown = [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")),
        }
        for version in versions
    ]
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
