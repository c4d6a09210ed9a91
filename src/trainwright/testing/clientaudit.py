"""An audit log made by the client: its requests and answers, in the form of kube-apiserver's audit log.

In: a transport that records (`FaultyTransport`). Out: events that `trainwright.testing.audit` reads, so that the oracle
can check a run on a server without an audit log. It shows only the requests of the clients that record.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainwright.api.times import rfc3339_micro
from trainwright.client.aio import USER_AGENT
from trainwright.client.requests import Request
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Answered, FaultyTransport

WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def events(kubeconfig: Path, transport: FaultyTransport, since: float = 0.0) -> Iterator[Json]:
    user = user_of(kubeconfig)
    for answered in list(transport.answered):
        if answered.at >= since:
            yield event_of(user, answered)


def user_of(kubeconfig: Path) -> str:
    """The user of a kubeconfig's token, which a service account's token contains."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"].get("token", "")
    parts = token.split(".")
    if len(parts) != 3:
        return "kubernetes-admin"
    payload = parts[1] + "=" * (-len(parts[1]) % 4)
    return str(json.loads(base64.urlsafe_b64decode(payload))["sub"])


def reference(path: str) -> Json:
    """The object that a path names, as an `objectRef` of an audit event."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    found: Json = {"apiGroup": group} if group else {}
    if len(rest) > 2 and rest[0] == "namespaces":
        found["namespace"] = rest[1]
        rest = rest[2:]
    names = ("resource", "name", "subresource")
    return found | dict(zip(names, rest, strict=False))


def verb(request: Request, named: bool) -> str:
    if request.method == "GET":
        watching = dict(request.query).get("watch") in ("true", "1")
        return "watch" if watching else "get" if named else "list"
    if request.method == "DELETE":
        return "delete" if named else "deletecollection"
    return WRITES[request.method]


def event_of(user: str, answered: Answered) -> Json:
    request = answered.request
    target = reference(request.path)
    what = verb(request, "name" in target)
    selected = dict(request.query).get("fieldSelector", "")
    if "name" not in target and selected.startswith("metadata.name="):
        target["name"] = selected.removeprefix("metadata.name=")  # as the real server does: a list of one name
    event: Json = {
        "stage": "ResponseStarted" if what == "watch" else "ResponseComplete",
        "verb": what,
        "requestURI": request.target,
        "user": {"username": user},
        "userAgent": USER_AGENT,
        "objectRef": target,
        "responseStatus": {"code": answered.status},
        "stageTimestamp": rfc3339_micro(answered.at),
    }
    if target.get("resource") == "secrets":
        body = _json(request.body)
        target.setdefault("name", (body.get("metadata") or {}).get("name", ""))
    elif request.method != "GET":
        event["requestObject"], event["responseObject"] = _json(request.body), _json(answered.body)
    return event


def _json(body: bytes | None) -> Any:
    try:
        return json.loads(body) if body else {}
    except ValueError:
        return {}
