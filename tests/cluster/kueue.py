"""A real Kueue beside a real control plane: CRDs with their conversion, webhooks by URL, and its controller.

Kueue reads its metrics certificate from a path that is written into it, `/etc/kueue/metrics/certs`: it runs with an
`/etc` of its own.
"""

from __future__ import annotations

import base64
import os
import shlex
from pathlib import Path

import yaml

from kube.binaries import build
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents, point_at
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Rest

USER = "system:kueue"
API = "/apis/kueue.x-k8s.io/v1beta1"
FRAMEWORKS = ("jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
"""Kinds whose versions differ; of the others both versions are the same."""
SERVED = ("kueue-x-k8s-io", "jobset-x-k8s-io", "trainer-kubeflow-org")
"""What Kueue is asked to admit here; its other webhooks would concern every Job and Pod."""


VERSIONS = {"0.15": "kueue", "0.19": "kueue-0.19"}
"""The programs by version. 0.15 writes `podTemplateOverrides` as of Trainer v2.1, 0.19 `runtimePatches`."""


def start(plane: RealControlPlane, directory: Path, version: str = "0.15") -> Process:
    """Installs Kueue and returns when it is ready; the process ends with whoever started it."""
    name = VERSIONS[version]
    manifests = build.manifests(f"{name}-manifests")
    webhook, health = free_port(), free_port()
    server, ca = f"https://127.0.0.1:{webhook}", plane.authority.certificate.read_bytes()
    certificates = directory / "certificates"
    plane.authority.for_server("kueue", stem="tls", directory=certificates)
    process = Process("kueue", _argv(plane, directory, name, webhook, health, certificates), directory / "kueue.log")
    process.env["TMPDIR"] = str(directory)
    crds = [
        crd
        for path in sorted((manifests / "config/components/crd/bases").glob("*.yaml"))
        for crd in documents(path.read_text())
    ]
    client = {"url": f"{server}/convert", "caBundle": base64.b64encode(ca).decode()}
    for crd in crds:
        if crd["spec"]["names"]["plural"] in CONVERTED:
            conversion = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": conversion}
    plane.install_crds(crds)
    process.start()
    probe = Rest(f"http://127.0.0.1:{health}", None)
    process.wait_until(lambda: probe.raw("GET", "/readyz")[0] == 200, 120)
    for hook in documents((manifests / "config/components/webhook/manifests.yaml").read_text()):
        paths = (webhook["clientConfig"]["service"]["path"] for webhook in hook["webhooks"])
        kept = [any(group in path for group in SERVED) for path in paths]
        hook["webhooks"] = [each for each, keep in zip(hook["webhooks"], kept, strict=True) if keep]
        hook["metadata"]["name"] = f"kueue-{hook['metadata']['name']}"
        point_at(hook, server, ca)
        plane.admin.create(f"/apis/admissionregistration.k8s.io/v1/{hook['kind'].lower()}s", hook)
    return process


def _argv(
    plane: RealControlPlane, directory: Path, name: str, webhook: int, health: int, certificates: Path
) -> list[str]:
    configuration = directory / "kueue.yaml"
    configuration.write_text(yaml.safe_dump(_configuration(webhook, health, certificates)))
    kubeconfig = plane.user_kubeconfig(USER, "system:masters")
    program = [build.program(name), f"--config={configuration}", f"--kubeconfig={kubeconfig}"]
    program += ["--feature-gates=VisibilityOnDemand=false"]
    command = " ".join(shlex.quote(str(word)) for word in program)
    own_etc = (
        f"mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics && ln -s {shlex.quote(str(certificates))}"
        f" /etc/kueue/metrics/certs && exec {command}"
    )
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    return ["unshare", *namespaces, "/bin/sh", "-c", own_etc]


def _configuration(webhook: int, health: int, certificates: Path) -> Json:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 200, "burst": 400},
        "integrations": {"frameworks": list(FRAMEWORKS)},
    }


def queue(plane: RealControlPlane, here: str, cpus: int) -> None:
    """A queue `main` of this namespace with so many CPUs, on nodes labelled `pool: training`."""
    flavor = {"metadata": {"name": f"{here}-flavor"}, "spec": {"nodeLabels": {"pool": "training"}}}
    quota = {"name": "cpu", "nominalQuota": cpus}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": f"{here}-flavor", "resources": [quota]}]}
    cluster = {
        "metadata": {"name": here},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here}},
            "resourceGroups": [group],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        },
    }
    for plural, kind, body in (
        ("resourceflavors", "ResourceFlavor", flavor),
        ("clusterqueues", "ClusterQueue", cluster),
        (
            f"namespaces/{here}/localqueues",
            "LocalQueue",
            {"metadata": {"name": "main"}, "spec": {"clusterQueue": here}},
        ),
    ):
        plane.admin.create(f"{API}/{plural}", {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, **body})
