"""The schemas of Kubernetes' built-in kinds, taken from its OpenAPI files: types, lists, merge keys, limits; no
prose.

In: the directory of the module k8s.io/kubernetes. Out: one compact JSON document, `{"kinds": {"v1/Pod": name},
"definitions": {name: schema}}`, where a reference is `{"$ref": name}` and names are shortened (`core.v1.Pod`,
`meta.v1.ObjectMeta`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainwright.schema.jsonobject import Json

# Which files hold which kinds; everything those kinds refer to comes along.
KINDS: dict[str, list[str]] = {
    "api__v1": [
        "Binding",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
        # Bodies of subresources of pods and service accounts, from other groups.
        "authentication.k8s.io/v1/TokenRequest",
        "autoscaling/v1/Scale",
        "policy/v1/Eviction",
    ],
    "apis__admissionregistration.k8s.io__v1": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    "apis__apiextensions.k8s.io__v1": ["CustomResourceDefinition"],
    "apis__apps__v1": ["ControllerRevision"],
    "apis__authentication.k8s.io__v1": ["SelfSubjectReview", "TokenReview"],
    "apis__authorization.k8s.io__v1": [
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ],
    "apis__autoscaling__v2": ["HorizontalPodAutoscaler"],
    "apis__batch__v1": ["Job"],
    "apis__coordination.k8s.io__v1": ["Lease"],
    "apis__events.k8s.io__v1": ["Event"],
    "apis__node.k8s.io__v1": ["RuntimeClass"],
    "apis__rbac.authorization.k8s.io__v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "apis__scheduling.k8s.io__v1": ["PriorityClass"],
    "apis__scheduling.k8s.io__v1alpha2": ["PodGroup"],
    "apis__storage.k8s.io__v1": ["StorageClass"],
}

# Kinds of the shared machinery: they carry dozens of group-versions, so they are named here.
_META = ("DeleteOptions", "Status")

# Types that hold any JSON at all.
_ANYTHING = (
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
)

# Part of a job template, which no kind above reaches.
_EXTRA = ("io.k8s.api.batch.v1.JobTemplateSpec",)


def extract(module: Path) -> Json:
    """The compact document; the order is sorted, so that it is the same on every machine."""
    specs = module / "api" / "openapi-spec" / "v3"
    found: dict[str, Json] = {}
    kinds: dict[str, str] = {}
    for file, names in KINDS.items():
        schemas = json.loads((specs / f"{file}_openapi.json").read_text())["components"]["schemas"]
        found.update(schemas)
        group_version = file.split("__", 1)[1].replace("__", "/")
        wanted = {name if "/" in name else f"{group_version}/{name}" for name in names}
        for name, schema in schemas.items():
            if name.startswith("io.k8s.apimachinery"):
                continue
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                full = "/".join(part for part in (gvk["group"], gvk["version"], gvk["kind"]) if part)
                if full in wanted:
                    kinds[full] = _short(name)
    for kind in _META:
        kinds[f"meta.k8s.io/v1/{kind}" if kind != "Status" else "v1/Status"] = f"meta.v1.{kind}"
    definitions: Json = {}
    queue = [name for name in found if _short(name) in set(kinds.values())] + list(_EXTRA)
    while queue:
        name = queue.pop()
        if _short(name) in definitions:
            continue
        definitions[_short(name)] = _stripped(name, found[name])
        queue += _references(found[name])
    missing = sum(map(len, KINDS.values())) + len(_META) - len(kinds)
    if missing:
        raise ValueError(f"{missing} of the kinds asked for are not in {specs}: found only {sorted(kinds)}")
    return {"kinds": dict(sorted(kinds.items())), "definitions": dict(sorted(definitions.items()))}


def _short(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` is `core.v1.Pod`; the last three parts are unique among the kinds we take."""
    return ".".join(name.split(".")[-3:])


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        here = [node["$ref"].rsplit("/", 1)[1]] if isinstance(node.get("$ref"), str) else []
        return here + [name for value in node.values() for name in _references(value)]
    if isinstance(node, list):
        return [name for value in node for name in _references(value)]
    return []


def _stripped(name: str, schema: Json) -> Json:
    if name in _ANYTHING:
        return {"x-kubernetes-preserve-unknown-fields": True}
    result = _node(schema)
    result.pop("x-kubernetes-group-version-kind", None)
    return result


def _node(schema: Json) -> Json:
    alternatives = schema.get("oneOf") or schema.get("anyOf")
    if alternatives and {"string"} < {part.get("type") for part in alternatives}:
        # Quantities and IntOrString: what CRDs call int-or-string.
        return {"x-kubernetes-int-or-string": True}
    if len(schema.get("allOf", ())) == 1:
        # A reference with siblings is spelled allOf in OpenAPI 3.0.
        schema = {**schema, **schema["allOf"][0]}
        schema.pop("allOf")
    out: Json = {}
    for key, value in schema.items():
        if key == "description":
            continue
        if key == "properties":
            out[key] = {name: _node(field) for name, field in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _node(value)
        elif key == "$ref":
            out[key] = _short(value.rsplit("/", 1)[1])
        elif key == "default" and not value:
            # {} "" 0 false mark Go's zero values here, not defaults that the server would write.
            continue
        else:
            out[key] = value
    return out
