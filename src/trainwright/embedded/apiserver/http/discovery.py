"""Discovery: which groups, versions and resources there are, in the plain and in the aggregated form."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec

from trainwright.embedded.apiserver.errors import StatusError, method_not_allowed, unknown_resource
from trainwright.embedded.apiserver.http.negotiation import negotiate
from trainwright.embedded.apiserver.http.requests import Answer, PageNotFound, Request, json_answer
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """Documents are made once for each change of the registry."""

    def __init__(self, registry: Registry, address: str) -> None:
        self.registry = registry
        self.address = address
        self._made: dict[tuple[str, int], tuple[bytes, str]] = {}

    def answer(self, request: Request, parts: list[str]) -> Answer:
        """`parts` is the path: api or apis, then group and version as far as they are given."""
        accept = request.headers.get("Accept", "")
        builtin = parts[0] == "api" or (len(parts) > 2 and parts[1] in self.registry.builtin_groups)
        if request.method != "GET" and builtin:
            raise method_not_allowed()
        if len(parts) == 1:
            if wants_aggregated(accept):
                return self._cached(
                    request, f"{parts[0]}:aggregated", lambda: self._aggregated(parts[0] == "api"), AGGREGATED
                )
            negotiate(accept, tables=False)
            return json_answer(200, self._api_versions() if parts[0] == "api" else self._group_list())
        if parts[0] == "api":
            if parts[1] != "v1":
                raise unknown_resource()
            return json_answer(200, self._resource_list("", "v1"))
        group = parts[1]
        if group not in self.registry.groups() or not group:
            raise PageNotFound
        if len(parts) == 2:
            return json_answer(200, {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
        if not self.registry.has_version(group, parts[2]):
            raise unknown_resource() if group in self.registry.builtin_groups else PageNotFound
        return json_answer(200, self._resource_list(group, parts[2]))

    def _cached(self, request: Request, name: str, make: Any, content_type: str) -> Answer:
        key = (name, self.registry.changes)
        found = self._made.get(key)
        if found is None:
            body = msgspec.json.encode(make())
            tag = '"' + hashlib.sha256(body).hexdigest().upper() + '"'
            self._made = {k: v for k, v in self._made.items() if k[1] == self.registry.changes}
            found = self._made[key] = (body, tag)
        body, tag = found
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Answer(304, b"", content_type, headers)
        return Answer(200, body, content_type, headers)

    def _api_versions(self) -> Json:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def _group(self, group: str) -> Json:
        versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in self.registry.versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _group_list(self) -> Json:
        groups = [self._group(group) for group in self.registry.groups() if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _resource_list(self, group: str, version: str) -> Json:
        resources: list[Json] = []
        for served in self.registry.types_of(group, version):
            resources.append(_resource(served))
            resources += [_subresource(served, name, entry) for name, entry in served.subresources.items()]
        resources.sort(key=lambda entry: entry["name"])
        api_version = f"{group}/{version}" if group else version
        body: Json = {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}
        if group:
            body["apiVersion"] = "v1"
        return body

    def _aggregated(self, core: bool) -> Json:
        groups = [""] if core else [group for group in self.registry.groups() if group]
        items = []
        for group in groups:
            versions = [
                {
                    "version": version,
                    "resources": [_aggregated_resource(served) for served in self.registry.types_of(group, version)],
                    "freshness": "Current",
                }
                for version in self.registry.versions(group)
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": versions})
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def wants_aggregated(accept: str) -> bool:
    for clause in accept.split(","):
        params = {piece.strip() for piece in clause.split(";")}
        if {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= params:
            return True
        if "as=APIGroupDiscoveryList" not in params:
            return False
    if "APIGroupDiscoveryList" in accept:
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        raise StatusError(406, f"only the following media types are accepted: {accepted}")
    return False


def storage_version_hash(served: Type) -> str:
    text = f"{served.group}/{served.version}/{served.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _resource(served: Type) -> Json:
    entry: Json = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    if "list" in served.verbs:
        entry["storageVersionHash"] = storage_version_hash(served)
    return entry


def _subresource(served: Type, name: str, entry: Json) -> Json:
    found: Json = {"name": f"{served.plural}/{name}", "singularName": "", "namespaced": served.namespaced}
    for member in ("group", "version"):
        if entry.get(member):
            found[member] = entry[member]
    found["kind"] = entry.get("kind", served.kind)
    found["verbs"] = entry["verbs"]
    return found


def _response_kind(served: Type, entry: Json | None = None) -> Json:
    if entry is not None and entry.get("group"):
        return {"group": entry["group"], "version": entry["version"], "kind": entry["kind"]}
    kind = served.kind if entry is None else entry.get("kind", served.kind)
    if served.custom:
        return {"group": served.group, "version": served.version, "kind": kind}
    return {"group": "", "version": "", "kind": kind}


def _aggregated_resource(served: Type) -> Json:
    entry: Json = {
        "resource": served.plural,
        "responseKind": _response_kind(served),
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    if served.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": _response_kind(served, sub), "verbs": sub["verbs"]}
            for name, sub in served.subresources.items()
        ]
    return entry
