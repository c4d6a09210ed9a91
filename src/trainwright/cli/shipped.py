"""The objects that ship with the package, as the local cluster installs them. In a real cluster kustomize does this."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from trainwright.api.wellknown import WEBHOOK_VALIDATION
from trainwright.embedded.manifests import objects
from trainwright.schema.jsonobject import Json

OPERATOR_SERVICE = "kubeflow-trainer-controller-manager"
UNCHECKED = {WEBHOOK_VALIDATION: "disabled"}
"""Shipped runtimes are installed before the operator's webhook runs, so they are not validated by it."""


def runtimes() -> Iterator[Json]:
    for runtime in objects("runtimes"):
        metadata = runtime["metadata"]
        yield {**runtime, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **UNCHECKED}}}


def system(ca: bytes) -> Iterator[Json]:
    """The operator's namespace, what clients read there, and its admission webhooks, trusted by this CA."""
    yield from objects("overlays/manager/namespace.yaml")
    yield from objects("overlays/manager/public.yaml")
    bundle = base64.b64encode(ca).decode()
    for configuration in objects("base/webhook/webhooks.yaml"):
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = bundle
        yield configuration
