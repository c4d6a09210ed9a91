"""The progress server on a real Kubernetes: a pod's own token gets through, and nothing else does."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kube.installation import USER, Installation
from kube.stories import TORCH, base, create, runtime, trainjob, until_state
from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane) as running:
        yield running


class Reporter:
    """Posts to the progress server as training code does, over TLS with the CA that the pods mount."""

    def __init__(self, installed: Installation, namespace: str, job: str = "job") -> None:
        admin = installed.plane.admin
        mounted = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/{job}-tls-config")["data"]["ca.crt"]
        self._tls = ssl.create_default_context(cadata=mounted)
        self._port = installed.progress_port
        self.path = f"{base(namespace)}/trainjobs/{job}/status"

    def post(
        self, body: Any, token: str | None, *, path: str | None = None, header: str | None = None, method: str = "POST"
    ) -> tuple[int, Json]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=20, context=self._tls)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if header is not None:
            headers["Authorization"] = header
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path or self.path, data, headers)
            answer = connection.getresponse()
            assert answer.headers["Content-Type"].startswith("application/json")
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


class Scene:
    """A running TrainJob `job`, its first pod, and tokens of all sorts."""

    def __init__(self, plane: RealControlPlane, installed: Installation) -> None:
        self.plane = plane
        self.namespace = plane.namespace("progress")
        create(plane.admin, self.namespace, runtime("it", TORCH), trainjob("job", "it", "hang"))
        until_state(plane.admin, self.namespace, "Running")
        self.pod = self.pods("job")[0]
        self.reporter = Reporter(installed, self.namespace)

    def pods(self, job: str) -> list[Json]:
        selector = f"jobset.sigs.k8s.io/jobset-name={job}"
        return self.plane.admin.items(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=selector)

    def audience(self, job: str = "job") -> str:
        return f"trainer.kubeflow.org/v1alpha1/namespaces/{self.namespace}/trainjobs/{job}/status"

    def token(self, pod: Json | None, *, audience: str | None = None, namespace: str | None = None) -> str:
        spec: Json = {"expirationSeconds": 3600, "audiences": [audience or self.audience()]}
        if pod is not None:
            metadata = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        where = f"/api/v1/namespaces/{namespace or self.namespace}/serviceaccounts/default/token"
        token: str = self.plane.admin.create(where, body)["status"]["token"]
        return token

    def stored(self) -> Json | None:
        job = self.plane.admin.get(f"{base(self.namespace)}/trainjobs/job")
        status: Json | None = job.get("status", {}).get("trainerStatus")
        return status


@pytest.fixture(scope="module")
def scene(plane: RealControlPlane, installed: Installation) -> Scene:
    return Scene(plane, installed)


def report(**members: Any) -> Json:
    return {"trainerStatus": {"lastUpdatedTime": NOW, **members}}


def test_a_report_with_the_pods_own_token_is_stored_and_the_next_replaces_it(scene: Scene) -> None:
    token = scene.token(scene.pod)
    first = report(progressPercentage=40, metrics=[{"name": "loss", "value": "0.5"}])
    assert scene.reporter.post(first, token) == (200, first)
    assert scene.stored() == first["trainerStatus"]
    second = report(estimatedRemainingSeconds=10, lastUpdatedTime="2026-01-01T00:00:01Z")
    assert scene.reporter.post(second, token)[0] == 200
    assert scene.stored() == second["trainerStatus"]
    conditions = scene.plane.admin.get(f"{base(scene.namespace)}/trainjobs/job")["status"]
    assert conditions["state"] == "Running"  # the controller's fields are not the progress server's


def test_a_report_that_arrives_late_does_not_replace_a_newer_one(scene: Scene) -> None:
    token = scene.token(scene.pod)
    newer = report(progressPercentage=80, lastUpdatedTime="2026-01-01T01:00:00Z")
    assert scene.reporter.post(newer, token)[0] == 200
    assert scene.reporter.post(report(progressPercentage=20), token)[0] == 200
    assert scene.stored() == newer["trainerStatus"]


def test_an_empty_report_is_fine_and_changes_nothing(scene: Scene) -> None:
    before = scene.stored()
    assert scene.reporter.post({}, scene.token(scene.pod)) == (200, {})
    assert scene.stored() == before


def forged(scene: Scene, *, key: ec.EllipticCurvePrivateKey | None, expired: bool) -> str:
    """The pod's own token with other claims, signed by whoever has `key`."""
    head, claims, _ = scene.token(scene.pod).split(".")
    header, payload = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, claims))
    if key is None:
        header["alg"] = "none"
    if expired:
        payload.update(exp=int(time.time()) - 60, iat=int(time.time()) - 3660, nbf=int(time.time()) - 3660)
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, payload)
    )
    signature = b""
    if key is not None:  # JWS wants the two numbers one after the other
        numbers = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = b"".join(number.to_bytes(32, "big") for number in numbers)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def account_key(scene: Scene) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(scene.plane.service_account_key.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def test_a_token_that_we_sign_ourselves_with_the_right_key_is_good(scene: Scene) -> None:
    """This shows that the forged tokens below are refused for their claims, and not for how they are made."""
    assert scene.reporter.post({}, forged(scene, key=account_key(scene), expired=False))[0] == 200


def pod_of_another_job(scene: Scene) -> Json:
    create(scene.plane.admin, scene.namespace, trainjob("other", "it", "hang"))
    until_state(scene.plane.admin, scene.namespace, "Running", "other")
    return scene.pods("other")[0]


def lone_pod(scene: Scene, namespace: str) -> Json:
    """A pod that has the job's labels and does not belong to it."""
    body = {
        "metadata": {"name": f"lone-{time.monotonic_ns()}", "labels": {"jobset.sigs.k8s.io/jobset-name": "job"}},
        "spec": {"containers": [{"name": "node", "image": "none"}]},
    }
    return scene.plane.admin.create(f"/api/v1/namespaces/{namespace}/pods", body)


def token_of_another_namespace(scene: Scene) -> str:
    elsewhere = scene.plane.namespace("progress")
    return scene.token(lone_pod(scene, elsewhere), namespace=elsewhere)


def token_of_a_deleted_pod(scene: Scene) -> str:
    pod = lone_pod(scene, scene.namespace)
    token = scene.token(pod)
    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
    scene.plane.admin.delete(path, gracePeriodSeconds=0, apiVersion="v1", kind="DeleteOptions")
    scene.plane.admin.until(path, lambda found: found is None, what="pod gone")
    return token


BAD_TOKENS: dict[str, Callable[[Scene], str | None]] = {
    "none": lambda scene: None,
    "empty": lambda scene: "",
    "not a token": lambda scene: "hello",
    "three parts of nothing": lambda scene: "a.b.c",
    "of another audience": lambda scene: scene.token(scene.pod, audience="https://kubernetes.default.svc"),
    "of another job's audience": lambda scene: scene.token(scene.pod, audience=scene.audience("other-job")),
    "bound to no pod": lambda scene: scene.token(None),
    "of a pod that belongs to no job": lambda scene: scene.token(lone_pod(scene, scene.namespace)),
    "of a pod of another job": lambda scene: scene.token(pod_of_another_job(scene)),
    "of a pod in another namespace": token_of_another_namespace,
    "of a pod that is gone": token_of_a_deleted_pod,
    "expired": lambda scene: forged(scene, key=account_key(scene), expired=True),
    "signed by somebody else": lambda scene: forged(scene, key=ec.generate_private_key(ec.SECP256R1()), expired=False),
    "not signed": lambda scene: forged(scene, key=None, expired=False),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_bad_token_is_refused_and_nothing_is_stored(scene: Scene, kind: str) -> None:
    before = scene.stored()
    body = report(progressPercentage=99, lastUpdatedTime="2027-01-01T00:00:00Z")
    code, answer = scene.reporter.post(body, BAD_TOKENS[kind](scene))
    assert (code, answer) == (
        403,
        {"metadata": {}, "status": "Failure", "message": "Forbidden", "reason": "Forbidden", "code": 403},
    )
    assert scene.stored() == before


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer a b", "bearerX"])
def test_other_ways_to_authorize_are_refused(scene: Scene, header: str) -> None:
    assert scene.reporter.post(report(), None, header=header)[0] == 403


@pytest.mark.parametrize("header", ["bearer {}", "  BEARER    {}  "])
def test_the_scheme_is_read_as_http_has_it(scene: Scene, header: str) -> None:
    assert scene.reporter.post({}, None, header=header.format(scene.token(scene.pod)))[0] == 200


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"", 422, "Invalid payload"),
        (b"[1]", 422, "Invalid payload"),
        ({"trainerStatus": {"progressPercentage": "fifty", "lastUpdatedTime": NOW}}, 422, "Invalid payload"),
        (report(progressPercentage=101, lastUpdatedTime="2026-01-02T00:00:00Z"), 422, "job"),
        (report(progressPercentage=5, lastUpdatedTime="2099-01-01T00:00:00Z"), 422, "is in the future"),
        ({"trainerStatus": {"progressPercentage": 5}}, 422, "lastUpdatedTime"),
        (b" " * 65537, 413, "Payload too large"),
    ],
)
def test_a_bad_report_is_refused_with_its_code(scene: Scene, body: Any, code: int, message: str) -> None:
    before = scene.stored()
    found, answer = scene.reporter.post(body, scene.token(scene.pod))
    assert found == code
    assert message in answer["message"]
    assert scene.stored() == before


def test_a_report_for_a_job_that_is_not_there_is_refused(scene: Scene) -> None:
    path = scene.reporter.path.replace("/job/", "/nobody/")
    token = scene.token(scene.pod, audience=scene.audience("nobody"))
    assert scene.reporter.post(report(), token, path=path)[0] == 403  # its pod cannot belong to it


@pytest.mark.parametrize(("method", "path"), [("GET", None), ("PUT", None), ("POST", "/"), ("POST", "/apis/x")])
def test_everything_else_is_not_found(scene: Scene, method: str, path: str | None) -> None:
    code, answer = scene.reporter.post(report(), scene.token(scene.pod), method=method, path=path)
    assert (code, answer["message"]) == (404, "Not found")


def test_many_reports_of_one_job_become_few_writes_and_the_last_wins(scene: Scene) -> None:
    token = scene.token(scene.pod)
    begun = time.time()

    def post(number: int) -> int:
        body = report(progressPercentage=number, lastUpdatedTime=rfc3339(begun - 99 + number))
        return scene.reporter.post(body, token)[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(post, range(100))) == {200}
    assert (scene.stored() or {})["progressPercentage"] == 99
    written = [
        request
        for request in requests(scene.plane.audit_events(), user=USER)
        if request.at >= begun and request.name == "job" and request.subresource == "status" and request.is_write
    ]
    assert 1 <= len(written) <= 60
