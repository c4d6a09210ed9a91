"""The rules of a CustomResourceDefinition's spec: group, names, scope, versions, columns, scale."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from trainwright.embedded.apiserver.builtin.schemarules import schema_faults
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1035_label_faults, dns1123_subdomain_faults

COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")


def definition_faults(obj: Json) -> list[FieldError]:
    """All faults of a definition except its name, in kube-apiserver's order."""
    spec = obj["spec"]
    found = _group_faults(obj)
    scope = spec.get("scope", "")
    if not scope:
        found.append(field.required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        found.append(field.not_supported("spec.scope", scope, ["Cluster", "Namespaced"]))
    found += _name_faults(spec.get("names") or {})
    found += _versions_faults(spec.get("versions"))
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


def _group_faults(obj: Json) -> list[FieldError]:
    group = obj["spec"].get("group", "")
    if not group:
        return [field.required("spec.group")]
    found = [field.invalid("spec.group", group, text) for text in dns1123_subdomain_faults(group)]
    if not found and len(group.split(".")) < 2:
        found.append(field.invalid("spec.group", group, "should be a domain with at least one dot"))
    if _PROTECTED.search(group) and not (obj["metadata"].get("annotations") or {}).get(_APPROVAL):
        text = 'protected groups must have approval annotation "api-approved.kubernetes.io", see'
        text += " https://github.com/kubernetes/enhancements/pull/1111"
        found.append(field.required(f"metadata.annotations[{_APPROVAL}]", text))
    return found


def _name_faults(names: Json) -> list[FieldError]:
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
        found.append(field.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    return found


def _versions_faults(versions: list[Json] | None) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    single = versions is not None and len(versions) == 1
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
        found += _version_faults(version, at, single=single)
    if sum(bool(version.get("storage")) for version in versions or ()) != 1:
        text = f"{_shown(versions)}: must have exactly one version marked as storage version"
        found.append(field.invalid("spec.versions", field.OMITTED, text))
    return found


def _version_faults(version: Json, at: str, *, single: bool) -> Iterator[FieldError]:
    """Schema, deprecation, columns and scale. A single version has the paths of the time before there were versions."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield field.required(f"{at}.schema.openAPIV3Schema")
    elif isinstance(schema, dict):
        where = "spec.validation" if single else f"{at}.schema"
        yield from schema_faults(schema, f"{where}.openAPIV3Schema")
    if version.get("deprecationWarning") is not None and not version.get("deprecated"):
        text = "can only be set for deprecated versions"
        yield field.invalid(f"{at}.deprecationWarning", version["deprecationWarning"], text)
    outer = "spec" if single else at
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column_faults(column, f"{outer}.additionalPrinterColumns[{index}]")
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from _scale_faults(scale, f"{outer}.subresources.scale")


def _column_faults(column: Json, at: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield field.required(f"{at}.name")
    path = column.get("jsonPath", "")
    if not path:
        yield field.required(f"{at}.JSONPath")
    elif not path.startswith("."):
        yield field.invalid(f"{at}.JSONPath", path, "must be a simple json path starting with .")
    if column.get("format") and column["format"] not in COLUMN_FORMATS:
        yield field.invalid(f"{at}.format", column["format"], f"must be one of {','.join(COLUMN_FORMATS)}")
    if column.get("type") not in COLUMN_TYPES:
        yield field.invalid(f"{at}.type", column.get("type", ""), f"must be one of {','.join(COLUMN_TYPES)}")


def _scale_faults(scale: Json, at: str) -> Iterator[FieldError]:
    for name, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        path = scale.get(name, "")
        if not path:
            yield field.required(f"{at}.{name}")
        elif not path.startswith("."):
            yield field.invalid(f"{at}.{name}", path, "must be a simple json path starting with .")
        elif not path.startswith(start):
            yield field.invalid(f"{at}.{name}", path, f"should be a json path under {start.rstrip('.')}")
    path = scale.get("labelSelectorPath") or ".status."
    if not path.startswith((".spec.", ".status.")):
        text = "should be a json path under either .spec or .status"
        yield field.invalid(f"{at}.labelSelectorPath", path, text)


def _shown(versions: list[Json] | None) -> str:
    """Versions as Go prints them, with members in the order of the struct."""
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
