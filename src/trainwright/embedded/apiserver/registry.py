"""The types served now: the built-in ones, and those that CRDs add and remove at run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainwright.embedded.apiserver.types import Type


class Registry:
    """Found by path (group, version, plural). `changes` counts, so that documents made from it know their age."""

    def __init__(self, builtin: Iterable[Type]) -> None:
        self._types: dict[tuple[str, str, str], Type] = {}
        self._order: dict[str, list[str]] = {}  # group → versions, preferred first
        self.custom_groups: set[str] = set()
        self.terminating: set[str] = set()  # custom resources whose CRD is being deleted
        self.changes = 0
        for served in builtin:
            self._add(served)
        self.builtin_groups = {served.group for served in self._types.values()}

    def _add(self, served: Type) -> None:
        self._types[served.group, served.version, served.plural] = served
        versions = self._order.setdefault(served.group, [])
        if served.version not in versions:
            versions.append(served.version)

    def find(self, group: str, version: str, plural: str) -> Type | None:
        return self._types.get((group, version, plural))

    def has_version(self, group: str, version: str) -> bool:
        return version in self._order.get(group, ())

    def __iter__(self) -> Iterator[Type]:
        return iter(self._types.values())

    def groups(self) -> list[str]:
        return list(self._order)

    def versions(self, group: str) -> list[str]:
        return list(self._order.get(group, ()))

    def types_of(self, group: str, version: str) -> list[Type]:
        return [t for (g, v, _), t in self._types.items() if g == group and v == version]

    def by_resource(self, resource: str) -> Type | None:
        """The storage view: any served version of the resource that owns this table."""
        for served in self._types.values():
            if served.resource == resource and not served.storage_resource:
                return served
        return None

    def by_kind(self, group: str, version: str, kind: str) -> Type | None:
        for (g, v, _), served in self._types.items():
            if g == group and v == version and served.kind == kind:
                return served
        return None

    def set_custom(self, group: str, plural: str, served: list[Type]) -> None:
        """Replace all versions of one custom resource; an empty list removes it."""
        for key in [key for key, t in self._types.items() if key[0] == group and key[2] == plural and t.custom]:
            del self._types[key]
        for custom in served:
            self._types[custom.group, custom.version, custom.plural] = custom
        versions = {version for g, version, _ in self._types if g == group}
        if group not in self.builtin_groups:
            self._order.pop(group, None)
            if versions:
                self._order[group] = sorted(versions, key=version_order)
        self.custom_groups = {t.group for t in self._types.values() if t.custom}
        self.changes += 1


def version_order(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2, v1, v2beta1, v1alpha1, then anything else by name."""
    rest = version[1:]
    for rank, word in ((1, "beta"), (2, "alpha")):
        major, found, minor = rest.partition(word)
        if version.startswith("v") and found and major.isdigit() and (minor.isdigit() or not minor):
            return (rank, -int(major), -int(minor or 0), "")
    if version.startswith("v") and rest.isdigit():
        return (0, -int(rest), 0, "")
    return (3, 0, 0, version)
