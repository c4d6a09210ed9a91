"""CustomResourceDefinitions as objects: defaults, rules, and the conditions that say a type is served.

Serving the types themselves is customresources.py's work.
"""

from __future__ import annotations

import re
from typing import Any

from ....schema import errors as field
from ....schema.errors import FieldError, SchemaError
from ....schema.names import dns1035_label_faults, dns1123_subdomain_faults
from ....schema.structural import StructuralSchema
from ..errors import Json
from ..metadata import now_text
from .schemaprops import checked
from .strategy import StatusStrategy

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_APPROVED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")


class CustomResourceDefinitions(StatusStrategy):
    unconditional_update = False
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
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)  # its objects go before it does
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

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found: list[FieldError] = []
        names = spec.get("names") or {}
        expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
        if obj["metadata"].get("name") != expected:
            text = 'must be spec.names.plural+"."+spec.group'
            found.append(field.invalid("metadata.name", obj["metadata"].get("name", ""), text))
        found += self._group(obj, spec)
        scope = spec.get("scope", "")
        if not scope:
            found.append(field.required("spec.scope"))
        if scope not in ("Cluster", "Namespaced"):
            found.append(field.not_supported("spec.scope", scope, ["Cluster", "Namespaced"]))
        found += self._names(names)
        found += self._versions(spec.get("versions") or [])
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
            found += [
                field.invalid(f"spec.names.{member}", value, text) for text in dns1035_label_faults(value.lower())
            ]
        if names.get("kind") and names.get("kind") == names.get("listKind"):
            found.append(
                field.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
            )
        return found

    def _versions(self, versions: list[Json]) -> list[FieldError]:
        found: list[FieldError] = []
        if not versions:
            found.append(field.required("spec.versions", "must have at least one version"))
            return found
        stored = sum(bool(version.get("storage")) for version in versions)
        seen: set[str] = set()
        for index, version in enumerate(versions):
            at = f"spec.versions[{index}]"
            name = version.get("name", "")
            found += [field.invalid(f"{at}.name", name, text) for text in dns1035_label_faults(name)]
            if name in seen:
                found.append(field.invalid(f"{at}.name", name, "must be unique"))
            seen.add(name)
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is None:
                found.append(field.required(f"{at}.schema.openAPIV3Schema", "schemas are required"))
            elif isinstance(schema, dict):
                found += self._schema(schema, f"{at}.schema.openAPIV3Schema")
        if stored != 1:
            text = "must have exactly one version marked as storage version"
            found.append(field.invalid("spec.versions", _names_of(versions), text))
        return found

    @staticmethod
    def _schema(schema: Json, at: str) -> list[FieldError]:
        try:
            compiled = StructuralSchema.compile(schema)
            check_rules(compiled)
        except SchemaError as error:
            return [field.invalid(at, schema.get("type", ""), str(error))]
        if schema.get("type") != "object":
            found = field.required(f"{at}.type", "must not be empty at the root") if not schema.get("type") else None
            return [found or field.invalid(f"{at}.type", schema["type"], "must be object at the root")]
        return structural_faults(schema, at)

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self.validate(obj)
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
                text = "must appear in spec.versions"
                found.append(field.invalid(f"status.storedVersions[{index}]", stored, text))
        return found


def _names_of(versions: list[Json]) -> list[Any]:
    return [version.get("name") for version in versions]


def check_rules(schema: StructuralSchema, depth: int = 0) -> None:
    """Compile every CEL rule, so that a CRD with a bad one is refused and not its first object."""
    if depth > 60 or not schema.has_rules:
        return
    _ = schema.rules
    for name in schema.field_names:
        child = schema.field(name)
        if child is not None:
            check_rules(child, depth + 1)
    for child in (schema.items, schema.additional):
        if child is not None:
            check_rules(child, depth + 1)


def structural_faults(schema: Json, at: str) -> list[FieldError]:
    """The rules of structural schemas: every node has a type."""
    found: list[FieldError] = []
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not free:
        found.append(field.required(f"{at}.type", "must not be empty for specified object fields"))
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            found += structural_faults(child, f"{at}.properties[{name}]")
    items = schema.get("items")
    if isinstance(items, dict):
        found += structural_faults(items, f"{at}.items")
    elif schema.get("type") == "array" and items is None:
        found.append(field.required(f"{at}.items", "must be specified"))
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        found += structural_faults(more, f"{at}.additionalProperties")
    return found
