"""The audit log as requests: user, verb, object, result.

In: kube-apiserver's audit events (`RealControlPlane.audit_events`). Out: one `Request` per answered request, with the
verb that RBAC checked. Dry runs are marked; a server-side apply that created its object counts as a create.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from trainwright.api.times import seconds_of
from trainwright.schema.jsonobject import Json

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    user: str
    agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    dry_run: bool
    at: float
    sent: Json | None
    answer: Json | None

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES and not self.dry_run

    @property
    def succeeded(self) -> bool:
        return 200 <= self.code < 300

    @property
    def is_creation(self) -> bool:
        """Whether the request created an object: by a create, or by an apply that was answered with 201."""
        return self.is_write and self.succeeded and not self.subresource and (self.verb == "create" or self.code == 201)

    @property
    def full_resource(self) -> str:
        """The resource as in the rule of a role: `trainjobs/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part)
        dry = " (dry run)" if self.dry_run else ""
        return f"{self.verb} {self.full_resource} {where} by {self.user}{dry}: {self.code}"


def requests(
    events: Iterable[Json], *, user: str | None = None, namespace: str | None = None, agent: str = ""
) -> list[Request]:
    """Requests in the order of their answers: a watch when it starts, everything else when it ends."""
    found = []
    for event in events:
        stage = event.get("stage")
        if stage != ("ResponseStarted" if event.get("verb") == "watch" else "ResponseComplete"):
            continue
        request = _request(event)
        if user is not None and request.user != user:
            continue
        if namespace is not None and request.namespace != namespace:
            continue
        if not request.agent.startswith(agent):
            continue
        found.append(request)
    return sorted(found, key=lambda request: request.at)


def _request(event: Json) -> Request:
    reference: Json = event.get("objectRef", {})
    query = parse_qs(urlsplit(event.get("requestURI", "")).query)
    return Request(
        user=event["user"].get("username", ""),
        agent=event.get("userAgent", ""),
        verb=event["verb"],
        group=reference.get("apiGroup", ""),
        resource=reference.get("resource", ""),
        subresource=reference.get("subresource", ""),
        namespace=reference.get("namespace", ""),
        name=reference.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        dry_run="dryRun" in query or "All" in _body(event.get("requestObject")).get("dryRun", []),
        at=seconds_of(event["stageTimestamp"]),
        sent=_body(event.get("requestObject")) or None,
        answer=event.get("responseObject"),
    )


def _body(logged: Any) -> Json:
    """The body if it is an object. A JSON patch is logged as a list, which no rule reads."""
    return logged if isinstance(logged, dict) else {}
