"""The directories that a pod's claims are bound to.

In: a pod whose volumes name PersistentVolumeClaims, or are ephemeral. Out: a directory of this machine for each, when
all claims are bound; `Unbound` until then, which says what is missing.
"""

from __future__ import annotations

from pathlib import Path

from trainwright.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from trainwright.client import AlreadyExists, Client, NotFound
from trainwright.embedded.node.podspec.environment import Unresolved
from trainwright.embedded.node.storage.claims import claims_of, ephemeral_claim
from trainwright.schema.jsonobject import Json


class Unbound(Unresolved):
    """A claim does not exist, or is not bound yet; the message names it."""


class ClaimedDirectories:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, pod: Json) -> dict[str, Path]:
        """The directory of each volume that is a claim, by the volume's name."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        found = {}
        for name, claim in claims_of(pod["spec"], pod["metadata"]["name"]):
            found[name] = await self._directory(pod, volumes[name], claim)
        return found

    async def _directory(self, pod: Json, volume: Json, name: str) -> Path:
        namespace = pod["metadata"]["namespace"]
        try:
            claim = await self._client.get(PERSISTENT_VOLUME_CLAIMS, name, namespace)
        except NotFound:
            if not volume.get("ephemeral"):
                raise Unbound(f'persistentvolumeclaim "{name}" not found') from None
            try:
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, ephemeral_claim(pod, volume), namespace)
            except AlreadyExists:
                pass
            raise Unbound(f'waiting for the claim "{name}" of the ephemeral volume {volume["name"]}') from None
        owners = {owner.get("uid") for owner in claim["metadata"].get("ownerReferences") or ()}
        if volume.get("ephemeral") and pod["metadata"]["uid"] not in owners:
            raise Unbound(f'PVC "{name}" was not created for this pod: delete it, or rename the volume')
        if claim["metadata"].get("deletionTimestamp"):
            raise Unbound(f'persistentvolumeclaim "{name}" is being deleted')
        if (claim.get("status") or {}).get("phase") != "Bound":
            raise Unbound(f'pod has unbound immediate PersistentVolumeClaims: "{name}"')
        made = await self._client.get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"])
        spec = made["spec"]
        path = (spec.get("hostPath") or spec.get("local") or {}).get("path")
        if path is None:
            kind = next((key for key in spec if key in ("nfs", "csi", "iscsi", "fc")), "its kind")
            raise Unbound(f"PersistentVolume {made['metadata']['name']}: {kind} cannot be mounted on this machine")
        return Path(path)
