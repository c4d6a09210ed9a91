"""The Node object: the machine's resources, the node's address, and its heartbeat.

In: the machine. Out: a Node, created or taken over at start, and a Lease that is renewed.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Collection, Mapping

from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.resources import LEASES, NAMESPACES, NODES
from trainwright.api.times import rfc3339, rfc3339_micro
from trainwright.client import AlreadyExists, Client, ClientError, NotFound
from trainwright.controlloop import Clock
from trainwright.embedded.node.resources import allotment
from trainwright.embedded.node.resources.devices import Devices
from trainwright.embedded.node.shapes import NodeShape
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json
from trainwright.version import __version__

log = logging.getLogger(__name__)


LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 120
RENEW_SECONDS = 30.0
TIER_ANNOTATION = "trainwright.dev/tier"
MAX_PODS = 500
"""More than a kubelet's 110: a pod here costs a few megabytes and no addresses of a network."""


def capacity(devices: Devices) -> dict[str, str]:
    """The resources of this machine."""
    pages = os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in os.sysconf_names else 0
    memory = pages * os.sysconf("SC_PAGE_SIZE")
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    disk = os.statvfs("/")
    return {
        "cpu": str(cpus),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "pods": str(MAX_PODS),
        **allotment.counts(devices),
    }


def _architecture() -> str:
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def node_object(shape: NodeShape, *, tier: Tier) -> Json:
    system = platform.system().lower()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": shape.name,
            "labels": {
                **shape.labels,
                "kubernetes.io/hostname": shape.name,
                "kubernetes.io/os": system,
                "kubernetes.io/arch": _architecture(),
            },
            "annotations": {TIER_ANNOTATION: tier.name},
        },
        "spec": {"taints": shape.taints} if shape.taints else {},
    }


def node_status(*, tier: Tier, host_address: str, name: str, port: int, now: str, amounts: Mapping[str, str]) -> Json:
    def condition(type: str, status: str, reason: str, message: str) -> Json:
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        return {"type": type, "status": status, "reason": reason, "message": message, **times}

    return {
        "capacity": dict(amounts),
        "allocatable": dict(amounts),
        "conditions": [
            condition("Ready", "True", "KubeletReady", "the node runs pods as processes of this machine"),
            condition("NamespaceIsolation", "False" if tier.name == "T0" else "True", f"Tier{tier.name}", tier.reason),
        ],
        "addresses": [
            {"type": "InternalIP", "address": host_address},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kernelVersion": platform.release(),
            "osImage": platform.platform(),
            "containerRuntimeVersion": f"trainwright://{__version__}",
            "kubeletVersion": f"trainwright-{__version__}",
            "kubeProxyVersion": "",
            "operatingSystem": platform.system().lower(),
            "architecture": _architecture(),
        },
    }


async def register(
    client: Client,
    shape: NodeShape,
    *,
    tier: Tier,
    host_address: str,
    port: int,
    clock: Clock,
    amounts: Mapping[str, str],
) -> None:
    """Creates the Node, or takes over the one of an earlier process, and writes its address and status."""
    body, name = node_object(shape, tier=tier), shape.name
    try:
        await client.create(NODES, body)
    except AlreadyExists:
        change: Json = {"metadata": body["metadata"]}
        if shape.taints:
            change["spec"] = {"taints": shape.taints}
        await client.patch(NODES, change, name=name)
    now = rfc3339(clock.wall())
    status = node_status(tier=tier, host_address=host_address, name=name, port=port, now=now, amounts=amounts)
    await client.patch(NODES, {"status": status}, name=name, subresource="status")


async def forget_others(client: Client, names: Collection[str]) -> None:
    """Deletes Nodes that this machine was shown as by an earlier process, and is not any more."""
    listed = await client.list(NODES, decode=PartialObjectMetadata, metadata_only=True)
    for node in listed.items or ():
        if node.metadata.annotation(TIER_ANNOTATION) is not None and node.metadata.name not in names:
            try:
                await client.delete(NODES, node.metadata.name)
            except NotFound:
                pass


async def keep_alive(client: Client, name: str, clock: Clock) -> None:
    """Renews the node's Lease until cancelled."""
    while True:
        try:
            await _renew(client, name, rfc3339_micro(clock.wall()))
        except ClientError as error:  # tried again at the next renewal; the watches report a server that is away
            log.debug("the node's lease was not renewed: %s", error)
        await clock.sleep(RENEW_SECONDS)


async def _renew(client: Client, name: str, now: str) -> None:
    spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
    try:
        await client.patch(LEASES, {"spec": spec}, name=name, namespace=LEASE_NAMESPACE)
        return
    except NotFound:
        pass
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": spec,
    }
    try:
        await client.create(LEASES, lease, LEASE_NAMESPACE)
    except NotFound:  # the namespace is missing: the next renewal finds it
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}}
        await client.create(NAMESPACES, namespace)
