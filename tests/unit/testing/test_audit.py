"""Audit events become requests: one each, dry runs marked, creations by server-side apply counted."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests


def event(verb: str, code: int, uri: str = "/x", stage: str = "ResponseComplete", **more: object) -> Json:
    return {
        "stage": stage,
        "verb": verb,
        "requestURI": uri,
        "user": {"username": "operator"},
        "objectRef": {"resource": "jobsets", "namespace": "ns", "name": "job"},
        "responseStatus": {"code": code},
        "stageTimestamp": "2026-01-01T00:00:00.000001Z",
        **more,
    }


def test_a_watch_counts_when_it_starts_and_everything_else_when_it_ends() -> None:
    events = [event("watch", 200, stage="ResponseStarted"), event("watch", 200), event("get", 200)]
    assert [request.verb for request in requests(events)] == ["watch", "get"]


def test_users_and_namespaces_can_be_picked() -> None:
    other = event("get", 200, user={"username": "somebody"})
    assert [request.user for request in requests([other, event("get", 200)], user="operator")] == ["operator"]
    assert requests([other], namespace="elsewhere") == []


def test_a_creation_is_what_made_something_new_and_no_dry_run_or_failure() -> None:
    events = [
        event("create", 201),
        event("create", 409),
        event("create", 201, uri="/x?dryRun=All"),
        event("patch", 201),
        event("patch", 200),
        event("delete", 200),
    ]
    assert [request.is_creation for request in requests(events)] == [True, False, False, True, False, False]


def test_agents_can_be_picked_by_how_they_begin() -> None:
    ours, theirs = event("get", 200, userAgent="trainwright/1"), event("get", 200, userAgent="kubectl/v1")
    assert [request.agent for request in requests([ours, theirs], agent="trainwright")] == ["trainwright/1"]


def test_a_json_patch_is_a_list_and_no_obstacle() -> None:
    patched = event("patch", 200, requestObject=[{"op": "remove", "path": "/metadata/finalizers/0"}])
    assert requests([patched])[0].sent is None
