"""Builds requests: method, path, query and body. No I/O.

In: a `Resource`, names and options. Out: a `Request` that a `Transport` sends unchanged. `check_name` checks every name
before it goes into a path: the server decodes `%2F` and resolves `..` before it parses the path, so a name such as
`../../x` or `web/status` would reach another object. Such names are refused, as Kubernetes refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypedDict, Unpack
from urllib.parse import quote, urlencode

import msgspec

from trainwright.api.resources import Resource
from trainwright.client.errors import RequestError
from trainwright.schema.jsonobject import Json

JSON_TYPE = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML: the body we send is JSON

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

_PLAIN = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
"""Names that are the same in a path; `.` and `..` are none of them."""

Query = tuple[tuple[str, str], ...]


class Request(msgspec.Struct, frozen=True):
    """One HTTP request. `path` is percent-encoded already; `query` is not."""

    method: str
    path: str
    query: Query = ()
    body: bytes | None = None
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE
    read_buffer: int | None = None
    """Bytes of a streamed answer that may wait to be read; None for the transport's own limit."""
    gather_seconds: float = 0.0
    """How long what comes of a stream right after something else may be left to gather, so that it is read at once."""

    @property
    def target(self) -> str:
        """Path and query as in the request line."""
        return f"{self.path}?{_encoded(self.query)}" if self.query else self.path

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


@lru_cache(256)
def _encoded(query: Query) -> str:
    """The query in a request line: writes of one kind all have the same."""
    return urlencode(query, quote_via=quote)


class DeleteOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Preconditions and propagation of a delete."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None  # Background, Foreground or Orphan
    grace_period_seconds: int | None = None
    dry_run: bool = False

    def body(self) -> bytes:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {
            name: value for name, value in (("uid", self.uid), ("resourceVersion", self.resource_version)) if value
        }
        if preconditions:
            options["preconditions"] = preconditions
        if self.propagation is not None:
            options["propagationPolicy"] = self.propagation
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        if self.dry_run:
            options["dryRun"] = ["All"]
        return msgspec.json.encode(options)


def check_name(name: str, what: str = "name") -> str:
    """The name, percent-encoded for a path, or a `RequestError` that says what is wrong with it."""
    if _PLAIN.fullmatch(name):
        return name
    if name in ("", ".", ".."):
        raise RequestError(f"{name!r} cannot be used as a {what} in a path")
    for forbidden in "/%":
        if forbidden in name:
            raise RequestError(f"the {what} {name!r} may not contain {forbidden!r}")
    return quote(name, safe="-._~")


def path_of(
    resource: Resource, namespace: str | None = None, name: str | None = None, subresource: str | None = None
) -> str:
    """The path of a collection (of all namespaces when none is given), an object or a subresource of it."""
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced and namespace is not None:
        path += f"/namespaces/{check_name(namespace, 'namespace')}"
    elif resource.namespaced and name is not None:
        raise RequestError(f"{resource.group_resource} {name!r} needs a namespace")
    path += f"/{resource.plural}"
    if name is not None:
        path += f"/{check_name(name)}"
    if subresource is not None:
        path += "/" + "/".join(check_name(part, "subresource") for part in subresource.split("/"))
    return path


def query_of(options: Mapping[str, str | int | bool | None]) -> Query:
    """The query parameters that are set, with booleans as Kubernetes reads them."""
    return tuple(
        (name, ("true" if value else "false") if isinstance(value, bool) else str(value))
        for name, value in options.items()
        if value is not None
    )


def get(resource: Resource, name: str, namespace: str | None, subresource: str | None, *, metadata: bool) -> Request:
    accept = METADATA_ONLY if metadata else JSON_TYPE
    return Request("GET", path_of(resource, namespace, name, subresource), accept=accept)


class Selection(TypedDict, total=False):
    """The objects that a list or a watch selects."""

    label_selector: str | None
    field_selector: str | None
    resource_version: str | None


class WriteChecks(TypedDict, total=False):
    """How a write is checked. `field_validation` is Strict, Warn or Ignore; a dry run stores nothing."""

    field_validation: str | None
    dry_run: bool


class WriteOptions(WriteChecks, total=False):
    """How a write is checked, and its field manager."""

    field_manager: str | None


_SELECTION = {
    "label_selector": "labelSelector",
    "field_selector": "fieldSelector",
    "resource_version": "resourceVersion",
}
_WRITE_OPTIONS = {"field_manager": "fieldManager", "field_validation": "fieldValidation", "dry_run": "dryRun"}


def _named(names: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options by their names in a query. An unknown one is refused, so that it cannot widen a selection."""
    if unknown := given.keys() - names.keys():
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    return {name: given.get(option) for option, name in names.items()}


def list_page(
    resource: Resource,
    namespace: str | None,
    *,
    limit: int | None,
    continue_token: str | None,
    metadata: bool,
    **selection: Unpack[Selection],
) -> Request:
    options = _named(_SELECTION, selection) | {"limit": limit, "continue": continue_token}
    if continue_token:
        options["resourceVersion"] = None  # the token contains it
    query = query_of(options)
    accept = METADATA_ONLY_LIST if metadata else JSON_TYPE
    return Request("GET", path_of(resource, namespace), query, accept=accept)


def watch(
    resource: Resource,
    namespace: str | None,
    *,
    timeout_seconds: int | None,
    gather_seconds: float,
    metadata: bool,
    **selection: Unpack[Selection],
) -> Request:
    options = {"watch": True, "allowWatchBookmarks": True, "timeoutSeconds": timeout_seconds}
    query = query_of(options | _named(_SELECTION, selection))
    accept = METADATA_ONLY if metadata else JSON_TYPE
    return Request("GET", path_of(resource, namespace), query, accept=accept, gather_seconds=gather_seconds)


def write(
    method: str,
    path: str,
    body: Any,
    *,
    content_type: str = JSON_TYPE,
    force: bool | None = None,
    **options: Unpack[WriteOptions],
) -> Request:
    """A create (POST), replace (PUT) or patch (PATCH). `body` is encoded here, unless it is bytes already."""
    named = _named(_WRITE_OPTIONS, options)
    query = query_of({**named, "dryRun": "All" if named["dryRun"] else None, "force": force})
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Request(method, path, query, encoded, content_type)


def delete(resource: Resource, name: str, namespace: str | None, options: DeleteOptions) -> Request:
    return Request("DELETE", path_of(resource, namespace, name), (), options.body())


def raw(path: str) -> Request:
    """GET of a path that is no resource: `/version`, `/healthz`, discovery documents."""
    if not path.startswith("/"):
        raise RequestError(f"the path {path!r} must begin with '/'")
    if any(part in (".", "..") for part in path.split("/")):
        raise RequestError(f"the path {path!r} may not contain '.' or '..' as a part")
    return Request("GET", quote(path, safe="/-._~:%"))
