"""From a path to what it names: a collection, an object, a subresource.

In: the parts of a path below `/api` or `/apis`. Out: a `Target`, or the 404 that the real server gives: a Status for
what belongs to a built-in group, the plain page for what belongs to nobody.
"""

from __future__ import annotations

import urllib.parse

import msgspec

from trainwright.embedded.apiserver.errors import StatusError, unknown_resource
from trainwright.embedded.apiserver.http.requests import PageNotFound
from trainwright.embedded.apiserver.registry import Registry
from trainwright.embedded.apiserver.types import Type

NAMESPACES = "namespaces"
OF_NAMESPACES = ("status", "finalize")  # subresources; any other third part is a resource in the namespace


class Target(msgspec.Struct, frozen=True):
    """A resource path taken apart. `watch` is true for the older paths, which have `/watch/` in them."""

    served: Type
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def segments(path: str) -> list[str]:
    return [urllib.parse.unquote(part) for part in path.strip("/").split("/")]


def split_version(parts: list[str]) -> tuple[str, str, list[str]]:
    """Group, version and what follows. `parts` starts with api or apis and goes beyond the version."""
    if parts[0] == "api":
        return "", parts[1], parts[2:]
    return parts[1], parts[2], parts[3:]


def find_target(registry: Registry, parts: list[str]) -> Target:
    group, version, rest = split_version(parts)
    if not registry.has_version(group, version):
        raise unknown_resource() if group in registry.builtin_groups else PageNotFound()
    watch = rest[0] == "watch" and len(rest) > 1
    namespace, rest = _split_namespace(group, rest[1:] if watch else rest)
    served = registry.find(group, version, rest[0])
    if served is None:
        raise unknown_resource() if group in registry.builtin_groups else PageNotFound()
    name, subresource = _names(served, namespace, rest[1:])
    return Target(served, namespace, name, subresource, watch)


def _split_namespace(group: str, rest: list[str]) -> tuple[str, list[str]]:
    """The namespace, if the path goes through one, and what follows: the resource first."""
    if rest[0] != NAMESPACES:
        return "", rest
    if len(rest) > 2 and rest[2] not in OF_NAMESPACES:
        return rest[1], rest[2:]
    return "", (rest[2:] or rest) if group else rest


def _names(served: Type, namespace: str, rest: list[str]) -> tuple[str, str]:
    """The name and the subresource, if they fit the type and its scope."""
    name, subresource = (*rest, "", "")[:2]
    if namespace and not served.namespaced:
        raise _nothing_there(served)
    if rest and not name:
        raise unknown_resource()
    if name and served.namespaced and not namespace:
        raise _nothing_there(served)
    if not served.custom:
        if subresource and subresource not in served.subresources:
            raise unknown_resource()
        if len(rest) > 2 and subresource != "proxy":
            raise unknown_resource()
    return name, subresource


def _nothing_there(served: Type) -> StatusError:
    return PageNotFound() if served.custom else unknown_resource()
