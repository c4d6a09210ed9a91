"""Certificates are rotated during admissions without a failure, shared by replicas, and repaired when damaged."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable

import pytest

from kube.installation import NAMESPACE, Installation
from kube.stories import TORCH, base, create, runtime, trainjob
from trainwright.operator.certificates.material import Policy, split_bundle
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from waiting import eventually

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert"
DAY = 86400.0
FAST = Policy(
    "operator.test.svc",
    authority_days=25 / DAY,
    certificate_days=22 / DAY,
    renew_days=10 / DAY,
    overlap_seconds=3.0,
    addresses=("127.0.0.1",),
)


class Admissions:
    """Creates TrainJobs as dry runs, twenty a second, and keeps every refusal."""

    def __init__(self, plane: RealControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = f"{base(namespace)}/trainjobs?dryRun=All"
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(4)]
        self.admitted = 0
        self.refused: list[str] = []

    def __enter__(self) -> Admissions:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        while not self._stop.wait(0.2):
            code, body = self._plane.admin.raw("POST", self._path, trainjob(f"dry-{number}", "it"))
            if code == 201:
                self.admitted += 1
            else:
                self.refused.append(body.decode()[:300])


def authorities(plane: RealControlPlane) -> tuple[bytes, ...]:
    secret = plane.admin.find(SECRET)
    return split_bundle(base64.b64decode(secret["data"]["ca.crt"])) if secret and secret.get("data") else ()


@pytest.mark.timeout(200)
def test_certificates_are_rotated_under_admissions_with_no_failure(plane: RealControlPlane) -> None:
    namespace = plane.namespace("rotation")
    with Installation(plane, policy=FAST) as installed:
        create(plane.admin, namespace, runtime("it", TORCH))
        first = authorities(plane)[0]
        seen: list[tuple[bytes, ...]] = []
        with Admissions(plane, namespace) as admissions:
            end = time.monotonic() + 60
            while not (seen and first not in seen[-1] and len(seen[-1]) == 1) and time.monotonic() < end:
                now = authorities(plane)
                if not seen or seen[-1] != now:
                    seen.append(now)
                time.sleep(0.1)
            time.sleep(2)
        assert admissions.refused == []
        assert admissions.admitted > 100
        assert any(len(bundle) == 2 and first in bundle for bundle in seen), "old and new CA went together"
        assert first not in seen[-1], "the old CA was dropped in the end"
        assert installed.operator.operator.is_ready


def test_replicas_that_start_together_without_a_secret_agree_on_one_ca(plane: RealControlPlane) -> None:
    first = Installation(plane)
    first.install()
    second = Installation(plane)
    second.kubeconfig = first.kubeconfig
    plane.admin.delete_if_there(SECRET)
    try:
        for _ in range(3):
            with first.run_operator() as one, second.run_operator() as other:
                [authority] = authorities(plane)
                for operator in (one, other):
                    assert operator.operator.is_ready
                    handshake(operator.operator.ports["webhook"], authority)
            plane.admin.delete(SECRET)
    finally:
        first.uninstall()


def handshake(port: int, authority: bytes) -> None:
    """A TLS handshake that trusts only this CA."""
    context = ssl.create_default_context(cadata=authority.decode())
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1"):
            pass


def emptied(plane: RealControlPlane) -> None:
    plane.admin.patch(SECRET, {"data": None})


def corrupted(plane: RealControlPlane) -> None:
    plane.admin.patch(SECRET, {"data": {"tls.crt": base64.b64encode(b"nonsense").decode()}})


def mismatched(plane: RealControlPlane) -> None:
    secret = plane.admin.get(SECRET)
    plane.admin.patch(SECRET, {"data": {"tls.key": secret["data"]["ca.key"]}})


def deleted(plane: RealControlPlane) -> None:
    plane.admin.delete(SECRET)


@pytest.mark.parametrize("damage", [emptied, corrupted, mismatched, deleted])
def test_a_damaged_secret_is_healed_and_admissions_go_on(
    plane: RealControlPlane, damage: Callable[[RealControlPlane], None]
) -> None:
    namespace = plane.namespace("rotation")
    with Installation(plane):
        create(plane.admin, namespace, runtime("it", TORCH))
        damage(plane)

        def is_whole(secret: Json | None) -> bool:
            return bool(secret and len(secret.get("data") or {}) == 4 and secret["data"]["tls.crt"] != "bm9uc2Vuc2U=")

        plane.admin.until(SECRET, is_whole, what="healed", seconds=30)
        path = f"{base(namespace)}/trainjobs?dryRun=All"
        eventually(
            "the webhooks to admit again", lambda: plane.admin.raw("POST", path, trainjob("job", "it"))[0] == 201
        )
