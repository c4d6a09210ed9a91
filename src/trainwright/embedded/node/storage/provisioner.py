"""Binds PersistentVolumeClaims to directories of this machine, and gives them back when the claim is gone.

In: claims by watch, PersistentVolumes by request, the pods of this node. Out: a PersistentVolume for each claim that no
existing one was made for, with a directory under `volumes` of the node's directory; claims that are Bound. A cluster
has a storage provider and kube-controller-manager for this.

A claim of any storage class gets a directory: like an image, the class is a detail of the cluster that the job was
written for. A claim with the class "" is bound to a PersistentVolume that somebody made, and waits for one. What
becomes of the directory is the volume's reclaim policy: Delete (the default class's) or Retain. Nothing limits its
size. Invariant: a claim that a pod of this node uses stays until the pod has ended (`kubernetes.io/pvc-protection`).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from trainwright.api.events import EventType
from trainwright.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from trainwright.client import AlreadyExists, Client, Conflict, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.node.storage.claims import Claim, is_for, new_volume, reference_to
from trainwright.schema.jsonobject import Json

CLASS = "local"
PROVISIONER = "trainwright.dev/local"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
PROTECTION = "kubernetes.io/pvc-protection"
RETRY_SECONDS = 2.0


class Provisioner:
    """`in_use(namespace, name)` says whether a pod of this node uses the claim."""

    def __init__(self, client: Client, directory: Path, in_use: Callable[[str, str], bool], clock: Clock) -> None:
        self._client = client
        self._directory = directory
        self._in_use = in_use
        self._clock = clock
        self._events = EventRecorder(client, "trainwright-node", clock)
        self._claims = Source(PERSISTENT_VOLUME_CLAIMS, Claim)

    def controller(self) -> Controller:
        return Controller("volumes", self.reconcile, [Watches(self._claims)], workers=1, clock=self._clock)

    async def begin(self) -> None:
        """Makes the default storage class, and gives back what lost its claim while no control plane ran."""
        body = {
            "apiVersion": STORAGE_CLASSES.api_version,
            "kind": STORAGE_CLASSES.kind,
            "metadata": {"name": CLASS, "annotations": {DEFAULT_CLASS: "true"}},
            "provisioner": PROVISIONER,
        }
        try:
            await self._client.create(STORAGE_CLASSES, body)
        except AlreadyExists:
            await self._claims.wait_synced()
            for volume in await self._volumes():
                await self._reclaim_if_lost(volume)

    async def reconcile(self, key: Key) -> Outcome:
        claim = self._claims.store.get(key)
        if claim is None:
            for volume in await self._volumes():
                if (volume["spec"].get("claimRef") or {}).get("name") == key.name:
                    await self._reclaim_if_lost(volume)
            return Done()
        if claim.metadata.is_being_deleted:
            return await self._let_go(claim)
        if claim.status.get("phase") == "Bound":
            return Done()
        return await self._bind(claim)

    async def _bind(self, claim: Claim) -> Outcome:
        wanted = claim.spec.get("storageClassName")
        volume = next((volume for volume in await self._volumes() if is_for(volume, claim)), None)
        if volume is None and (wanted == "" or claim.spec.get("volumeName")):
            await self._tell(claim, "FailedBinding", "no persistent volumes available for this claim")
            return After(RETRY_SECONDS)
        if volume is None and claim.spec.get("volumeMode") == "Block":
            await self._tell(claim, "ProvisioningFailed", "this machine has no block devices to give: use Filesystem")
            return Done()
        if volume is None:
            volume = await self._provision(claim, CLASS if wanted is None else wanted)
        name = volume["metadata"]["name"]
        version = {"resourceVersion": volume["metadata"]["resourceVersion"]}
        body = {"metadata": version, "spec": {"claimRef": reference_to(claim)}}
        try:
            await self._client.patch(PERSISTENT_VOLUMES, body, name=name)
        except Conflict:
            return After(0.1)
        await self._client.patch(PERSISTENT_VOLUMES, {"status": {"phase": "Bound"}}, name=name, subresource="status")
        spec: Json = {"volumeName": name} | ({"storageClassName": CLASS} if wanted is None else {})
        status = {key: volume["spec"][key] for key in ("accessModes", "capacity")} | {"phase": "Bound"}
        try:
            await self._patch(claim, {"spec": spec})
            await self._patch(claim, {"status": status}, subresource="status")
        except NotFound:
            pass  # deleted meanwhile; the watch will report it
        return Done()

    async def _patch(self, claim: Claim, body: Json, subresource: str | None = None) -> None:
        await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS,
            body,
            name=claim.metadata.name,
            namespace=claim.metadata.namespace,
            subresource=subresource,
        )

    async def _provision(self, claim: Claim, storage_class: str) -> Json:
        policy = "Delete"
        if storage_class != CLASS:
            try:
                found = await self._client.get(STORAGE_CLASSES, storage_class)
                policy = found.get("reclaimPolicy") or policy
            except NotFound:
                message = f"storage class {storage_class} does not exist here: a directory of this machine stands in"
                await self._tell(claim, "Provisioning", message, "Normal")
        body = new_volume(claim, self._directory, storage_class, policy)
        name = body["metadata"]["name"]
        try:
            made: Json = await self._client.create(PERSISTENT_VOLUMES, body)
        except AlreadyExists:
            made = await self._client.get(PERSISTENT_VOLUMES, name)
        else:
            await self._tell(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}", "Normal")
        return made

    async def _let_go(self, claim: Claim) -> Outcome:
        """Lets a deleted claim go when no pod uses it any more."""
        finalizers = claim.metadata.finalizers or ()
        if PROTECTION not in finalizers:
            return Done()
        if self._in_use(claim.metadata.namespace, claim.metadata.name):
            return After(RETRY_SECONDS)
        left = [finalizer for finalizer in finalizers if finalizer != PROTECTION]
        try:
            await self._patch(claim, {"metadata": {"finalizers": left, "uid": claim.metadata.uid}})
        except (NotFound, Conflict):
            pass  # gone, or replaced by another claim of the same name
        return Done()

    async def _reclaim_if_lost(self, volume: Json) -> None:
        """Deletes or releases a volume whose claim is gone, as its policy says."""
        reference = volume["spec"].get("claimRef") or {}
        claim = self._claims.store.get(Key(reference.get("namespace", ""), reference.get("name", "")))
        if not reference.get("uid") or (claim is not None and claim.metadata.uid == reference["uid"]):
            return
        name = volume["metadata"]["name"]
        if volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete":
            if (volume.get("status") or {}).get("phase") != "Released":
                body = {"status": {"phase": "Released"}}
                await self._client.patch(PERSISTENT_VOLUMES, body, name=name, subresource="status")
            return
        path = Path((volume["spec"].get("hostPath") or {}).get("path", ""))
        if path.parent == self._directory:  # a directory of our own making, and no other
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        try:
            await self._client.delete(PERSISTENT_VOLUMES, name)
        except NotFound:
            pass

    async def _volumes(self) -> list[Json]:
        return (await self._client.list(PERSISTENT_VOLUMES)).items or []

    async def _tell(self, claim: Claim, reason: str, message: str, type: EventType = "Warning") -> None:
        await self._events.record(PERSISTENT_VOLUME_CLAIMS, claim.metadata, type, reason, message)
