"""Paths that name no resource: discovery, OpenAPI, version, health, and the list of paths."""

from __future__ import annotations

from collections.abc import Callable

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.http.discovery import Discovery
from trainwright.embedded.apiserver.http.openapi import OpenApi
from trainwright.embedded.apiserver.http.requests import Answer, PageNotFound, Request, json_answer, text_answer
from trainwright.embedded.apiserver.http.version import version_info

HEALTH = ("healthz", "livez", "readyz")
CHECKS = ("ping", "log", "etcd", "poststarthook")
PATHS = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]


class Documents:
    """`why_not_ready` has a reason while no write can succeed."""

    def __init__(self, discovery: Discovery, openapi: OpenApi, why_not_ready: Callable[[], str]) -> None:
        self.discovery = discovery
        self.openapi = openapi
        self._why_not_ready = why_not_ready

    def answer(self, request: Request, parts: list[str]) -> Answer:
        """`parts` is the path without empty parts."""
        root = parts[0] if parts else ""
        if root in ("api", "apis"):
            return self.discovery.answer(request, parts)
        if root in HEALTH:
            if len(parts) > 1 and parts[1] not in CHECKS:
                raise PageNotFound
            if root == "readyz" and (reason := self._why_not_ready()):
                return text_answer(500, f"[-]etcd failed: {reason}\nreadyz check failed\n")
            return text_answer(200, "ok")
        if root == "openapi":
            return self.openapi.answer(request, parts)
        if root not in ("", "version"):
            raise PageNotFound
        if request.method != "GET":
            raise errors.method_not_allowed()
        return json_answer(200, version_info() if root else {"paths": PATHS})
