"""`trainwright doctor` finds what stands in the way of training, and says what mends it."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, LEASES, NAMESPACES
from trainwright.api.times import rfc3339_micro
from trainwright.cli.doctor import cluster
from trainwright.cli.doctor.finding import Finding
from trainwright.cli.main import main
from trainwright.embedded import manifests
from trainwright.testing.virtualserver import VirtualServer


async def findings(server: VirtualServer) -> dict[str, Finding]:
    return {found.what: found async for found in cluster.look(server.client, "default", local=False)}


async def test_a_cluster_without_jobset_and_operator_is_not_ready() -> None:
    async with VirtualServer(without=["jobsets.jobset.x-k8s.io"]) as server:
        found = await findings(server)
    assert found["TrainJobs"].state == "ok"
    assert found["JobSets"].state == "fail"
    assert "install JobSet" in found["JobSets"].mend
    assert found["operator"].state == "fail"
    assert "no Deployment" in found["operator"].text
    assert found["rights"].state == "ok"
    assert found["runtimes"].state == "warn"
    assert all(item.mend for item in found.values() if item.state != "ok"), "each comes with its mend"


@pytest.mark.parametrize(("age", "state"), [(5, "ok"), (600, "fail")], ids=["renewed now", "not renewed any more"])
async def test_the_operator_is_alive_when_its_lease_is_renewed(age: float, state: str) -> None:
    async with VirtualServer() as server:
        await server.admin.create(NAMESPACES, {"metadata": {"name": "kubeflow-system"}})
        spec = {"holderIdentity": "pod-1", "renewTime": rfc3339_micro(time.time() - age), "leaseDurationSeconds": 15}
        lease = {"metadata": {"name": "trainer.kubeflow.org"}, "spec": spec}
        await server.admin.create(LEASES, lease, "kubeflow-system")
        assert (await findings(server))["operator"].state == state


@pytest.mark.parametrize(("days", "state"), [(-1, "fail"), (7, "warn"), (3000, "ok")], ids=["over", "soon", "later"])
async def test_the_end_of_the_webhooks_certificates_is_foreseen(days: int, state: str) -> None:
    async with VirtualServer() as server:
        for configuration in manifests.objects("base/webhook/webhooks.yaml"):
            for hook in configuration["webhooks"]:
                hook["clientConfig"]["caBundle"] = authority(days)
                hook["failurePolicy"] = "Ignore"
            kind = cluster.MUTATING if configuration["kind"].startswith("Mutating") else cluster.VALIDATING
            await server.admin.create(kind, configuration)
        found = await findings(server)
    assert (found["validation"].state, found["defaulting"].state) == (state, state)
    assert ("rollout restart" in found["validation"].mend) is (state != "ok")


async def test_a_webhook_that_is_away_is_found_by_a_rehearsal() -> None:
    async with VirtualServer() as server:
        for runtime in manifests.objects("runtimes"):
            await server.admin.create(CLUSTER_TRAINING_RUNTIMES, runtime)
        assert (await findings(server))["rehearsal"].state == "ok"
        *_, validating = manifests.objects("base/webhook/webhooks.yaml")
        for hook in validating["webhooks"]:
            hook["clientConfig"] = {"url": "https://127.0.0.1:1/validate", "caBundle": authority(3000)}
        await server.admin.create(cluster.VALIDATING, validating)
        rehearsal = (await findings(server))["rehearsal"]
    assert rehearsal.state == "fail"
    assert "failed calling webhook" in rehearsal.text
    assert "is the operator alive" in rehearsal.mend


def authority(days: int) -> str:
    """A certificate authority that ends in so many days, as webhooks have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    from cryptography.hazmat.primitives.serialization import Encoding

    return base64.b64encode(certificate.public_bytes(Encoding.PEM)).decode()


def test_this_machine_is_looked_at_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["doctor", "--json", "--dir", str(tmp_path / "state")]) == 0
    found = {item["what"]: item for item in json.loads(capsys.readouterr().out)}
    assert {"Python", "isolation", "ports", "disk", "memory", "GPUs", "frameworks"} <= found.keys()
    assert all(item["where"] == "this machine" for item in found.values())
    assert not (tmp_path / "state").exists(), "looking changes nothing"


def test_a_machine_that_lacks_something_is_told_so_in_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainwright.cli.doctor import machine

    monkeypatch.setattr(machine, "NO_DISK", 2**60)
    assert main(["doctor", "--local", "--quiet", "--dir", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  fail  disk") for line in lines)
    assert any("→ delete old runs: trainwright runs delete --finished" in line for line in lines)
    assert not any(line.startswith("  ok") for line in lines)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "config"
    cluster_of = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "prod", "context": {"cluster": "c", "user": "u"}}
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster_of],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [context],
                "current-context": "prod",
            }
        )
    )
    assert main(["doctor", "--kubeconfig", str(kubeconfig), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["what"], found["state"]) == ("API server", "fail")
