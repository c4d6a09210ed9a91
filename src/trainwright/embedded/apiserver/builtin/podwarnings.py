"""Warnings about pod specs that are accepted but probably wrong, in pods and templates."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.schema.jsonobject import Json


def pod_warnings(spec: Json, at: str = "spec") -> list[str]:
    found = [
        f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'
        for index, secret in enumerate(spec.get("imagePullSecrets") or ())
        if not secret.get("name")
    ]
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if not source:
                found.append(f'volume "{volume.get("name")}" (Projected) has no sources provided')
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = f"{at}.topologySpreadConstraints[{index}].labelSelector"
            found.append(f"{where}: a null labelSelector results in matching no pod")
    found += _ports_twice(spec, at) + _port_names(spec, at)
    for container, path in _containers(spec, at):
        found += _hidden_variables(container, path)
    return found


def _containers(spec: Json, at: str) -> Iterator[tuple[Json, str]]:
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield container, f"{at}.{group}[{index}]"


def _ports_twice(spec: Json, at: str) -> list[str]:
    """Warn of ports that two containers declare: they share the pod's address."""
    found: list[str] = []
    seen: dict[tuple[object, ...], str] = {}
    for container, path in _containers(spec, at):
        for index, port in enumerate(container.get("ports") or ()):
            what = (port.get("containerPort"), port.get("protocol"), port.get("hostIP"), port.get("hostPort"))
            here = f"{path}.ports[{index}]"
            other = seen.setdefault(what, here)
            if other != here:
                found.append(f"{here}: duplicate port definition with {other}")
    return found


def _port_names(spec: Json, at: str) -> list[str]:
    """Warn of port names that come twice: a name stands for one port of the whole pod."""
    found: list[str] = []
    first: dict[str, str] = {}
    for container, path in _containers(spec, at):
        for index, port in enumerate(container.get("ports") or ()):
            name, here = port.get("name"), f"{path}.ports[{index}]"
            if not name:
                continue
            other = first.setdefault(name, here)
            if other != here:
                found.append(
                    f'{here}: duplicate port name "{name}" with {other}, services and probes that select ports by name'
                    f" will use {other}"
                )
    return found


def _hidden_variables(container: Json, at: str) -> list[str]:
    """Warn of variables that are defined twice, unless the later definition refers to the earlier one."""
    found: list[str] = []
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name", "")
        if name in seen and (variable.get("valueFrom") or f"$({name})" not in (variable.get("value") or "")):
            where = f"{at}.env[{index}]"
            found.append(f'{where}: hides previous definition of "{name}", which may be dropped when using apply')
        seen.add(name)
    return found
