"""Our own CRDs, and those of JobSet and the PodGroups that we ship, on a real API server."""

from __future__ import annotations

from pathlib import Path

import trainwright
from trainwright.testing.controlplane import RealControlPlane, documents

MANIFESTS = Path(trainwright.__file__).parent / "manifests"


def install_crds(plane: RealControlPlane, *, ours_only: bool = False) -> None:
    """Create every CRD under `manifests/crds` that does not exist yet, and wait until it is served."""
    found = [crd for file in sorted((MANIFESTS / "crds").glob("**/*.yaml")) for crd in documents(file.read_text())]
    crds = [crd for crd in found if crd["kind"] == "CustomResourceDefinition"]
    plane.install_crds(crd for crd in crds if not ours_only or crd["spec"]["group"] == "trainer.kubeflow.org")
