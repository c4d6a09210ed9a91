"""The boundary: one request in, one answer out, every failure a Status. `Request → Answer`, over HTTPS or in process.

A request's way: Host check → authentication → impersonation → router → authorization → body → operation. Permission
comes before existence, so that a 404 never leaks what there is, and before the body, so that nobody without rights
makes the server read one.

This is the only place of the API server that catches every exception of a request: one that is not a `StatusError` is
a defect of ours, logged with its traceback and answered with 500, so that one bad request never takes the server down.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.authentication import ANONYMOUS, Authenticator
from trainwright.embedded.apiserver.access.impersonation import acting_as
from trainwright.embedded.apiserver.access.rbac import Authorizer, attributes, unknown_attributes
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.dispatch import Operations
from trainwright.embedded.apiserver.http.documents import Documents
from trainwright.embedded.apiserver.http.negotiation import failure_form, render_failure
from trainwright.embedded.apiserver.http.requests import (
    Answer,
    Call,
    PageNotFound,
    Request,
    Sink,
    StreamedAnswer,
    UpgradedAnswer,
    header_fields,
    text_answer,
)
from trainwright.embedded.apiserver.http.router import Target, find_target, segments
from trainwright.embedded.apiserver.http.warnings import collecting, warn
from trainwright.embedded.apiserver.operations.streams import STREAMS
from trainwright.http.dates import DateHeader

log = logging.getLogger(__name__)
WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
VERSION_AT = {"api": 2, "apis": 3}  # how many parts a path has up to its version: what is longer names a resource


class Handler:
    """Answers the requests of one server. `allowed_hosts` guards against DNS rebinding."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        authorizer: Authorizer,
        documents: Documents,
        operations: Operations,
        allowed_hosts: frozenset[str],
    ) -> None:
        self.api = api
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.documents = documents
        self.operations = operations
        self.allowed_hosts = allowed_hosts
        self._date = DateHeader()

    async def answer(self, request: Request) -> Answer | StreamedAnswer | UpgradedAnswer:
        """Raises nothing but what ends the request: cancellation, and a connection that broke."""
        with collecting() as warnings:
            try:
                answer = await self._answer(request)
                if isinstance(answer, StreamedAnswer):
                    answer = msgspec.structs.replace(answer, send=functools.partial(_guarded, request, answer.send))
            except PageNotFound:
                answer = text_answer(404, "404 page not found\n")
            except StatusError as error:
                answer = failure(error, request.headers)
            except (asyncio.CancelledError, ConnectionResetError):
                raise
            except Exception:
                log.exception("a request could not be answered: %s %s", request.method, request.path)
                failed = StatusError(500, "an internal error of the embedded API server; its log has the details")
                answer = failure(failed, request.headers)
        return msgspec.structs.replace(answer, warnings=tuple(warnings)) if warnings else answer

    def header_fields(self, answer: Answer | StreamedAnswer) -> list[tuple[str, str]]:
        return header_fields(answer, self._date.at(self.api.clock.wall()))

    async def _answer(self, request: Request) -> Answer | StreamedAnswer | UpgradedAnswer:
        self._check_host(request.headers)
        user = self.authenticator.user_of(request.headers.get("Authorization", ""))
        if user is not ANONYMOUS:
            self.api.peers.note(request.headers.get("User-Agent", ""))
        user = acting_as(self.authorizer, user, request.headers)
        parts = segments(request.path)
        named = [part for part in parts if part]
        if len(named) > VERSION_AT.get(parts[0], len(named)):
            return await self.operations.perform(await self._call(request, user, parts))
        self.authorizer.check_path(user, request.path, request.method.lower())
        return self.documents.answer(request, named)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        host = headers.get("Host", "")
        name = host.rpartition(":")[0] if host.count(":") == 1 else host
        if host.startswith("["):
            name = host[1:].partition("]")[0]
        if name.lower() not in self.allowed_hosts:
            raise StatusError(403, f"this server answers to localhost only, not to {host[:80]!r}", reason="Forbidden")
        if "Origin" in headers:
            raise StatusError(403, "requests from web pages are not accepted", reason="Forbidden")

    async def _call(self, request: Request, user: User, parts: list[str]) -> Call:
        """The request with its target, if the user may make it, and with its body."""
        target = self._target(request, user, parts)
        if request.method == "HEAD" and not target.served.custom:
            raise errors.method_not_allowed()
        if target.served.deprecation:
            warn([target.served.deprecation])
        body = await request.read_body() if request.method in WITH_BODY else b""
        return Call(
            request.method,
            request.path,
            request.query,
            request.headers,
            user,
            target.served,
            target.namespace,
            target.name,
            target.subresource,
            target.watch,
            body,
        )

    def _target(self, request: Request, user: User, parts: list[str]) -> Target:
        while parts and not parts[-1]:
            parts.pop()
        try:
            target = find_target(self.api.registry, parts)
        except StatusError:
            self.authorizer.check(unknown_attributes(request, user, parts))
            raise
        if not target.name and request.query.flag("watch"):
            target = msgspec.structs.replace(target, watch=True)
        wanted = attributes(request, user, target)
        self.authorizer.check(wanted)
        if target.served.resource == "pods" and target.subresource in STREAMS:
            # A WebSocket begins with a GET; who may only get must not run commands.
            self.authorizer.check(msgspec.structs.replace(wanted, verb="create"))
        return target


async def _guarded(request: Request, send: Callable[[Sink], Awaitable[None]], sink: Sink) -> None:
    """A defect in the middle of a stream: the status has been sent, so all that is left is to break off."""
    try:
        await send(sink)
    except (asyncio.CancelledError, ConnectionError):
        raise
    except Exception:
        log.exception("a stream broke off: %s %s", request.method, request.path)
        sink.abort()


def failure(error: StatusError, headers: Mapping[str, str]) -> Answer:
    form = failure_form(headers.get("Accept", ""))
    more = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return Answer(error.code, render_failure(form, error.status), form.content_type, more)
