"""Our own CRDs, and those of JobSet and the PodGroups that we ship, on a real API server."""

from __future__ import annotations

from pathlib import Path

import trainwright
from trainwright.testing.controlplane import RealControlPlane, documents, is_established

MANIFESTS = Path(trainwright.__file__).parent / "manifests"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_crds(plane: RealControlPlane, *, ours_only: bool = False) -> None:
    """Creates every CRD under `manifests/crds` that is not there yet and waits until it is served."""
    names = []
    for file in sorted((MANIFESTS / "crds").glob("**/*.yaml")):
        for crd in documents(file.read_text()):
            if crd.get("kind") != "CustomResourceDefinition":
                continue
            if ours_only and crd["spec"]["group"] != "trainer.kubeflow.org":
                continue
            name = crd["metadata"]["name"]
            if plane.admin.find(f"{PATH}/{name}") is None:
                plane.admin.create(PATH, crd)
            names.append(name)
    for name in names:
        plane.admin.until(f"{PATH}/{name}", is_established, what="Established")
