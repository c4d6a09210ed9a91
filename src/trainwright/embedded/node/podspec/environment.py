"""A container's variables and command line, resolved as a kubelet resolves them.

In: a container, its pod, the ConfigMaps and Secrets it names, the facts that only the node knows. Out: `KEY=value`
pairs and an argument vector with nothing left to look up. Pure. Raises `Unresolved` for a reference that cannot be
resolved yet (a ConfigMap that does not exist); the pod's status then shows CreateContainerConfigError.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.schema.expansion import expand
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity


class Unresolved(Exception):
    """Something that a container needs does not exist; the message names it, in a kubelet's words."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The ConfigMaps and Secrets that a pod names, by name. Those that do not exist are missing.

    `directories` are those of its claims, by the volume's name.
    """

    config_maps: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, Json] = field(default_factory=dict)
    directories: Mapping[str, Path] = field(default_factory=dict)

    def config_map(self, name: str, *, optional: bool) -> dict[str, bytes]:
        found = self.config_maps.get(name)
        if found is None:
            if not optional:
                raise Unresolved(f'configmap "{name}" not found')
            return {}
        binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
        return {**{key: value.encode() for key, value in (found.get("data") or {}).items()}, **binary}

    def secret(self, name: str, *, optional: bool) -> dict[str, bytes]:
        found = self.secrets.get(name)
        if found is None:
            if not optional:
                raise Unresolved(f'secret "{name}" not found')
            return {}
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a pod that only the node knows: its addresses and the machine's resources."""

    address: str
    host_address: str
    allocatable: Mapping[str, str]


def variables(container: Json, pod: Json, sources: Sources, facts: Facts) -> dict[str, str]:
    """The container's variables: `envFrom` first, then `env`. Each may refer to those before it."""
    result: dict[str, str] = {}
    for origin in container.get("envFrom") or ():
        prefix = origin.get("prefix", "")
        for key, content in _from_whole(origin, sources).items():
            result[prefix + key] = content.decode(errors="replace")
    for variable in container.get("env") or ():
        name, origin = variable["name"], variable.get("valueFrom")
        if origin is None:
            result[name] = expand(variable.get("value", ""), result)
        elif (value := _from_origin(origin, container, pod, sources, facts)) is not None:
            result[name] = value
    return result


def command_line(container: Json, variables: Mapping[str, str]) -> list[str]:
    """`command` then `args`, expanded. Empty when the container relies on its image."""
    return [expand(word, variables) for word in (container.get("command") or []) + (container.get("args") or [])]


def _from_whole(origin: Json, sources: Sources) -> dict[str, bytes]:
    if reference := origin.get("configMapRef"):
        return sources.config_map(reference["name"], optional=reference.get("optional", False))
    reference = origin["secretRef"]
    return sources.secret(reference["name"], optional=reference.get("optional", False))


def _from_origin(origin: Json, container: Json, pod: Json, sources: Sources, facts: Facts) -> str | None:
    if reference := origin.get("configMapKeyRef"):
        return _key(reference, sources.config_map, "ConfigMap", pod)
    if reference := origin.get("secretKeyRef"):
        return _key(reference, sources.secret, "Secret", pod)
    if reference := origin.get("fieldRef"):
        return field_value(reference["fieldPath"], pod, facts)
    if reference := origin.get("resourceFieldRef"):
        return resource_value(reference, container, pod, facts)
    raise Unresolved(f"env from {next(iter(origin), 'nothing')} is not supported by the local node yet")


def _key(reference: Json, read: Callable[..., dict[str, bytes]], kind: str, pod: Json) -> str | None:
    optional = reference.get("optional", False)
    value = read(reference["name"], optional=optional).get(reference["key"])
    if value is None:
        if optional:
            return None
        namespace = pod["metadata"]["namespace"]
        raise Unresolved(f"couldn't find key {reference['key']} in {kind} {namespace}/{reference['name']}")
    return value.decode(errors="replace")


_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def field_value(path: str, pod: Json, facts: Facts) -> str:
    """The downward API's view of the pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        return "\n".join(f'{key}="{value}"' for key, value in sorted((metadata.get(path[9:]) or {}).items()))
    simple = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": facts.address,
        "status.podIPs": facts.address,
        "status.hostIP": facts.host_address,
        "status.hostIPs": facts.host_address,
    }
    if path not in simple:
        raise Unresolved(f"fieldRef {path} is not supported by the local node")
    return str(simple[path])


def resource_value(reference: Json, container: Json, pod: Json, facts: Facts) -> str:
    """A request or limit in units of the divisor, rounded up. A limit that is not set is the machine's capacity."""
    if name := reference.get("containerName"):
        everyone = (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]
        container = next((other for other in everyone if other["name"] == name), container)
    kind, _, resource = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    value = (resources.get(kind) or {}).get(resource)
    if value is None and kind == "limits":
        value = facts.allocatable.get(resource)
    divisor = parse_quantity(reference.get("divisor") or "1") or parse_quantity("1")  # a stored divisor of 0 means 1
    amount = parse_quantity(value if value is not None else "0")
    return str(-(-amount.nano // divisor.nano))


def references(pod: Json) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and of the Secrets that this pod's containers and volumes need."""
    config_maps: set[str] = set()
    secrets: set[str] = set()
    spec = pod["spec"]
    for container in (spec.get("initContainers") or []) + spec["containers"]:
        for origin in _origins(container):
            for kind, names in (("configMap", config_maps), ("secret", secrets)):
                reference = origin.get(f"{kind}KeyRef") or origin.get(f"{kind}Ref")
                if reference:
                    names.add(reference["name"])
    for volume in spec.get("volumes") or ():
        projected = (volume.get("projected") or {}).get("sources") or []
        for source in (volume, *projected):
            if config_map := source.get("configMap"):
                config_maps.add(config_map["name"])
            if secret := source.get("secret"):
                secrets.add(secret.get("secretName") or secret["name"])
    return config_maps, secrets


def _origins(container: Json) -> Iterator[Json]:
    yield from container.get("envFrom") or ()
    for variable in container.get("env") or ():
        if origin := variable.get("valueFrom"):
            yield origin
