"""What probes, Prometheus and platform teams ask for: `/healthz`, `/readyz`, `/metrics`, `/debug/…`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from trainwright.api.resources import Resource
from trainwright.client import Client, ClientError
from trainwright.clock import SystemClock
from trainwright.http.application import Application, Handler, Request
from trainwright.http.response import Response, text
from trainwright.operator.serving.debugging import Profiler
from trainwright.operator.serving.reviewing import Remembered, Reviewing, TooManyReviews, digest
from trainwright.operator.serving.tokens import BAD_SECONDS, GOOD_SECONDS, LONGEST_TOKEN, TOKEN_REVIEWS, bearer

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
DEBUG_PATHS = ("/debug/stacks", "/debug/profile")


def health_application(why_not_ready: Callable[[], str]) -> Application:
    """Alive as long as it answers; ready when `why_not_ready` has nothing to say."""

    async def healthz(request: Request) -> Response:
        return text("ok")

    async def readyz(request: Request) -> Response:
        reason = why_not_ready()
        return text(reason, 500) if reason else text("ok")

    return Application({"/healthz": {"GET": healthz}, "/readyz": {"GET": readyz}})


class _Authentication(msgspec.Struct):
    class Status(msgspec.Struct):
        authenticated: bool = False
        user: dict[str, Any] | None = None

    status: Status


class _Authorization(msgspec.Struct):
    class Status(msgspec.Struct):
        allowed: bool = False

    status: Status


def metrics_application(
    registry: CollectorRegistry, reviewer: Client | None, reviewing: Reviewing | None = None
) -> Application:
    """The registry in Prometheus' or OpenMetrics' text format, whichever the request accepts. With a `reviewer`, only
    to those whom the API server lets GET the path; then stacks and profiles are served too, and never without.
    """

    async def metrics(request: Request) -> Response:
        # The library's own choice by the Accept header fails on versions that are no numbers.
        if "application/openmetrics-text" in request.headers.get("Accept", ""):
            body: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
            content_type = openmetrics.CONTENT_TYPE_LATEST
        else:
            body, content_type = generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4
        return Response(body=body, content_type=content_type)

    async def needs_auth(request: Request) -> Response:
        return text("stacks and profiles are served where metrics.auth.enabled is true, and nowhere else", 403)

    if reviewer is None:
        return Application({"/metrics": {"GET": metrics}, **{path: {"GET": needs_auth} for path in DEBUG_PATHS}})
    judge, profiler = _Judge(reviewer, reviewing or Reviewing(SystemClock())), Profiler()
    handlers = (metrics, profiler.stacks, profiler.profile)
    paths = ("/metrics", *DEBUG_PATHS)
    return Application({path: {"GET": judge.guarded(handler)} for path, handler in zip(paths, handlers, strict=True)})


class _Judge:
    """Who may scrape. An answer is remembered for a while, so that scraping costs the API server nothing."""

    def __init__(self, client: Client, reviewing: Reviewing) -> None:
        clock = SystemClock()
        self._client = client
        self._reviewing = reviewing
        self._good = Remembered(clock, GOOD_SECONDS)
        self._bad = Remembered(clock, BAD_SECONDS)

    def guarded(self, handler: Handler) -> Handler:
        """The handler, for those who may GET its path."""

        async def answer(request: Request) -> Response:
            code = await self.code_for(request)
            if code != 200:
                return text({401: "Unauthorized", 403: "Forbidden", 429: "Too Many Requests"}.get(code, "Error"), code)
            return await handler(request)

        return answer

    async def code_for(self, request: Request) -> int:
        token = bearer(request.headers.get("Authorization"))
        if not token or len(token) > LONGEST_TOKEN:
            return 401
        key = digest(token, request.path, request.method)
        known = self._good.get(key) or self._bad.get(key)
        if known is not None:
            return int(known)
        try:
            async with self._reviewing.turn():
                code = await self._ask(token, request)
        except TooManyReviews:
            return 429
        except ClientError:
            return 500
        (self._good if code == 200 else self._bad).put(key, str(code))
        return code

    async def _ask(self, token: str, request: Request) -> int:
        who: _Authentication = await self._client.create(
            TOKEN_REVIEWS,
            {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": {"token": token}},
            decode=_Authentication,
        )
        if not who.status.authenticated:
            return 401
        user = who.status.user or {}
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": request.path, "verb": request.method.lower()},
        }
        may: _Authorization = await self._client.create(
            ACCESS_REVIEWS,
            {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec},
            decode=_Authorization,
        )
        return 200 if may.status.allowed else 403
