"""The objects that come with the package, as the local cluster installs them: what kustomize does in a real one."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import yaml

from trainwright.api.wellknown import WEBHOOK_VALIDATION
from trainwright.schema.jsonobject import Json

OPERATOR_SERVICE = "kubeflow-trainer-controller-manager"
UNCHECKED = {WEBHOOK_VALIDATION: "disabled"}
"""Shipped runtimes are ours: they may be installed before the operator can be asked about them."""


def crds() -> Iterator[Json]:
    """Our own types, and those of JobSet and the gang schedulers."""
    return _objects("crds")


def runtimes() -> Iterator[Json]:
    for runtime in _objects("runtimes"):
        metadata = runtime["metadata"]
        yield {**runtime, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **UNCHECKED}}}


def system(ca: bytes) -> Iterator[Json]:
    """The operator's namespace, what clients read there, and its admission webhooks, trusted by this CA."""
    yield from _objects("overlays/manager/namespace.yaml")
    yield from _objects("overlays/manager/public.yaml")
    bundle = base64.b64encode(ca).decode()
    for configuration in _objects("base/webhook/webhooks.yaml"):
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = bundle
        yield configuration


def _objects(where: str) -> Iterator[Json]:
    """The objects of a file, or of a folder's files in their order."""
    path = Path(str(files("trainwright") / "manifests" / where))
    for file in sorted(path.rglob("*.yaml")) if path.is_dir() else [path]:
        for document in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if document:
                yield document
