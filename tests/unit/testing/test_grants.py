"""Grants that nobody uses are found, and a wildcard is never counted as one."""

from __future__ import annotations

import pytest

from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import Request, requests
from trainwright.testing.grants import Grant, TooBroad, grants, unused


def role(*rules: Json, kind: str = "ClusterRole", **metadata: str) -> Json:
    return {"kind": kind, "metadata": {"name": "r", **metadata}, "rules": list(rules)}


def rule(group: str, resource: str, *verbs: str, names: list[str] | None = None) -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), "resourceNames": names or []}


def event(verb: str, uri: str, code: int = 200, **reference: str) -> Json:
    return {
        "stage": "ResponseStarted" if verb == "watch" else "ResponseComplete",
        "verb": verb,
        "requestURI": uri,
        "user": {"username": "operator"},
        "objectRef": {"apiVersion": "v1", **reference},
        "responseStatus": {"code": code},
        "stageTimestamp": "2026-01-01T00:00:00.000000Z",
    }


def asked(*events: Json) -> list[Request]:
    return requests(events, user="operator")


def test_a_verb_that_was_never_used_is_found() -> None:
    used = asked(
        event("list", "/api/v1/pods", resource="pods"), event("watch", "/api/v1/pods?watch=1", resource="pods")
    )
    assert [str(grant) for grant in unused([role(rule("", "pods", "list", "watch", "delete"))], used)] == [
        "delete pods"
    ]


def test_a_denied_request_used_nothing() -> None:
    denied = asked(event("list", "/api/v1/pods", 403, resource="pods"))
    assert unused([role(rule("", "pods", "list"))], denied) == [Grant("", "pods", "list")]


def test_subresources_names_and_namespaces_are_told_apart() -> None:
    used = asked(
        event("patch", "", apiGroup="t", resource="trainjobs", subresource="status", namespace="a", name="x"),
        event("get", "", resource="secrets", namespace="home", name="certificates"),
    )
    cluster = role(rule("t", "trainjobs", "patch"), rule("t", "trainjobs/status", "patch"))
    home = role(rule("", "secrets", "get", names=["certificates", "other"]), kind="Role", namespace="home")
    assert [str(grant) for grant in unused([cluster, home], used)] == [
        "get secrets (only other) in home",
        "patch trainjobs.t",
    ]


def test_what_is_set_apart_does_not_count() -> None:
    assert unused([role(rule("t", "trainjobs/finalizers", "update"))], [], apart=["trainjobs/finalizers"]) == []


@pytest.mark.parametrize("broad", [rule("*", "pods", "get"), rule("", "*", "get"), rule("", "pods", "*")])
def test_a_wildcard_is_refused(broad: Json) -> None:
    with pytest.raises(TooBroad):
        grants(role(broad))
