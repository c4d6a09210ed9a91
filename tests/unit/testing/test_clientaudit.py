"""A client's own record reads like the server's audit log."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from trainwright.client.requests import Request
from trainwright.testing.audit import requests
from trainwright.testing.clientaudit import events, reference, user_of
from trainwright.testing.faults import Answered, FaultyTransport

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    payload = base64.urlsafe_b64encode(json.dumps({"sub": "system:serviceaccount:home:operator"}).encode()).decode()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": f"x.{payload.rstrip('=')}.y"}}]}))
    return path


def recorded(*answered: tuple[Request, int, bytes]) -> FaultyTransport:
    transport = FaultyTransport(None)  # type: ignore[arg-type]  # nothing is sent here
    transport.answered = [Answered(request, status, body, 1.0) for request, status, body in answered]
    return transport


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces/ns", {"resource": "namespaces", "name": "ns"}),
        ("/api/v1/nodes/n", {"resource": "nodes", "name": "n"}),
        ("/api/v1/namespaces/ns/pods", {"namespace": "ns", "resource": "pods"}),
        (
            f"{JOBS}/job/status",
            {
                "apiGroup": "trainer.kubeflow.org",
                "namespace": "ns",
                "resource": "trainjobs",
                "name": "job",
                "subresource": "status",
            },
        ),
    ],
)
def test_a_path_names_its_object(path: str, expected: dict[str, str]) -> None:
    assert reference(path) == expected


def test_the_token_says_whose_it_is(kubeconfig: Path) -> None:
    assert user_of(kubeconfig) == "system:serviceaccount:home:operator"


def test_verbs_are_those_that_roles_grant(kubeconfig: Path) -> None:
    watch = Request("GET", JOBS, query=(("watch", "true"),))
    transport = recorded(
        (Request("GET", JOBS), 200, b"{}"),
        (watch, 200, b""),
        (Request("GET", f"{JOBS}/a"), 404, b"{}"),
        (Request("POST", JOBS, body=b'{"metadata":{"name":"a"}}'), 201, b'{"metadata":{"name":"a"}}'),
        (Request("PATCH", f"{JOBS}/a", query=(("dryRun", "All"),), body=b"{}"), 200, b"{}"),
        (Request("DELETE", f"{JOBS}/a"), 200, b"{}"),
    )
    found = requests(events(kubeconfig, transport))
    assert [request.verb for request in found] == ["list", "watch", "get", "create", "patch", "delete"]
    assert [request.dry_run for request in found] == [False, False, False, False, True, False]


def test_the_content_of_a_secret_is_never_recorded(kubeconfig: Path) -> None:
    body = b'{"metadata":{"name":"ssh"},"data":{"key":"c2VjcmV0"}}'
    transport = recorded((Request("POST", "/api/v1/namespaces/ns/secrets", body=body), 201, body))
    [event] = list(events(kubeconfig, transport))
    assert event["objectRef"]["name"] == "ssh"
    assert "c2VjcmV0" not in json.dumps(event)
