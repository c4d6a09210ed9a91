"""Nothing a client sends makes the server fail or hang: mutated objects and malformed requests get an answer below 500.

A tenth of the full count by default; `TRAINWRIGHT_FUZZ=10` multiplies it (`make test-long`).
"""

from __future__ import annotations

import copy
import http.client
import json
import os
import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver_process import ApiServerProcess, api_server_process

SCALE = int(os.environ.get("TRAINWRIGHT_FUZZ", "1"))
OBJECTS, REQUESTS = 500 * SCALE, 200 * SCALE
SEED = int(os.environ.get("TRAINWRIGHT_FUZZ_SEED", "1"))
SECONDS = 15
NS = "/api/v1/namespaces/default"

POD_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"a": "b"},
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}]}},
    ],
    "containers": [
        {
            "name": "main",
            "image": "example.org/app:1",
            "command": ["sh", "-c", "true"],
            "env": [
                {"name": "A", "value": "b"},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
        }
    ],
}
JOBS: dict[str, Any] = {"name": "node", "template": {"spec": {"template": {"spec": POD_SPEC}}}}
META = {
    "name": "fuzz",
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "finalizers": ["example.org/f"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}],
}
TRAINER = "trainer.kubeflow.org/v1alpha1"
RUNTIME_SPEC: dict[str, Any] = {
    "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "auto"}},
    "template": {"spec": {"replicatedJobs": [JOBS]}},
}
CASES: list[tuple[str, dict[str, Any]]] = [
    (f"{NS}/configmaps", {"data": {"a": "b"}, "binaryData": {"x": "AA=="}, "immutable": False}),
    (f"{NS}/secrets", {"type": "Opaque", "data": {"a": "AA=="}, "stringData": {"b": "c"}}),
    (f"{NS}/pods", {"spec": POD_SPEC}),
    (
        f"{NS}/services",
        {"spec": {"type": "ClusterIP", "selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "http"}]}},
    ),
    (
        f"{NS}/events",
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
            "firstTimestamp": "2024-01-01T00:00:00Z",
            "count": 1,
        },
    ),
    (
        f"{NS}/persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    (f"{NS}/serviceaccounts", {"automountServiceAccountToken": False}),
    ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"parallelism": 2, "template": {"spec": POD_SPEC}}}),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2024-01-01T00:00:00.000000Z"}},
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
        },
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {
            "webhooks": [
                {
                    "name": "a.example.org",
                    "clientConfig": {"url": "https://127.0.0.1:1/x"},
                    "rules": [
                        {"operations": ["CREATE"], "apiGroups": ["none"], "apiVersions": ["v1"], "resources": ["x"]}
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "failurePolicy": "Ignore",
                    "namespaceSelector": {"matchLabels": {"a": "b"}},
                    "matchConditions": [{"name": "c", "expression": "has(object.spec)"}],
                }
            ]
        },
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "fuzzes.fuzz.example.org"},
            "spec": {
                "group": "fuzz.example.org",
                "scope": "Namespaced",
                "names": {"plural": "fuzzes", "kind": "Fuzz"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                            }
                        },
                        "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
                        "subresources": {"status": {}},
                    }
                ],
            },
        },
    ),
    (
        f"/apis/{TRAINER}/namespaces/default/trainjobs",
        {
            "apiVersion": TRAINER,
            "kind": "TrainJob",
            "spec": {
                "runtimeRef": {"name": "r", "kind": "ClusterTrainingRuntime"},
                "suspend": True,
                "trainer": {
                    "numNodes": 2,
                    "numProcPerNode": 2,
                    "image": "i",
                    "env": [{"name": "A", "value": "b"}],
                    "resourcesPerNode": {"limits": {"cpu": "1"}},
                },
                "initializer": {"dataset": {"storageUri": "hf://a/b"}},
                "runtimePatches": [{"manager": "m.example.org/x", "trainingRuntimeSpec": {"template": {"spec": {}}}}],
            },
        },
    ),
    (
        f"/apis/{TRAINER}/clustertrainingruntimes",
        {"apiVersion": TRAINER, "kind": "ClusterTrainingRuntime", "spec": RUNTIME_SPEC},
    ),
    (
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "spec": {"replicatedJobs": [JOBS], "suspend": True},
        },
    ),
]
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        -(2**63),
        2**64,
        1.5,
        1e308,
        "",
        " ",
        "x" * 300,
        "Ünïcödé\n\t",
        "../..",
        "1e9999",
    ),
    *(
        [],
        {},
        [None],
        [[]],
        {"": ""},
        {"a": None},
        [{"a": 1}, {"a": 1}],
        "9" * 400,
        "2024-99-99T00:00:00Z",
        "$(A)",
        "-",
        ".",
    ),
]


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield (*prefix, key)
        yield from paths(entry, (*prefix, key))


def mutate(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """One to four changes anywhere in the object."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        places = list(paths(value))
        if not places:
            return value
        *way, last = chance.choice(places)
        target: Any = value
        for key in way:
            target = target[key]
        action = chance.random()
        if action < 0.65:
            target[last] = copy.deepcopy(chance.choice(ODD))
        elif action < 0.8 and isinstance(target, dict):
            del target[last]
        elif isinstance(target, dict):
            target[chance.choice(("unknown", "kind", "name", "$patch", ""))] = copy.deepcopy(chance.choice(ODD))
        else:
            target.append(copy.deepcopy(target[last]))
    return value


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcess]:
    with api_server_process(tmp_path_factory.mktemp("fuzz") / "state") as running:
        yield running


class Talker:
    """One connection that is made anew when the server closes it."""

    def __init__(self, server: ApiServerProcess) -> None:
        self.server = server
        self.connection: http.client.HTTPSConnection | None = None

    def send(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
        for fresh in (False, True):
            if self.connection is None or fresh:
                self.close()
                host = self.server.url.removeprefix("https://")
                self.connection = http.client.HTTPSConnection(host, context=self.server.context(), timeout=SECONDS)
            headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": kind}
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if fresh:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def talker(server: ApiServerProcess) -> Iterator[Talker]:
    talker = Talker(server)
    yield talker
    talker.close()


def way_in(path: str, obj: dict[str, Any], chance: random.Random) -> tuple[str, str, bytes, str]:
    """A create, a merge patch, an apply or an update with this object."""
    body = json.dumps(obj).encode()
    choice = chance.random()
    mode = chance.choice(("Strict", "Warn", "Ignore"))
    if choice < 0.55:
        dry = "&dryRun=All" if chance.random() < 0.5 else ""
        return "POST", f"{path}?fieldValidation={mode}{dry}", body, "application/json"
    target = f"{path}/fuzz"
    if choice < 0.7:
        return "PATCH", f"{target}?fieldValidation={mode}", body, "application/merge-patch+json"
    if choice < 0.8:
        return "PATCH", target, body, "application/strategic-merge-patch+json"
    if choice < 0.92:
        return "PATCH", f"{target}?fieldManager=fuzz&force=true", body, "application/apply-patch+yaml"
    return "PUT", f"{target}?fieldValidation={mode}", body, "application/json"


def test_mutated_objects_are_accepted_or_refused_never_failed(server: ApiServerProcess, talker: Talker) -> None:
    chance = random.Random(SEED)
    accepted = 0
    for number in range(OBJECTS):
        path, template = chance.choice(CASES)
        base = {**template, "metadata": {**META, **template.get("metadata", {})}}
        method, target, body, kind = way_in(path, mutate(base, chance), chance)
        status, answer = talker.send(method, target, body, kind)
        assert status < 500, f"#{number} {method} {target} {body!r}: {answer[:2000]!r}\n{server.log()[-4000:]}"
        accepted += status < 300
        if status < 300 and chance.random() < 0.7:
            free = b'{"metadata":{"finalizers":null}}'
            talker.send("PATCH", f"{path}/fuzz", free, "application/merge-patch+json")
            status, answer = talker.send("DELETE", f"{path}/fuzz", b"", "application/json")
            assert status < 500, answer
    assert OBJECTS > accepted > OBJECTS // 50  # both outcomes occur, or the test says nothing


FRAGMENTS = [
    *("api", "apis", "v1", "namespaces", "default", "configmaps", "pods", "..", ".", "%2e%2e", "%2F", "%00", "\u00fc"),
    *(
        "trainer.kubeflow.org",
        "v1alpha1",
        "trainjobs",
        "status",
        "log",
        "scale",
        "x" * 300,
        "",
        "watch",
        "openapi",
        "v3",
    ),
    *("batch", "jobs", "binding", "eviction", "finalize", "token", "serviceaccounts", "version", "healthz"),
]
QUERIES = [
    *("limit=-1", "limit=x", "limit=99999999999999999999", "continue=%ff", "continue=e30", "watch=1&timeoutSeconds=1"),
    *("labelSelector=a%20in%20(", "labelSelector=,,", "fieldSelector=a", "fieldSelector=%3D%3D", "resourceVersion=-1"),
    *(
        "resourceVersion=abc",
        "resourceVersionMatch=Exact",
        "dryRun=x",
        "fieldValidation=x",
        "force=",
        "fieldManager=%00",
    ),
    *("includeObject=x", "pretty=true", "=", "&&&", "%", "a=%zz", "timeoutSeconds=x", "gracePeriodSeconds=-5"),
    *(
        "propagationPolicy=x",
        "orphanDependents=x",
        "container=x",
        "tailLines=-1",
        "sinceTime=x",
        "limitBytes=0",
        "follow=1",
    ),
]
BODIES = [
    *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{}" * 50, b'{"a":NaN}', b'{"a":1e999}', b'{"kind":1}'),
    *(
        b"[" * 100_000,
        b'{"a":' * 5_000,
        b'{"metadata":[]}',
        b'{"metadata":{"name":{}}}',
        b"k8s\x00\xff\xff",
        b"a: [1\nb: {",
    ),
    *(b"&a [*a]", b'[{"op":"test","path":"/x","value":1}]', b'[{"op":"add","path":"","value":1}]', b'[{"op":"move"}]'),
    *(
        b'[{"op":"remove","path":"/metadata"}]',
        b'{"metadata":null}',
        b'{"spec":null,"status":1}',
        b'{"$patch":"delete"}',
    ),
]
TYPES = [
    *(
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "text/plain",
    ),
    *("application/apply-patch+yaml", "application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf"),
    *("", "application/json; charset=bogus", "x" * 200),
]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
KNOWN = (
    f"{NS}/configmaps/fuzz",
    f"{NS}/pods/fuzz",
    f"{NS}/configmaps",
    f"/apis/{TRAINER}/namespaces/default/trainjobs/fuzz",
)


def test_malformed_requests_get_a_client_error(server: ApiServerProcess, talker: Talker) -> None:
    chance = random.Random(SEED + 1)
    for number in range(REQUESTS):
        if chance.random() < 0.5:
            path = "/" + "/".join(chance.choice(FRAGMENTS) for _ in range(chance.randint(1, 8)))
        else:
            path = chance.choice(KNOWN)
        path = path.encode("utf-8").decode("latin-1").replace("\xc3\xbc", "%C3%BC")
        query = "&".join(chance.choice(QUERIES) for _ in range(chance.randint(0, 2)))
        if "follow" in query or "watch" in query or path.count("watch"):
            query += "&timeoutSeconds=1"
        method = chance.choice(METHODS)
        body = chance.choice(BODIES) if method not in ("GET", "HEAD") else b""
        status, answer = talker.send(method, f"{path}?{query}" if query else path, body, chance.choice(TYPES))
        assert status < 500 or status == 504, f"#{number} {method} {path}?{query} {body[:60]!r}: {answer[:1000]!r}"


RAW = [
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    b"GET /api HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example.org\r\n\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /api HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("data", RAW, ids=range(len(RAW)))
def test_what_is_not_http_or_not_for_us_is_refused(server: ApiServerProcess, data: bytes) -> None:
    host, port = server.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cafile=server.ca)
    with socket.create_connection((host, int(port)), timeout=SECONDS) as plain:
        with context.wrap_socket(plain, server_hostname=host) as secure:
            secure.sendall(data)
            first = secure.recv(64)
    assert first == b"" or first.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), first
    status, _ = server.request("GET", "/version")
    assert status == 200


def test_a_body_beyond_the_limit_is_refused_without_being_read(server: ApiServerProcess) -> None:
    status, answer = server.request("POST", f"{NS}/configmaps", b'{"data":{"a":"' + b"x" * (4 * 2**20) + b'"}}')
    assert status == 413
    assert answer["reason"] == "RequestEntityTooLarge"


def test_the_state_directory_belongs_to_its_owner_alone(server: ApiServerProcess) -> None:
    assert server.directory.stat().st_mode & 0o777 == 0o700
    for file in Path(server.directory).iterdir():
        if file.suffix != ".hosts":
            assert file.stat().st_mode & 0o077 == 0, file
