"""OpenAPI v3 (and the JSON form of v2): what kubectl validates and explains with.

In: the schemas of the served types. Out: an index and one document for each group version, made when first asked for
after a change.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from trainwright.embedded.apiserver.http.requests import Answer, PageNotFound, Request
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import kubernetes
from trainwright.schema.jsonobject import Json

PATCH_TYPES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC = "application/strategic-merge-patch+json"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# Document{swagger: "2.0", info: {title, version}, paths: {}}: kubectl then says itself that it knows no such kind.
EMPTY_V2 = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.4\x42\x00"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class OpenApi:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._made: dict[tuple[str, str, int], tuple[bytes, str]] = {}
        self._index: tuple[int, bytes] | None = None

    def answer(self, request: Request, parts: list[str]) -> Answer:
        if len(parts) < 2:
            raise PageNotFound
        if parts[1] == "v2" and len(parts) == 2:
            return self._v2(request)
        if parts[1] != "v3":
            raise PageNotFound
        if len(parts) == 2:
            return Answer(200, self._index_document(), "text/plain; charset=utf-8")
        group_version = self._group_version(parts[2:])
        if group_version is None:
            return Answer(404, b"", "text/plain; charset=utf-8")
        body, digest = self._document(*group_version)
        headers = {"Etag": f'"{digest}"', "Vary": "Accept"}
        if request.query.get("hash") == digest:
            headers["Cache-Control"] = "public, immutable"
        if request.headers.get("If-None-Match") == headers["Etag"]:
            return Answer(304, b"", "application/json", headers)
        return Answer(200, body, "application/json", headers)

    def _group_version(self, parts: list[str]) -> tuple[str, str] | None:
        if parts[0] == "api" and len(parts) == 2:
            found = ("", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = (parts[1], parts[2])
        else:
            return None
        return found if self.registry.has_version(*found) else None

    def _index_document(self) -> bytes:
        if self._index is None or self._index[0] != self.registry.changes:
            paths: Json = {}
            for group in self.registry.groups():
                for version in self.registry.versions(group):
                    path = f"apis/{group}/{version}" if group else f"api/{version}"
                    digest = self._digest(group, version)
                    paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
            self._index = (self.registry.changes, msgspec.json.encode({"paths": paths}))
        return self._index[1]

    def _digest(self, group: str, version: str) -> str:
        """Changes whenever the document does, without making the document."""
        text = hashlib.sha512()
        for served in self.registry.types_of(group, version):
            text.update(f"{served.kind}{sorted(served.subresources)}{served.namespaced}".encode())
            if served.custom and served.schema is not None:
                text.update(msgspec.json.encode(served.schema()))
        return text.hexdigest().upper()

    def _document(self, group: str, version: str) -> tuple[bytes, str]:
        key = (group, version, self.registry.changes)
        found = self._made.get(key)
        if found is None:
            self._made = {k: v for k, v in self._made.items() if k[2] == self.registry.changes}
            found = self._made[key] = (msgspec.json.encode(self._make(group, version)), self._digest(group, version))
        return found

    def _make(self, group: str, version: str) -> Json:
        schemas: Json = {}
        paths: Json = {}
        custom = False
        for served in self.registry.types_of(group, version):
            custom = custom or served.custom
            name = _add_schema(served, schemas)
            _add_list_schema(served, name, schemas)
            paths.update(_paths(served, name))
        title = "Kubernetes CRD Swagger" if custom else "Kubernetes"
        return {
            "openapi": "3.0.0",
            "info": {"title": title, "version": "v0.1.0" if custom else "v1.36.4"},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _v2(self, request: Request) -> Answer:
        """The definitions as JSON; as protobuf, which kubectl asks for when v3 does not know a kind, none of them."""
        if "protobuf" in request.headers.get("Accept", ""):
            return Answer(200, EMPTY_V2, V2_PROTOBUF)
        definitions: Json = {}
        for served in self.registry:
            _add_schema(served, definitions)
        text = msgspec.json.encode(definitions).replace(b"#/components/schemas/", b"#/definitions/")
        head = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.36.4"}, "paths": {}}
        body = msgspec.json.encode(head)[:-1] + b',"definitions":' + text + b"}"
        return Answer(200, body, "application/json")


def _public_name(name: str) -> str:
    """`core.v1.Pod` is `io.k8s.api.core.v1.Pod` to the outside."""
    if name.startswith("io.k8s"):
        return name
    if name.startswith(("meta.", "api.resource", "util.intstr", "runtime.", "pkg.")):
        return f"io.k8s.apimachinery.pkg.apis.{name}" if name.startswith("meta.") else f"io.k8s.apimachinery.{name}"
    return f"io.k8s.api.{name}"


def _published(value: Any, schemas: Json) -> Any:
    """A definition with its references renamed and their targets added."""
    if isinstance(value, list):
        return [_published(item, schemas) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        _add_definition(reference, schemas)
        target = {"$ref": f"#/components/schemas/{_public_name(reference)}"}
        rest = {key: _published(item, schemas) for key, item in value.items() if key != "$ref"}
        return {**rest, "allOf": [target]} if rest else target
    return {key: _published(item, schemas) for key, item in value.items()}


def _add_definition(name: str, schemas: Json) -> None:
    public = _public_name(name)
    if public not in schemas:
        schemas[public] = {}  # a recursive definition meets its own name
        schemas[public] = _published(kubernetes.definition(name), schemas)


def _add_schema(served: Type, schemas: Json) -> str:
    """The name under which the type's schema is published."""
    gvk = [{"group": served.group, "kind": served.kind, "version": served.version}]
    if served.custom and served.schema is not None:
        reversed_group = ".".join(reversed(served.group.split(".")))
        name = f"{reversed_group}.{served.version}.{served.kind}"
        schema = dict(served.schema())
        properties = dict(schema.get("properties") or {})
        properties.setdefault("apiVersion", {"type": "string"})
        properties.setdefault("kind", {"type": "string"})
        properties["metadata"] = {"allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}]}
        schemas[name] = {**schema, "properties": properties, "x-kubernetes-group-version-kind": gvk}
        meta_name = kubernetes.definition_name("v1", "ConfigMap")
        reference = kubernetes.definition(meta_name)["properties"]["metadata"]["$ref"]
        schemas[OBJECT_META] = {}
        schemas[OBJECT_META] = _published(kubernetes.definition(reference), schemas)
        return name
    if kubernetes.has_kind(served.api_version, served.kind):
        name = kubernetes.definition_name(served.api_version, served.kind)
        _add_definition(name, schemas)
        public = _public_name(name)
        schemas[public] = {**schemas[public], "x-kubernetes-group-version-kind": gvk}
        return public
    public = f"io.k8s.api.{served.group.partition('.')[0] or 'core'}.{served.version}.{served.kind}"
    schemas[public] = {"type": "object", "x-kubernetes-group-version-kind": gvk}
    return public


def _add_list_schema(served: Type, name: str, schemas: Json) -> None:
    if "list" not in served.verbs:
        return
    text = {"type": "string"}
    items = {"type": "array", "items": {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}}
    schemas[name.removesuffix(served.kind) + served.list_kind] = {
        "type": "object",
        "required": ["items"],
        "properties": {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "items": items},
        "x-kubernetes-group-version-kind": [
            {"group": served.group, "kind": served.list_kind, "version": served.version}
        ],
    }


_NAMES = {"get": "get", "list": "list", "put": "put", "patch": "patch", "post": "post", "delete": "delete"}


def _parameter(name: str, kind: str = "string") -> Json:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


_WRITE = [_parameter("dryRun"), _parameter("fieldManager"), _parameter("fieldValidation")]
_DELETE = [
    _parameter("dryRun"),
    _parameter("gracePeriodSeconds", "integer"),
    _parameter("orphanDependents", "boolean"),
    _parameter("propagationPolicy"),
]
_LIST = [
    *(_parameter("allowWatchBookmarks", "boolean"), _parameter("continue"), _parameter("fieldSelector")),
    *(_parameter("labelSelector"), _parameter("limit", "integer"), _parameter("resourceVersion")),
    *(_parameter("resourceVersionMatch"), _parameter("sendInitialEvents", "boolean")),
    *(_parameter("timeoutSeconds", "integer"), _parameter("watch", "boolean")),
]


def _operation(served: Type, schema: str, action: str, parameters: list[Json], **more: Any) -> Json:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    operation: Json = {"responses": {"200": {"description": "OK", "content": content}}}
    operation["x-kubernetes-action"] = action
    gvk = {"group": served.group, "version": served.version, "kind": served.kind}
    operation["x-kubernetes-group-version-kind"] = gvk
    if parameters:
        operation["parameters"] = parameters
    operation.update(more)
    return operation


def _item(served: Type, schema: str, *, delete: bool) -> Json:
    body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
    media = PATCH_TYPES if served.custom else (*PATCH_TYPES, STRATEGIC)
    patch_body = {"content": {kind: {"schema": {"type": "object"}} for kind in media}}
    item: Json = {
        "get": _operation(served, schema, "get", []),
        "put": _operation(served, schema, "put", _WRITE, requestBody=body),
        "patch": _operation(served, schema, "patch", [*_WRITE, _parameter("force", "boolean")], requestBody=patch_body),
    }
    if delete:
        item["delete"] = _operation(served, schema, "delete", _DELETE)
    return item


def _paths(served: Type, schema: str) -> Json:
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    base = f"{root}/namespaces/{{namespace}}/{served.plural}" if served.namespaced else f"{root}/{served.plural}"
    scope = (
        [{"name": "namespace", "in": "path", "required": True, "schema": {"type": "string"}}]
        if served.namespaced
        else []
    )
    named = [*scope, {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
    post = _operation(served, schema, "post", _WRITE, requestBody=body)
    if "list" not in served.verbs:
        return {base: {"post": post, "parameters": scope}}
    collection: Json = {"get": _operation(served, schema, "list", _LIST), "post": post, "parameters": scope}
    if "deletecollection" in served.verbs:
        collection["delete"] = _operation(served, schema, "deletecollection", _DELETE)
    found: Json = {base: collection, f"{base}/{{name}}": {**_item(served, schema, delete=True), "parameters": named}}
    if "status" in served.subresources:
        found[f"{base}/{{name}}/status"] = {**_item(served, schema, delete=False), "parameters": named}
    return found
