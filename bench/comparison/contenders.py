"""What is compared: how each contender is installed and started.

Each comes as it is shipped: its own CRDs, roles and webhook configurations, its own configuration file, and the flags
of its Deployment. What differs is only what a process outside the cluster needs: addresses on loopback and the
namespace of the lease. Ours issues its own certificates, as shipped. The reference cannot do so here (it waits for a
kubelet to mount them at a fixed path), so it is given some, and what issuing them costs is not counted against it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import trainwright
from comparison.programs import PROGRAMS
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import documents

NAMESPACE = "kubeflow-system"
ACCOUNT = "kubeflow-trainer-controller-manager"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
LEASE = "trainer.kubeflow.org"

SERVICE = "kubeflow-trainer-controller-manager"

NAMESPACED = ("ServiceAccount", "Role", "RoleBinding")

# client-go takes 0 for its own default of 5 requests a second, so a limit is lifted by a figure that none reaches.
NO_LIMITS: Json = {"clientConnection": {"qps": 1_000_000, "burst": 1_000_000}}


@dataclass(frozen=True)
class Ports:
    """Where one operator process listens, all on loopback."""

    webhook: int
    metrics: int
    health: int
    progress: int


@dataclass(frozen=True)
class Contender:
    """`settings` go over the shipped configuration. One that issues no certificates finds some in a directory."""

    name: str
    title: str
    is_reference: bool
    issues_certificates: bool = False
    settings: Json = field(default_factory=dict)

    @property
    def manifests(self) -> Path:
        if self.is_reference:
            return PROGRAMS.manifests("trainer-manifests") / "manifests"
        return Path(trainwright.__file__).resolve().parent / "manifests"

    def crds(self) -> Iterator[Json]:
        """Its own kinds, and no other project's that it may ship for convenience."""
        folder = self.manifests / ("base/crds" if self.is_reference else "crds")
        for file in sorted(folder.glob("trainer.kubeflow.org_*.yaml")):
            yield from documents(file.read_text())

    def objects(self) -> list[Json]:
        """Service account, roles and webhook configurations, as kustomize renders them."""
        found = [item for part in ("rbac", "webhook") for item in _kustomize(self.manifests / "base" / part)]
        for item in found:
            if item["kind"] in NAMESPACED:
                item["metadata"]["namespace"] = NAMESPACE
            for subject in item.get("subjects", []):
                if subject["kind"] == "ServiceAccount":
                    subject["namespace"] = NAMESPACE
        return found

    def configuration(self, ports: Ports, certificates: Path) -> Json:
        shipped = yaml.safe_load((self.manifests / "base/manager/controller_manager_config.yaml").read_text())
        here: Json = {
            "webhook": {"host": "127.0.0.1", "port": ports.webhook},
            "metrics": {"bindAddress": f"127.0.0.1:{ports.metrics}"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
            "statusServer": {"port": ports.progress},
            "leaderElection": {"resourceNamespace": NAMESPACE},
        }
        if not self.issues_certificates:
            where = {} if self.is_reference else {"certDir": str(certificates)}  # the reference looks below TMPDIR
            here["certManagement"] = {"enable": False, **where}
        return merged(merged(shipped, here), self.settings)

    def command(self, configuration: Path, kubeconfig: Path) -> list[str | Path]:
        arguments = [f"--config={configuration}", f"--kubeconfig={kubeconfig}"]
        if self.is_reference:
            return [PROGRAMS.program("trainer"), *arguments, "--zap-log-level=2"]  # as in its Deployment
        # Its Service leads to this process, which is outside the cluster: the operator cannot know that it is its own.
        return [Path(sys.executable).parent / "trainwright", "operator", *arguments, "--take-over"]


REFERENCE = Contender("reference", "Kubeflow Trainer v2.3.0, as shipped", is_reference=True)
LIFTED = Contender("reference-lifted", "Kubeflow Trainer v2.3.0, limits lifted", is_reference=True, settings=NO_LIMITS)
OURS = Contender("ours", "Trainwright, as shipped", is_reference=False, issues_certificates=True)
GIVEN = Contender("ours-given-certificates", "Trainwright, given its certificates", is_reference=False)

DEFAULT = (REFERENCE, LIFTED, OURS)
CONTENDERS: Mapping[str, Contender] = {contender.name: contender for contender in (*DEFAULT, GIVEN)}


def certificate_directories(scratch: Path, certificates: Path) -> dict[Path, Path]:
    """Links that let a program on controller-runtime find `certificates` when `scratch` is its TMPDIR."""
    return {scratch / server / "serving-certs": certificates for server in ("k8s-webhook-server", "k8s-metrics-server")}


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    """`over` on top of `under`, member by member."""
    result = dict(under)
    for name, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both else value
    return result


def _kustomize(folder: Path) -> list[Json]:
    done = subprocess.run(
        [PROGRAMS.program("kubectl"), "kustomize", str(folder)], check=True, capture_output=True, timeout=60
    )
    return list(documents(done.stdout.decode()))
