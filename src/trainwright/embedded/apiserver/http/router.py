"""From a path to what it names: a document, a collection, an object, a subresource."""

from __future__ import annotations

import urllib.parse

import msgspec

from trainwright.embedded.apiserver.errors import unknown_resource
from trainwright.embedded.apiserver.http.requests import PageNotFound
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.types import Type


class Target(msgspec.Struct, frozen=True):
    """A resource path taken apart. `rest` is what follows a subresource, as in a proxy path."""

    served: Type
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    rest: str = ""


def segments(path: str) -> list[str]:
    return [urllib.parse.unquote(part) for part in path.strip("/").split("/")]


def find_target(registry: Registry, parts: list[str]) -> Target:
    """`parts` starts with api or apis and goes beyond the version. Raises the 404 the real server gives."""
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    if not registry.has_version(group, version):
        if parts[0] == "api" or group in registry.builtin_groups:
            raise unknown_resource()
        raise PageNotFound
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and group:
        rest = rest[2:] or rest
    served = registry.find(group, version, rest[0])
    custom_group = group in registry.custom_groups and group not in registry.builtin_groups
    if served is None or not rest[0]:
        if custom_group:
            raise PageNotFound
        raise unknown_resource()
    if bool(namespace) and not served.namespaced:
        raise PageNotFound if served.custom else unknown_resource()
    name = rest[1] if len(rest) > 1 else ""
    if len(rest) > 1 and not name:
        raise unknown_resource()
    if name and served.namespaced and not namespace:
        raise PageNotFound if served.custom else unknown_resource()
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and not served.custom and subresource not in served.subresources:
        raise unknown_resource()
    if len(rest) > 3 and not served.custom and subresource != "proxy":
        raise unknown_resource()
    return Target(served, namespace, name, subresource, watch, "/".join(rest[3:]))
