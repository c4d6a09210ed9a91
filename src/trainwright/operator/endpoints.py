"""What probes and Prometheus ask for: `/healthz`, `/readyz`, `/metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from trainwright.api.resources import Resource
from trainwright.client import Client, ClientError
from trainwright.operator.tokens import TOKEN_REVIEWS, bearer

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)


def health_application(why_not_ready: Callable[[], str]) -> web.Application:
    """Alive as long as it answers; ready when `why_not_ready` has nothing to say."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        reason = why_not_ready()
        return web.Response(status=500, text=reason) if reason else web.Response(text="ok")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


class _Authentication(msgspec.Struct):
    class Status(msgspec.Struct):
        authenticated: bool = False
        user: dict[str, Any] | None = None

    status: Status


class _Authorization(msgspec.Struct):
    class Status(msgspec.Struct):
        allowed: bool = False

    status: Status


def metrics_application(registry: CollectorRegistry, reviewer: Client | None) -> web.Application:
    """The registry in Prometheus' or OpenMetrics' text format, whichever the request accepts. With a `reviewer`, only
    to those whom the API server lets GET the path.
    """

    async def metrics(request: web.Request) -> web.Response:
        if reviewer is not None:
            code = await _judge(reviewer, request)
            if code != 200:
                return web.Response(status=code, text={401: "Unauthorized", 403: "Forbidden"}.get(code, "Error"))
        # The library's own choice by the Accept header fails on versions that are no numbers.
        if "application/openmetrics-text" in request.headers.get("Accept", ""):
            body: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
            content_type = openmetrics.CONTENT_TYPE_LATEST
        else:
            body, content_type = generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    return app


async def _judge(client: Client, request: web.Request) -> int:
    token = bearer(request.headers.get("Authorization"))
    if not token:
        return 401
    try:
        who: _Authentication = await client.create(
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
        may: _Authorization = await client.create(
            ACCESS_REVIEWS,
            {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec},
            decode=_Authorization,
        )
    except ClientError:
        return 500
    return 200 if may.status.allowed else 403
