"""PersistentVolumeClaims and the volumes for them, as rules without a server.

In: claims, PersistentVolumes, pods. Out: whether a volume is for a claim, the volume to make for one, the claims of a
pod. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim in the store."""

    metadata: ObjectMeta
    spec: Json = {}
    status: Json = {}


def claims_of(spec: Json, pod: str) -> Iterator[tuple[str, str]]:
    """The volumes of a pod that are claims: their names, and those of the claims."""
    for volume in spec.get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield volume["name"], source["claimName"]
        elif volume.get("ephemeral"):
            yield volume["name"], f"{pod}-{volume['name']}"


def size_of(spec: Json) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0")


def reference_to(claim: Claim) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    }


def is_for(volume: Json, claim: Claim) -> bool:
    """Whether the claim is, or may be, bound to the volume: it is reserved for it, or free and large enough."""
    spec, metadata = volume["spec"], claim.metadata
    if reference := spec.get("claimRef"):
        same = (reference.get("namespace"), reference.get("name")) == (metadata.namespace, metadata.name)
        return same and reference.get("uid") in (None, "", metadata.uid)
    if named := claim.spec.get("volumeName"):
        return bool(volume["metadata"]["name"] == named)
    capacity = parse_quantity((spec.get("capacity") or {}).get("storage") or "0")
    return (
        (volume.get("status") or {}).get("phase") in ("Available", "Pending")
        and (spec.get("storageClassName") or "") == (claim.spec.get("storageClassName") or "")
        and set(claim.spec.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (spec.get("volumeMode") or "Filesystem") == (claim.spec.get("volumeMode") or "Filesystem")
        and not capacity < parse_quantity(size_of(claim.spec))
        and not claim.spec.get("selector")
    )


def new_volume(claim: Claim, directory: Path, storage_class: str, policy: str) -> Json:
    """The volume to make for a claim, named after it and reserved for it."""
    name = f"pvc-{claim.metadata.uid}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "trainwright.dev/local"}},
        "spec": {
            "capacity": {"storage": size_of(claim.spec)},
            "accessModes": claim.spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": storage_class,
            "hostPath": {"path": str(directory / name), "type": "DirectoryOrCreate"},
            "claimRef": reference_to(claim),
        },
    }


def ephemeral_claim(pod: Json, volume: Json) -> Json:
    """The claim of a pod's ephemeral volume, which goes with the pod."""
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {**(template.get("metadata") or {}), "name": f"{pod['metadata']['name']}-{volume['name']}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**metadata, "namespace": pod["metadata"]["namespace"], "ownerReferences": [owner]},
        "spec": template.get("spec") or {},
    }
