"""Where every field of a rendered object comes from.

The build works on one document, the JobSet to be. Whoever changes it says so afterwards: `mark(origin)` means "what
changed since the last mark came from here". A `Trace` then compares the document with its last state, leaf by leaf,
and remembers for each leaf who set it and what it was before. `NO_TRACE`, which every ordinary build uses, does
nothing at all.

A leaf is addressed by the identity of the list items it lies in (`containers[name=node]`), so that a patch that moves
a container does not look like a change. A list whose items have no identity (a command, tolerations) is one leaf: it
is set as a whole. In: the document at each mark. Out: `Trace.fields`, and `Trace.removed` for what was set once and
is not there any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

Path = tuple[str, ...]

RUNTIME, TRAIN_JOB, OVERRIDE, PATCH, PLUGIN, DEFAULT = "runtime", "trainjob", "override", "patch", "plugin", "default"

_KEYS = {
    "replicatedJobs": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "schedulingGates": ("name",),
    "ownerReferences": ("uid",),
}


class Origin(NamedTuple):
    """One layer that sets fields: `layer` is its kind, `name` who it is, `field` where in its own document the value
    stands.
    """

    layer: str
    name: str = ""
    field: str = ""


class Setting(NamedTuple):
    """A value and who set it."""

    value: Any
    origin: Origin


class Leaf(NamedTuple):
    value: Any
    place: str
    """The leaf's path with list positions, in the document it was read from."""


class Tracer(Protocol):
    """What the build tells about its steps."""

    def follow(self, document: Any) -> None:
        """From now on, `document` is the one that changes."""

    def mark(self, origin: Origin, source: Any = None) -> None:
        """What changed since the last mark came from `origin`; `source`, if given, is the document it copied from."""


class _NoTrace:
    def follow(self, document: Any) -> None:
        pass

    def mark(self, origin: Origin, source: Any = None) -> None:
        pass


NO_TRACE: Tracer = _NoTrace()


class Trace:
    """Remembers the settings of each leaf, first to last."""

    def __init__(self) -> None:
        self._document: Any = {}
        self._state: dict[Path, Leaf] = {}
        self.history: dict[Path, list[Setting]] = {}

    def follow(self, document: Any) -> None:
        self._document = document

    def follows(self, document: Any) -> bool:
        return document is self._document

    def mark(self, origin: Origin, source: Any = None) -> None:
        state = dict(leaves(self._document))
        places = dict(leaves(source)) if source is not None else {}
        for path, leaf in state.items():
            before = self._state.get(path)
            if before is not None and _same(before.value, leaf.value):
                continue
            exact = places.get(path)
            field = f"{origin.field}.{exact.place}" if exact is not None and exact.place else origin.field
            self.history.setdefault(path, []).append(Setting(_copy(leaf.value), origin._replace(field=field)))
        for path in self._state.keys() - state.keys():
            self.history[path].append(Setting(None, origin))
        self._state = {path: Leaf(_copy(leaf.value), leaf.place) for path, leaf in state.items()}

    def settings(self, path: Path) -> list[Setting]:
        """Who set the leaf at `path`, the last one being the one that counts."""
        return self.history.get(path, [])

    def removed(self) -> Iterator[tuple[Path, list[Setting]]]:
        """Leaves that were set and are not in the document any more."""
        for path, settings in self.history.items():
            if path not in self._state:
                yield path, settings


def leaves(node: Any, path: Path = (), place: str = "") -> Iterator[tuple[Path, Leaf]]:
    """Every leaf of a document with its identity and its place."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            step = f"[{key}]" if "." in key or "/" in key else f".{key}" if place else key
            yield from leaves(value, (*path, key), place + step)
    elif isinstance(node, list) and (keys := _KEYS.get(path[-1] if path else "")) and _are_keyed(node, keys):
        for index, item in enumerate(node):
            identity = ",".join(f"{key}={item.get(key, 'TCP')}" for key in keys)
            yield from leaves(item, (*path, f"[{identity}]"), f"{place}[{index}]")
    elif node is not None:
        yield path, Leaf(node, place)


def scalars(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The scalars and empty containers inside one leaf, each with its place: a command has as many as it has words."""
    if isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from scalars(item, f"{place}[{index}]")
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            yield from scalars(item, f"{place}[{key}]" if "." in key or "/" in key else f"{place}.{key}")
    else:
        yield place, value


def _are_keyed(items: list[Any], keys: tuple[str, ...]) -> bool:
    identities = set()
    for item in items:
        if not isinstance(item, dict) or keys[0] not in item:
            return False
        identities.add(tuple(item.get(key, "TCP") for key in keys))
    return len(identities) == len(items) > 0


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
