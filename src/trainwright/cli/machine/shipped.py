"""The objects that ship with the package, as the local cluster installs them. In a real cluster kustomize does this."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import partial

from trainwright.api.wellknown import WEBHOOK_VALIDATION
from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.manifests import crds, digest, objects
from trainwright.embedded.workloads import webhooks
from trainwright.schema.jsonobject import Json

OPERATOR_SERVICE = "kubeflow-trainer-controller-manager"
SYSTEM = ("overlays/manager/namespace.yaml", "overlays/manager/public.yaml", "base/webhook/webhooks.yaml")
UNCHECKED = {WEBHOOK_VALIDATION: "disabled"}
"""Shipped runtimes are installed before the operator's webhook runs, so they are not validated by it."""


async def install(server: ApiServer) -> None:
    """Installs what the package ships, where it is not installed yet."""
    authority = server.ca_file.read_bytes()
    trusted = hashlib.sha256(authority + repr(list(job_set_webhooks(""))).encode()).hexdigest()
    await install_crds(server)
    await server.ensure("system", f"{digest(*SYSTEM)} {trusted}", partial(system, authority))
    await server.ensure("runtimes", digest("runtimes"), runtimes)


async def install_crds(server: ApiServer) -> None:
    await server.ensure("crds", digest("crds"), crds)


def runtimes() -> Iterator[Json]:
    for runtime in objects("runtimes"):
        metadata = runtime["metadata"]
        yield {**runtime, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **UNCHECKED}}}


def system(ca: bytes) -> Iterator[Json]:
    """The operator's namespace, what clients read there, and its admission webhooks, trusted by this CA."""
    *plain, own = SYSTEM
    for place in plain:
        yield from objects(place)
    bundle = base64.b64encode(ca).decode()
    for configuration in objects(own):
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = bundle
        yield configuration
    yield from job_set_webhooks(bundle)


def job_set_webhooks(bundle: str) -> Iterator[Json]:
    """JobSet's admission webhooks, which the workload controllers serve here."""
    namespace, name = webhooks.SERVICE

    def where(path: str) -> Json:
        return {"service": {"namespace": namespace, "name": name, "path": path}, "caBundle": bundle}

    yield from webhooks.configurations(where)
