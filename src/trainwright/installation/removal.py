"""Takes an installation away: its objects, and the finalizers that only it would take off.

CRDs, runtimes and so all TrainJobs stay, unless it is asked to delete the CRDs. Order matters: webhooks go first,
since without their server every write of a TrainJob would be refused; finalizers go when the operator's pods have
ended, since it would put them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from trainwright.api.mergepatches import finalizers_patch
from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    Resource,
)
from trainwright.api.trainjob import TrainJob
from trainwright.client import Client, Conflict, NotFound
from trainwright.installation.kinds import resource_of
from trainwright.installation.plan import find
from trainwright.schema.jsonobject import Json

FINALIZER = "trainer.kubeflow.org/resource-in-use"
SELECTOR = "app.kubernetes.io/name=trainer,app.kubernetes.io/component=manager,app.kubernetes.io/part-of=kubeflow"
LEASE = "trainer.kubeflow.org"
CERTIFICATE = "kubeflow-trainer-webhook-cert"
PODS_SECONDS = 60.0
FIRST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Deployment")


@dataclass(frozen=True)
class Users:
    """What people have in the cluster, which stays or goes with the CRDs."""

    train_jobs: int = 0
    unfinished: int = 0
    runtimes: int = 0


async def users_objects(client: Client) -> Users:
    try:
        jobs = (await client.list(TRAIN_JOBS, decode=TrainJob)).items or []
        runtimes = 0
        for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
            runtimes += len((await client.list(resource, decode=PartialObjectMetadata)).items or ())
    except NotFound:  # there are no CRDs
        return Users()
    return Users(len(jobs), sum(not job.is_finished for job in jobs), runtimes)


async def present(client: Client, objects: Sequence[Json], *, delete_crds: bool) -> list[Json]:
    """Those of these objects that are in the cluster and are to go, in the order in which they go."""
    stays = () if delete_crds else (CUSTOM_RESOURCE_DEFINITIONS.kind,)
    stays = (*stays, NAMESPACES.kind, CLUSTER_TRAINING_RUNTIMES.kind)
    wanted = [item for item in objects if item["kind"] not in stays]
    wanted.sort(key=lambda it: (it["kind"] not in FIRST, it["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind))
    found = [await find(client, resource_of(item), item) for item in wanted]
    return [item for item, live in zip(wanted, found, strict=True) if live is not None]


async def remove(client: Client, objects: Sequence[Json], namespace: str) -> int:
    """Deletes these objects and what the operator made for itself; how many runtimes had its finalizer."""
    first = [item for item in objects if item["kind"] in FIRST]
    for item in first:
        await _delete(client, item)
    await _until_no_pods(client, namespace)
    released = await release_runtimes(client)
    for item in objects:
        if item not in first:
            await _delete(client, item)
    for resource, name in ((LEASES, LEASE), (SECRETS, CERTIFICATE)):
        try:
            await client.delete(resource, name, namespace)
        except NotFound:
            continue
    return released


async def release_runtimes(client: Client) -> int:
    """Takes the operator's finalizer off every runtime; how many had it."""
    released = 0
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
        try:
            found = (await client.list(resource, decode=PartialObjectMetadata)).items or []
        except NotFound:  # the CRD is gone, and all of them with it
            continue
        for item in found:
            released += await _release(client, resource, item)
    return released


async def _release(client: Client, resource: Resource, item: PartialObjectMetadata) -> bool:
    """Again when somebody changed the runtime at the same moment."""
    name, namespace = item.metadata.name, item.metadata.namespace or None
    while FINALIZER in (item.metadata.finalizers or ()):
        kept = [each for each in item.metadata.finalizers or () if each != FINALIZER]
        try:
            await client.patch(
                resource, finalizers_patch(item.metadata, kept), name=name, namespace=namespace, decode=bytes
            )
            return True
        except Conflict:
            item = await client.get(resource, name, namespace, decode=PartialObjectMetadata)
        except NotFound:
            return True
    return False


async def _delete(client: Client, item: Json) -> None:
    metadata = item["metadata"]
    try:
        await client.delete(resource_of(item), metadata["name"], metadata.get("namespace"))
    except NotFound:
        pass


async def _until_no_pods(client: Client, namespace: str) -> None:
    try:
        async with asyncio.timeout(PODS_SECONDS):
            while (await client.list(PODS, namespace, label_selector=SELECTOR, at_most=1)).items:  # noqa: ASYNC110 - pods of a cluster
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise TimeoutError(
            f"pods of the operator still run in {namespace} after {PODS_SECONDS:.0f} s; when they have ended, run"
            " the same command again"
        ) from None
