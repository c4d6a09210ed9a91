"""The LimitRanger plugin: defaults for the containers of a new pod, and bounds for pods and claims.

In: a new pod or claim and the LimitRanges of its namespace. Out: the pod with defaults and an annotation that lists
them, or the refusal in kube-apiserver's words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.errors import forbidden
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, str]


def apply_defaults(api: Api, pod: Json) -> None:
    """Apply each range in turn. The annotation is that of the last one, as in kube-apiserver."""
    for limits in _ranges(api, pod):
        told: list[str] = []
        for group, words in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(group) or ():
                told += _fill(container, limits, words)
        if told:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def check_limits(api: Api, resource: str, obj: Json) -> None:
    """Raise 403 with all violations of the first range that the object violates."""
    for limits in _ranges(api, obj):
        faults = list(_pod_faults(limits, obj["spec"]) if resource == "pods" else _claim_faults(limits, obj["spec"]))
        if faults:
            why = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
            raise forbidden("", resource, obj["metadata"].get("name", ""), why)


def _ranges(api: Api, obj: Json) -> Iterator[list[Json]]:
    table = api.state.tables.get("limitranges")
    if table is None:
        return
    for stored in table.select(obj["metadata"].get("namespace", "")):
        yield (stored.decode().get("spec") or {}).get("limits") or []


def _fill(container: Json, limits: list[Json], words: str) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for member, given, name in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        wanted: Amounts = {}
        for limit in limits:
            if limit.get("type") == "Container":
                wanted.update(limit.get(given) or {})
        missing = sorted(set(wanted) - set(resources.get(member) or ()))
        if missing:
            resources[member] = {**(resources.get(member) or {}), **{key: wanted[key] for key in missing}}
            yield f"{', '.join(missing)} {name} for {words} {container.get('name', '')}"


def _pod_faults(limits: list[Json], spec: Json) -> Iterator[str]:
    for limit in limits:
        if limit.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _faults(limit, resources.get("requests") or {}, resources.get("limits") or {})
        elif limit.get("type") == "Pod":
            yield from _faults(limit, _total(spec, "requests"), _total(spec, "limits"))


def _claim_faults(limits: list[Json], spec: Json) -> Iterator[str]:
    requests: Amounts = (spec.get("resources") or {}).get("requests") or {}
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for key, bound in sorted((limit.get("min") or {}).items()):
                yield from _minimum("PersistentVolumeClaim", key, bound, requests, {})
            for key, bound in sorted((limit.get("max") or {}).items()):
                start = f"maximum {key} usage per PersistentVolumeClaim is {bound}"
                if key not in requests:
                    yield f"{start}.  No request is specified"
                elif parse_quantity(bound) < parse_quantity(requests[key]):
                    yield f"{start}, but request is {requests[key]}"


def _faults(limit: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = limit["type"]
    for key, bound in sorted((limit.get("min") or {}).items()):
        yield from _minimum(kind, key, bound, requests, limits)
    for key, bound in sorted((limit.get("max") or {}).items()):
        start = f"maximum {key} usage per {kind} is {bound}"
        if key not in limits:
            yield f"{start}.  No limit is specified"
        elif parse_quantity(bound) < parse_quantity(limits[key]):
            yield f"{start}, but limit is {limits[key]}"
        elif key in requests and parse_quantity(bound) < parse_quantity(requests[key]):
            yield f"{start}, but request is {requests[key]}"
    for key, bound in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        start = f"{key} max limit to request ratio per {kind} is {bound}"
        request, most = parse_quantity(requests.get(key, "0")), parse_quantity(limits.get(key, "0"))
        if not request:
            yield f"{start}, but no request is specified or request is 0"
        elif not most:
            yield f"{start}, but no limit is specified or limit is 0"
        elif most.as_float() / request.as_float() > parse_quantity(bound).as_float():
            yield f"{start}, but provided ratio is {most.as_float() / request.as_float():f}"


def _minimum(kind: str, key: str, bound: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    start = f"minimum {key} usage per {kind} is {bound}"
    if key not in requests:
        yield f"{start}.  No request is specified"
    elif parse_quantity(requests[key]) < parse_quantity(bound):
        yield f"{start}, but request is {requests[key]}"
    elif key in limits and parse_quantity(limits[key]) < parse_quantity(bound):
        yield f"{start}, but limit is {limits[key]}"


def _total(spec: Json, member: str) -> Amounts:
    """The most the pod needs at one time: its containers and sidecars together, or its largest init container."""
    total: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container, member)
    for container in spec.get("initContainers") or ():
        step = dict(sidecars)
        _add(step, container, member)
        if container.get("restartPolicy") == "Always":
            _add(total, container, member)
            sidecars = step
        for key, amount in step.items():
            if key not in largest or largest[key] < amount:
                largest[key] = amount
    for key, amount in largest.items():
        if key not in total or total[key] < amount:
            total[key] = amount
    whole = (spec.get("resources") or {}).get(member) or {}
    return {**{key: amount.canonical() for key, amount in total.items()}, **whole}


def _add(total: dict[str, Quantity], container: Json, member: str) -> None:
    for key, amount in ((container.get("resources") or {}).get(member) or {}).items():
        total[key] = total.get(key, parse_quantity("0")) + parse_quantity(amount)
