"""A container's probes and lifecycle hooks, resolved for its supervisor.

In: a container of a pod's spec, the pod's address, and where its ports are on this machine. Out: `ProbeToRun`s and
`HandlerToRun`s with nothing left to resolve: named ports are numbers, and a port that the node replaced is the one it
is here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from trainwright.embedded.node.pods.record import HandlerToRun, ProbeToRun
from trainwright.embedded.node.podspec.environment import Unresolved
from trainwright.schema.jsonobject import Json

Here = Callable[[int], int]
"""The machine's port for one of the pod's."""

KINDS = ("startup", "readiness", "liveness")


def probes(container: Json, address: str, here: Here) -> dict[str, ProbeToRun]:
    """The container's probes by kind."""
    found = {}
    for kind in KINDS:
        if probe := container.get(f"{kind}Probe"):
            found[kind] = _probe(probe, container, address, here)
    return found


def hook(container: Json, name: str, address: str, here: Here) -> HandlerToRun | None:
    """The handler of `postStart` or `preStop`, if the container has one. An old tcpSocket hook does nothing, as in a
    kubelet.
    """
    handler = (container.get("lifecycle") or {}).get(name) or {}
    if not handler or handler.get("tcpSocket"):
        return None
    return _handler(handler, container, address, here)


def _probe(probe: Json, container: Json, address: str, here: Here) -> ProbeToRun:
    result: ProbeToRun = {
        "handler": _handler(probe, container, address, here),
        "initialDelaySeconds": probe.get("initialDelaySeconds") or 0,
        "periodSeconds": probe.get("periodSeconds") or 10,
        "timeoutSeconds": probe.get("timeoutSeconds") or 1,
        "successThreshold": probe.get("successThreshold") or 1,
        "failureThreshold": probe.get("failureThreshold") or 3,
    }
    if (grace := probe.get("terminationGracePeriodSeconds")) is not None:
        result["terminationGracePeriodSeconds"] = grace
    return result


def _handler(handler: Json, container: Json, address: str, here: Here) -> HandlerToRun:
    if socket := handler.get("tcpSocket"):
        return {"tcp": {"host": socket.get("host") or address, "port": _port(socket["port"], container, here)}}
    if get := handler.get("httpGet"):
        return {
            "http": {
                "host": get.get("host") or address,
                "port": _port(get["port"], container, here),
                "path": get.get("path") or "/",
                "scheme": get.get("scheme") or "HTTP",
                "headers": [(header["name"], header.get("value", "")) for header in get.get("httpHeaders") or ()],
            }
        }
    if command := handler.get("exec"):
        return {"exec": command.get("command") or []}
    return {"sleep": (handler.get("sleep") or {}).get("seconds") or 0}


def _port(port: int | str, container: Json, here: Here) -> int:
    if isinstance(port, str) and not port.isdecimal():
        named = next((p["containerPort"] for p in container.get("ports") or () if p.get("name") == port), None)
        if named is None:
            raise Unresolved(f"container {container['name']} has no port named {port}")
        port = named
    return here(int(port))
