"""An object with places for values: plain JSON, in which some nodes stand for what is chosen at the installation.

`resolve` puts the values in; `tools/chart.py` writes the same nodes as Helm's templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from trainwright.schema.jsonobject import Json

NAMESPACE = "kubeflow-system"
"""The namespace in `manifests/`; another one replaces it wherever it stands."""


@dataclass(frozen=True)
class Chosen:
    """The value at `path`, such as `image.tag`. With `optional` the field is left out while the value is empty."""

    path: str
    optional: bool = False


@dataclass(frozen=True)
class Composed:
    """A text made of values: `{}` stands for each of `paths`, in order."""

    text: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Only:
    """A field or an item that is there while the switch is on."""

    switch: str
    item: Any


@dataclass(frozen=True)
class Either:
    """One of two, by a switch."""

    switch: str
    yes: Any
    no: Any


@dataclass(frozen=True)
class Splice:
    """In a list: the items of the list at `path`."""

    path: str


@dataclass(frozen=True)
class YamlText:
    """A string that is the YAML of a tree, such as a configuration file in a ConfigMap."""

    tree: Any


class _Left(Exception):
    """The field is left out."""


def value_at(values: Json, path: str) -> Any:
    found: Any = values
    for part in path.split("."):
        found = (found or {}).get(part)
    return found


def resolve(tree: Any, values: Json, namespace: str = NAMESPACE) -> Any:
    """The tree as plain JSON."""
    if isinstance(tree, str):
        return tree.replace(NAMESPACE, namespace)
    if isinstance(tree, dict):
        return dict(_fields(tree, values, namespace))
    if isinstance(tree, list):
        return list(_items(tree, values, namespace))
    if isinstance(tree, Chosen):
        found = value_at(values, tree.path)
        if tree.optional and not found:
            raise _Left
        return found
    if isinstance(tree, Composed):
        return tree.text.format(*(value_at(values, path) for path in tree.paths))
    if isinstance(tree, Only):
        if not value_at(values, tree.switch):
            raise _Left
        return resolve(tree.item, values, namespace)
    if isinstance(tree, Either):
        return resolve(tree.yes if value_at(values, tree.switch) else tree.no, values, namespace)
    if isinstance(tree, YamlText):
        return yaml.safe_dump(resolve(tree.tree, values, namespace), sort_keys=False)
    return tree


def _fields(tree: Json, values: Json, namespace: str) -> Any:
    for key, node in tree.items():
        try:
            yield key, resolve(node, values, namespace)
        except _Left:
            continue


def _items(tree: list[Any], values: Json, namespace: str) -> Any:
    for node in tree:
        if isinstance(node, Splice):
            yield from value_at(values, node.path) or ()
            continue
        try:
            yield resolve(node, values, namespace)
        except _Left:
            continue
