"""The nodes that this machine is shown as: one, several equal ones, or those of a file. No I/O.

In: a number, or the text of a file. Out: `NodeShape`s with names, labels, taints and sizes. A size that is not given is
an equal share of the machine. All of them are one machine: what the sizes keep apart is the scheduler's business.

    nodes:
    - name: a
      labels: {topology.kubernetes.io/zone: east}
      capacity: {cpu: "2", memory: 4Gi, example.com/chip: 8}
    - name: b
      taints: [{key: dedicated, value: big, effect: NoSchedule}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.quantity import Quantity, QuantityError, parse_quantity

NAME = "local"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class ShapeError(ValueError):
    """Nodes that cannot be made; the message says where and what to write."""


class NodeShape(msgspec.Struct, frozen=True):
    """One node. `capacity` has what it is to have; the rest is its share of the machine."""

    name: str = NAME
    labels: dict[str, str] = {}
    taints: list[Json] = []
    capacity: dict[str, str] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[_Entry]


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    labels: dict[str, str] = {}
    taints: list[Json] = []
    capacity: dict[str, str | int | float] = {}


def equal(count: int) -> list[NodeShape]:
    """The machine as one node `local`, or as `local-0`, `local-1` and so on."""
    if count < 1:
        raise ShapeError("there must be at least one node")
    return [NodeShape()] if count == 1 else [NodeShape(f"{NAME}-{number}") for number in range(count)]


def read(document: Any, where: str) -> list[NodeShape]:
    """The nodes of a parsed file."""
    try:
        entries = msgspec.convert(document, _File).nodes
    except msgspec.ValidationError as error:
        raise ShapeError(f"{where}: {error}; expected `nodes:` with a list of name, labels, taints, capacity") from None
    if not entries:
        raise ShapeError(f"{where}: names no node")
    names = [entry.name for entry in entries]
    for entry in entries:
        if faults := dns1123_subdomain_faults(entry.name):
            raise ShapeError(f"{where}: node {entry.name!r}: {faults[0]}")
        if names.count(entry.name) > 1:
            raise ShapeError(f"{where}: two nodes are called {entry.name}")
        _check(entry, where)
    return [
        NodeShape(entry.name, entry.labels, entry.taints, {name: str(size) for name, size in entry.capacity.items()})
        for entry in entries
    ]


def _check(entry: _Entry, where: str) -> None:
    for name, size in entry.capacity.items():
        try:
            parse_quantity(size)
        except QuantityError as error:
            raise ShapeError(f"{where}: node {entry.name}: capacity {name}: {error}") from None
    for taint in entry.taints:
        if not taint.get("key") or taint.get("effect") not in EFFECTS:
            raise ShapeError(f"{where}: node {entry.name}: a taint needs a key and an effect of {', '.join(EFFECTS)}")


def capacities(shapes: Sequence[NodeShape], machine: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What each node has, by name: its own sizes, and an equal share of everything else."""
    share = {name: _share(name, amount, len(shapes)) for name, amount in machine.items()}
    return {shape.name: {**share, **shape.capacity} for shape in shapes}


def _share(name: str, amount: str, count: int) -> str:
    if count == 1 or name == "pods":
        return amount
    whole = parse_quantity(amount)
    if name == "cpu":
        return str(Quantity(whole.nano // count // 10**6 * 10**6))
    if amount.endswith("Ki"):
        return f"{whole.value() // 1024 // count}Ki"
    return str(whole.value() // count)
