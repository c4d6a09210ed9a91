"""The parts of a pod's spec that the local node does not support.

In: a pod and the node's tier. Out: sentences. A pod with `refusals` would not do what its spec says: it fails, and they
are its message. `notes` are about limits and hardening: the pod runs, and an event lists them. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainwright.embedded.node.podspec import users
from trainwright.embedded.node.podspec.declarations import declared
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json

VOLUME_KINDS = frozenset(
    {"emptyDir", "configMap", "secret", "downwardAPI", "projected", "hostPath", "persistentVolumeClaim", "ephemeral"}
)
PROJECTED_KINDS = frozenset({"configMap", "secret", "downwardAPI", "serviceAccountToken"})

SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"

_CONTAINER_FIELDS = {
    "volumeDevices": "block devices are",
    "stdin": "standard input is",
    "tty": "terminals are",
}


def refusals(pod: Json, tier: Tier) -> list[str]:
    return list(dict.fromkeys(_refusals(pod, tier)))


def _refusals(pod: Json, tier: Tier) -> Iterator[str]:
    spec = pod["spec"]
    containers = (spec.get("initContainers") or []) + spec["containers"]
    for container in containers:
        name = container["name"]
        if not container.get("command") and not container.get("args"):
            yield f"container {name}: there is no image to take a default command from: set command"
        elif not container.get("command"):
            yield f"container {name}: there is no image to take an entry point for args from: set command"
        for field, what in _CONTAINER_FIELDS.items():
            if container.get(field):
                yield f"container {name}: {what} not supported by the local node yet"
        yield from _handlers(container)
        yield from _mounts(pod, container, tier)
        yield from users.refusals(spec, container, tier)
    for volume in spec.get("volumes") or ():
        yield from _volume(volume)
    if spec.get("ephemeralContainers"):
        yield "ephemeral containers are not supported by the local node yet"


def _handlers(container: Json) -> Iterator[str]:
    """Refuses what probes and hooks cannot do here."""
    hooks = {**(container.get("lifecycle") or {})}
    if hooks.pop("stopSignal", None):
        yield f"container {container['name']}: lifecycle.stopSignal is not supported by the local node yet"
    probes = {name: container.get(name) for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    for name, handler in {**probes, **hooks}.items():
        if (handler or {}).get("grpc"):
            yield f"container {container['name']}: {name}.grpc is not supported by the local node yet"
    for rule in container.get("restartPolicyRules") or ():
        if rule.get("action") != "Restart":
            yield f"container {container['name']}: the restart rule {rule.get('action')} is not supported yet"


def _mounts(pod: Json, container: Json, tier: Tier) -> Iterator[str]:
    mounts = wanted_mounts(pod, container, tier)
    if mounts and not tier.isolation["mount"]:
        yield f"container {container['name']}: volumes cannot be mounted here, because {tier.reason}"
    for mount in mounts:
        if mount.get("mountPropagation") not in (None, "None"):
            yield f"container {container['name']}: mount propagation is not supported by the local node yet"


def wanted_mounts(pod: Json, container: Json, tier: Tier) -> list[Json]:
    """The mounts to make. Without mount namespaces, optional volumes and the token that every pod gets are left out."""
    mounts: list[Json] = container.get("volumeMounts") or []
    if tier.isolation["mount"]:
        return mounts
    optional = declared(pod).optional_volumes
    return [mount for mount in mounts if mount["mountPath"] != SERVICE_ACCOUNT_PATH and mount["name"] not in optional]


def replaced_mounts(pod: Json, container: Json, tier: Tier) -> list[Json]:
    """The mounts of optional volumes that cannot be made here. The container's variables lead to their files."""
    if tier.isolation["mount"]:
        return []
    optional = declared(pod).optional_volumes
    return [mount for mount in container.get("volumeMounts") or () if mount["name"] in optional]


def _volume(volume: Json) -> Iterator[str]:
    kind = next((key for key in volume if key != "name"), "emptyDir")
    if kind not in VOLUME_KINDS:
        yield f"volume {volume['name']}: {kind} volumes are not supported by the local node yet"
    for source in (volume.get("projected") or {}).get("sources") or ():
        for projected in source:
            if projected not in PROJECTED_KINDS:
                yield f"volume {volume['name']}: {projected} is not supported in projected volumes yet"


def notes(pod: Json, tier: Tier, enforced: Collection[str] = ()) -> list[str]:
    """The fields that have no effect here, or another one: images, limits, volumes, hardening. `enforced` are the
    resources whose limits the kernel keeps.
    """
    containers = (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]
    result = ["images are not pulled: commands run from this machine"]
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    if any("cpu" in limit for limit in limits):
        kept = "by the kernel" if "cpu" in enforced else "by giving the pod that many whole CPUs"
        result.append(f"the CPU limit is kept {kept}")
    if any("memory" in limit for limit in limits):
        kept = "kept by the kernel" if "memory" in enforced else "watched every second, and not enforced by the kernel"
        result.append(f"the memory limit is {kept}")
    groups = {"fsGroup", "supplementalGroups"} & set(pod["spec"].get("securityContext") or ())
    if groups:
        result.append(f"securityContext has no effect in: {', '.join(sorted(groups))}")
    replaced = {mount["name"] for container in containers for mount in replaced_mounts(pod, container, tier)}
    for volume in sorted(replaced):
        result.append(f"volume {volume} is not mounted: variables that name a path in it lead to its files")
    hardening = {"capabilities", "privileged", "readOnlyRootFilesystem", "seccompProfile", "allowPrivilegeEscalation"}
    asked = {field for container in containers for field in container.get("securityContext") or ()} & hardening
    if any(container.get("terminationMessagePolicy") == "FallbackToLogsOnError" for container in containers):
        result.append("terminationMessagePolicy has no effect")
    if asked:
        result.append(f"securityContext has no effect in: {', '.join(sorted(asked))}")
    return result
