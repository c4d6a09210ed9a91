"""The HTTP boundary: one request in, one answer out, every failure a Status.

This is the only place of the API server that catches every exception: what is not a `StatusError` is a defect of ours,
logged with its traceback and answered with 500, so that one bad request never takes the server down.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections.abc import Mapping

from aiohttp import web

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.authentication import Authenticator
from trainwright.embedded.apiserver.access.impersonation import acting_as
from trainwright.embedded.apiserver.access.rbac import Authorizer, attributes, unknown_attributes
from trainwright.embedded.apiserver.access.reviews import Reviews
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.kinds import review_kinds
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.bodies import MAX_BODY
from trainwright.embedded.apiserver.http.discovery import Discovery
from trainwright.embedded.apiserver.http.negotiation import failure_form, render
from trainwright.embedded.apiserver.http.openapi import OpenApi
from trainwright.embedded.apiserver.http.requests import (
    Answer,
    Call,
    PageNotFound,
    Query,
    json_answer,
    text_answer,
)
from trainwright.embedded.apiserver.http.router import find_target, segments
from trainwright.embedded.apiserver.http.version import version_info
from trainwright.embedded.apiserver.http.warnings import collect, warn
from trainwright.embedded.apiserver.operations import (
    logs,
    mutations,
    patching,
    reading,
    subresources,
    watching,
)

log = logging.getLogger(__name__)
HEALTH = ("healthz", "livez", "readyz")
CHECKS = ("ping", "log", "etcd", "poststarthook")
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REVIEWS = review_kinds()
BODY_SECONDS = 30.0


class HttpApi:
    """Handles requests of one server. `allowed_hosts` guards against DNS rebinding."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        authorizer: Authorizer,
        reviews: Reviews,
        discovery: Discovery,
        openapi: OpenApi,
        allowed_hosts: frozenset[str],
        kubelet: logs.Kubelet | None,
    ) -> None:
        self.api = api
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.reviews = reviews
        self.discovery = discovery
        self.openapi = openapi
        self.allowed_hosts = allowed_hosts
        self.kubelet = kubelet

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        warnings = collect()
        try:
            answer = await self._answer(request)
            if isinstance(answer, web.StreamResponse):
                return answer
        except PageNotFound:
            answer = text_answer(404, "404 page not found\n")
        except StatusError as error:
            form = failure_form(request.headers.get("Accept", ""))
            answer = Answer(error.code, render(form, error.status), form.content_type)
            if error.retry_after:
                answer.headers = {"Retry-After": str(error.retry_after)}
        except (asyncio.CancelledError, ConnectionResetError):
            raise
        except Exception:
            log.exception("a request could not be answered: %s %s", request.method, request.rel_url.raw_path)
            failed = StatusError(500, "an internal error of the embedded API server; its log has the details")
            answer = json_answer(500, failed.status)
        response = web.Response(status=answer.status, body=answer.body)
        response.headers["Content-Type"] = answer.content_type
        response.headers.setdefault("Cache-Control", "no-cache, private")
        for name, value in answer.headers.items():
            response.headers[name] = value
        for text in warnings:
            response.headers.add("Warning", f'299 - "{_escape(text)}"')
        return response

    async def _answer(self, request: web.BaseRequest) -> Answer | web.StreamResponse:
        self._check_host(request.headers)
        self.api.peers.note(request.headers.get("User-Agent", ""))
        path, _, query_text = request.raw_path.partition("?")
        if "://" in path[:8]:
            path = urllib.parse.urlsplit(path).path
        user = self.authenticator.user_of(request.headers.get("Authorization", ""))
        user = acting_as(self.authorizer, user, request.headers)
        call = Call(request.method, path, Query(query_text), request.headers, user)
        parts = segments(path)
        root = parts[0]
        if root in ("api", "apis") and len([part for part in parts if part]) > (2 if root == "api" else 3):
            return await self._resource(call, request, parts)
        return self._document(call, [part for part in parts if part])

    def _check_host(self, headers: Mapping[str, str]) -> None:
        host = headers.get("Host", "")
        name = host.rpartition(":")[0] if host.count(":") == 1 else host
        if host.startswith("["):
            name = host[1:].partition("]")[0]
        if name.lower() not in self.allowed_hosts:
            raise StatusError(403, f"this server answers to localhost only, not to {host[:80]!r}", reason="Forbidden")
        if "Origin" in headers:
            raise StatusError(403, "requests from web pages are not accepted", reason="Forbidden")

    # ------------------------------------------------------------------------------------------------ documents

    def _document(self, call: Call, parts: list[str]) -> Answer:
        root = parts[0] if parts else ""
        known = root in ("api", "apis", "version", "openapi", *HEALTH) or not root
        self.authorizer.check_path(call.user, call.path, call.method.lower())
        if not known:
            raise PageNotFound
        if root in ("api", "apis"):
            return self.discovery.answer(call, parts)
        if root in HEALTH:
            if len(parts) > 1 and parts[1] not in CHECKS:
                raise PageNotFound
            return text_answer(200, "ok")
        if root == "openapi":
            return self.openapi.answer(call, parts)
        if call.method != "GET":
            raise errors.method_not_allowed()
        if root == "version":
            return json_answer(200, version_info())
        paths = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return json_answer(200, {"paths": paths})

    # ------------------------------------------------------------------------------------------------ resources

    async def _resource(self, call: Call, request: web.BaseRequest, parts: list[str]) -> Answer | web.StreamResponse:
        while parts and not parts[-1]:
            parts.pop()
        try:
            target = find_target(self.api.registry, parts)
        except (StatusError, PageNotFound):
            # Who may not ask is told that before what there is.
            self.authorizer.check(unknown_attributes(call, parts))
            raise
        call.served, call.namespace, call.name = target.served, target.namespace, target.name
        call.subresource = target.subresource
        call.watch = target.watch or (not call.name and call.query.flag("watch"))
        self.authorizer.check(attributes(call))
        if call.method == "HEAD" and not target.served.custom:
            raise errors.method_not_allowed()
        if target.served.deprecation:
            warn([target.served.deprecation])
        if call.method in ("POST", "PUT", "PATCH", "DELETE"):
            call.body = await _read_body(request)
        if call.subresource:
            return await self._subresource(call, request)
        if target.served.plural in _REVIEWS and not target.served.custom and "list" not in target.served.verbs:
            if call.name:
                raise errors.unknown_resource()
            if call.method != "POST":
                raise errors.method_not_allowed()
            return self.reviews.answer(call)
        if target.served.resource == "bindings":
            if call.name:
                raise errors.unknown_resource()
            if call.method != "POST":
                raise errors.method_not_allowed()
            return await subresources.bind_by_body(self.api, call)
        return await (self._object(call, request) if call.name else self._collection(call, request))

    async def _collection(self, call: Call, request: web.BaseRequest) -> Answer | web.StreamResponse:
        method, served = call.method, call.served
        if method in ("GET", "HEAD"):
            if call.watch:
                return await watching.watch(self.api, call, request, {})
            return await reading.list_objects(self.api, call)
        everywhere = served.namespaced and not call.namespace
        if method == "POST":
            if everywhere:
                raise PageNotFound if served.custom else errors.method_not_allowed()
            return await mutations.create(self.api, call)
        if method == "DELETE" and "deletecollection" in served.verbs and not everywhere:
            return await mutations.delete_collection(self.api, call)
        if served.custom and method in ("PUT", "PATCH"):
            raise errors.bad_request("name must be provided")
        raise errors.method_not_allowed()

    async def _object(self, call: Call, request: web.BaseRequest) -> Answer | web.StreamResponse:
        method = call.method
        if method in ("GET", "HEAD"):
            if call.watch:
                return await watching.watch(self.api, call, request, {})
            return await reading.get(self.api, call)
        if method == "PUT":
            return await mutations.update(self.api, call)
        if method == "PATCH":
            return await patching.patch(self.api, call)
        if method == "DELETE":
            return await mutations.delete(self.api, call)
        if method == "POST" and call.served.custom:
            return await mutations.create(self.api, call)
        raise errors.method_not_allowed()

    async def _subresource(self, call: Call, request: web.BaseRequest) -> Answer | web.StreamResponse:
        served = call.served
        if served.resource == "pods" and call.subresource == "log":
            if call.method != "GET":
                raise errors.method_not_allowed()
            stream = await logs.log(self.api, self.kubelet, call, request)
            return stream if stream is not None else Answer(204, b"", "text/plain")
        if served.resource == "serviceaccounts" and call.subresource == "token":
            return self.reviews.token_request(call)
        handler = subresources.handler_of(call)
        if handler is not None:
            return await handler(self.api, call)
        if call.subresource not in served.subresources:
            raise errors.not_found(served.group, served.plural, call.name)
        if call.method == "GET":
            return await reading.get(self.api, call)
        if call.method == "PUT":
            return await mutations.update(self.api, call)
        if call.method == "PATCH":
            return await patching.patch(self.api, call)
        if served.custom and call.method in VERBS:
            text = f'{VERBS[call.method]} is not supported on resources of kind "{served.plural}.{served.group}"'
            raise StatusError(405, text, details={"group": served.group, "kind": served.plural})
        raise errors.method_not_allowed()


def _escape(text: str) -> str:
    flat = "".join(char if char.isprintable() else " " for char in text)
    return flat.replace("\\", "\\\\").replace('"', '\\"')


async def _read_body(request: web.BaseRequest) -> bytes:
    """All of it, up to the limit, within a time."""
    if not request.can_read_body:
        return b""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for data in request.content.iter_any():
                size += len(data)
                if size > MAX_BODY:
                    raise StatusError(413, f"Request entity too large: limit is {MAX_BODY}")
                parts.append(data)
    except TimeoutError:
        raise StatusError(408, "the body of the request did not arrive in time", reason="Timeout") from None
    except web.RequestPayloadError as error:
        raise errors.bad_request(f"the body of the request cannot be read: {error}") from None
    return b"".join(parts)
