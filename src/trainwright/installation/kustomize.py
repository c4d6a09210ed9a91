"""As much of kustomize as `manifests/` uses: resources, generated ConfigMaps, labels, a namespace, components' patches.

In: a folder with a kustomization. Out: its objects, or a component's objects and patches. What it does not know it
refuses, and a test compares it with kubectl's own kustomize.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from trainwright.schema.jsonobject import Json

ROOT = Path(str(files("trainwright") / "manifests")).resolve()
CLUSTER_WIDE = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrainingRuntime",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PriorityClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)
_KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "configMapGenerator",
    "generatorOptions",
    "labels",
    "patches",
    "components",
}


@dataclass(frozen=True)
class Operation:
    """One operation of a JSON patch."""

    op: str
    pointer: tuple[str, ...]
    value: Any


@dataclass(frozen=True)
class Patch:
    kind: str  # a regular expression
    name: str  # empty: any
    operations: tuple[Operation, ...]

    def concerns(self, item: Json) -> bool:
        named = not self.name or self.name == item["metadata"]["name"]
        return named and re.fullmatch(self.kind, item["kind"]) is not None


def build(folder: Path) -> list[Json]:
    """The objects of a kustomization, in the order of its resources."""
    kustomization = _read(folder)
    found = list(_resources(folder, kustomization))
    namespace = kustomization.get("namespace")
    for item in found:
        if namespace and item["kind"] not in CLUSTER_WIDE:
            item["metadata"]["namespace"] = namespace
        for labels in kustomization.get("labels") or ():
            item["metadata"].setdefault("labels", {}).update(labels["pairs"])
    return found


def component(folder: Path) -> tuple[list[Json], list[Patch]]:
    """The objects that a component adds, and what it changes."""
    kustomization = _read(folder)
    return list(_resources(folder, kustomization)), [_patch(each) for each in kustomization.get("patches") or ()]


def title(folder: Path) -> str:
    """What the comment at the top of a kustomization says."""
    text = _file(folder).read_text()
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
    return " ".join(lines)


def _resources(folder: Path, kustomization: Json) -> Iterator[Json]:
    for name in kustomization.get("resources") or ():
        path = (folder / name).resolve()
        if path.is_dir():
            yield from build(path)
            continue
        for document in yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document:
                yield document
    for generated in kustomization.get("configMapGenerator") or ():
        data = {name: (folder / name).read_text() for name in generated["files"]}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generated["name"]}, "data": data}


def _patch(given: Json) -> Patch:
    target = given["target"]
    operations = [
        Operation(each["op"], tuple(each["path"].strip("/").replace("~1", "/").split("/")), each["value"])
        for each in yaml.safe_load(given["patch"])
    ]
    return Patch(target["kind"], target.get("name", ""), tuple(operations))


def _file(folder: Path) -> Path:
    names = ("kustomization.yaml", "Kustomization")
    return next(folder / name for name in names if (folder / name).exists())


def _read(folder: Path) -> Json:
    kustomization: Json = yaml.safe_load(_file(folder).read_text())
    if unknown := set(kustomization) - _KNOWN:
        raise ValueError(f"{folder}: {', '.join(sorted(unknown))} in a kustomization is not understood here")
    return copy.deepcopy(kustomization)
