"""Our account of v1's pods, held against a real Training Operator v1.9.3 on a real API server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube.binaries import build
from kube.conftest import BuiltPrograms
from trainwright.conversion.v1job import KINDS, read
from trainwright.conversion.v1pods import V1Pod, pods_of
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.processes import Process, free_port
from v1jobs import random_job

COUNT = int(os.environ.get("TRAINWRIGHT_V1_JOBS", "100"))
NAMESPACE, SECRET = "kubeflow", "training-operator-webhook-cert"
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108  # written into the operator
WEBHOOKS = "validator.training-operator.kubeflow.org"
AMOUNTS = ("limits", "requests")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    """An API server with v1's operator. Nothing schedules or runs its pods, and pods may name any service account."""
    directory = tmp_path_factory.mktemp("v1")
    with RealControlPlane(
        BuiltPrograms(), directory, with_parts=(), without_admission=("ServiceAccount",), with_audit_log=False
    ) as running:
        manifests = build.manifests("training-operator-manifests") / "manifests/base/crds"
        running.install_crds(
            crd for path in sorted(manifests.glob("kubeflow.org_*.yaml")) for crd in documents(path.read_text())
        )
        process = operator(running, directory)
        process.start()
        yield running
        process.stop(grace=0)


def operator(plane: RealControlPlane, directory: Path) -> Process:
    """The operator. It makes its certificate itself and waits for it as a file, which a kubelet would mount."""
    admin = plane.admin
    for name in (NAMESPACE, "team-a"):
        admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    hooks = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    admin.create(path, {**hooks, "metadata": {"name": WEBHOOKS}, "webhooks": []})
    pair = plane.authority.for_server("training-operator", stem="tls", directory=directory / "certificates")
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    for name, source in (
        ("tls.crt", pair.certificate),
        ("tls.key", pair.key),
        ("ca.crt", plane.authority.certificate),
    ):
        shutil.copyfile(source, CERTIFICATES / name)
    admin.create(
        f"/api/v1/namespaces/{NAMESPACE}/secrets",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "type": "Opaque"},
    )
    kubeconfig = plane.user_kubeconfig("system:training-operator", "system:masters")
    arguments: list[str | Path] = [
        build.program("training-operator"),
        f"--kubeconfig={kubeconfig}",
        f"--webhook-server-port={free_port()}",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{free_port()}",
        "--controller-threads=4",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]
    return Process("training-operator", arguments, directory / "training-operator.log")


def seeds() -> Iterator[int]:
    """Jobs of which v1 makes pods: not suspended, and not managed by somebody else."""
    found, seed = 0, 1000
    while found < COUNT:
        policy = random_job(seed)["spec"].get("runPolicy") or {}
        if not policy.get("suspend") and policy.get("managedBy") != "kueue.x-k8s.io/multikueue":
            found += 1
            yield seed
        seed += 1


def test_real_pods_are_those_we_reckon_with(plane: RealControlPlane) -> None:
    jobs = [random_job(seed) for seed in seeds()]
    for job in jobs:
        plural, namespace = KINDS[job["kind"]].plural, job["metadata"]["namespace"]
        plane.admin.create(f"/apis/kubeflow.org/v1/namespaces/{namespace}/{plural}", job)
    expected = {(job["metadata"]["namespace"], pod.name): pod for job in jobs for pod in pods_of(read(job))}
    made = wait_for_pods(plane, set(expected))
    assert set(made) == set(expected)
    wrong = {
        name[1]: difference for name, pod in expected.items() if (difference := uncovered(made[name], stored(pod)))
    }
    assert not wrong
    print(f"{len(jobs)} jobs, {len(made)} pods of a real operator, all as reckoned")


def wait_for_pods(plane: RealControlPlane, names: set[tuple[str, str]]) -> dict[tuple[str, str], Json]:
    end = time.monotonic() + 120
    while True:
        items = plane.admin.get("/api/v1/pods")["items"]
        made = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}
        if names <= set(made) or time.monotonic() > end:
            return made
        time.sleep(0.5)


def stored(pod: V1Pod) -> Json:
    return {"metadata": {"labels": pod.labels, "annotations": pod.annotations}, "spec": pod.spec}


def uncovered(real: Any, ours: Any, path: str = "") -> str:
    """Where the real object is not what we said; the API server's defaults may come on top."""
    if isinstance(ours, dict):
        amounts = path.rsplit(".", 1)[-1] in AMOUNTS
        for key, value in ours.items():
            if value in (None, {}, [], ""):
                continue
            if amounts:
                if parse_quantity(str((real or {}).get(key, "0"))) != parse_quantity(str(value)):
                    return f"{path}.{key}"
            elif found := uncovered((real or {}).get(key), value, f"{path}.{key}"):
                return found
        return ""
    if isinstance(ours, list):
        if path.endswith(".tolerations"):  # admission adds two
            real = (real or [])[: len(ours)]
        if len(ours) != len(real or []):
            return f"{path}: {len(real or [])} instead of {len(ours)}"
        pairs = enumerate(zip(real, ours, strict=True))
        return next((found for number, (one, two) in pairs if (found := uncovered(one, two, f"{path}[{number}]"))), "")
    return "" if real == ours else f"{path}: {real!r} instead of {ours!r}"
