"""The objects of an installation as trees: the base, components behind switches, values in their places.

A component's patch `add` becomes a field or an item that is there while its switch is on, and `replace` a choice
between two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from trainwright.api.configuration import Configuration
from trainwright.installation import kustomize
from trainwright.installation.kustomize import ROOT, Operation
from trainwright.installation.tree import Chosen, Composed, Either, Only, Splice, YamlText, resolve, value_at
from trainwright.installation.values import COMPONENTS
from trainwright.schema.jsonobject import Json

MANAGER = "kubeflow-trainer-controller-manager"
PAGE = "trainwright-dashboard"
CONFIG = "kubeflow-trainer-config"
CONFIG_FILE = "controller_manager_config.yaml"
POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", "0")

# Objects of the base that have a switch of their own; CRDs have `crds.enabled`.
SWITCHES = {
    ("PodDisruptionBudget", MANAGER): "podDisruptionBudget.enabled",
    ("ClusterRole", "kubeflow-trainer-edit"): "userRoles.enabled",
    ("ClusterRole", "kubeflow-trainer-view"): "userRoles.enabled",
    ("ClusterRole", "kubeflow-trainer-runtimes-view"): "userRoles.enabled",
    ("ClusterRoleBinding", "kubeflow-trainer-runtimes-view"): "userRoles.enabled",
}

# Where values go: kind, name, pointer.
PLACES: tuple[tuple[str, str, tuple[str, ...], Any], ...] = (
    ("Deployment", MANAGER, ("spec", "replicas"), Chosen("replicas")),
    ("Deployment", MANAGER, ("spec", "template", "metadata", "annotations"), Chosen("podAnnotations", optional=True)),
    ("Deployment", MANAGER, (*CONTAINER, "image"), Composed("{}:{}", ("image.repository", "image.tag"))),
    ("Deployment", MANAGER, (*CONTAINER, "imagePullPolicy"), Chosen("image.pullPolicy", optional=True)),
    ("Deployment", MANAGER, (*CONTAINER, "resources"), Chosen("resources")),
    ("Deployment", MANAGER, (*CONTAINER, "env"), Chosen("env", optional=True)),
    ("Deployment", MANAGER, (*CONTAINER, "args", "-"), Splice("extraArgs")),
    ("Deployment", MANAGER, (*POD, "imagePullSecrets"), Chosen("imagePullSecrets", optional=True)),
    ("Deployment", MANAGER, (*POD, "nodeSelector"), Chosen("nodeSelector", optional=True)),
    ("Deployment", MANAGER, (*POD, "tolerations"), Chosen("tolerations", optional=True)),
    ("Deployment", MANAGER, (*POD, "affinity"), Chosen("affinity", optional=True)),
    ("Deployment", MANAGER, (*POD, "topologySpreadConstraints"), Chosen("topologySpreadConstraints", optional=True)),
    ("Deployment", MANAGER, (*POD, "priorityClassName"), Chosen("priorityClassName", optional=True)),
    ("ServiceAccount", MANAGER, ("metadata", "annotations"), Chosen("serviceAccount.annotations", optional=True)),
    ("PodDisruptionBudget", MANAGER, ("spec", "minAvailable"), Chosen("podDisruptionBudget.minAvailable")),
    ("NetworkPolicy", MANAGER, ("spec", "ingress", "1", "from"), Chosen("networkPolicy.metricsFrom")),
    ("ServiceMonitor", MANAGER, ("metadata", "labels"), Chosen("serviceMonitor.labels", optional=True)),
    ("ServiceMonitor", MANAGER, ("spec", "endpoints", "0", "interval"), Chosen("serviceMonitor.interval")),
    ("PrometheusRule", MANAGER, ("metadata", "labels"), Chosen("prometheusRule.labels", optional=True)),
    ("ConfigMap", "kubeflow-trainer-dashboard", ("metadata", "labels"), Chosen("grafanaDashboard.labels")),
    ("Deployment", PAGE, (*CONTAINER, "image"), Composed("{}:{}", ("image.repository", "image.tag"))),
    ("Deployment", PAGE, (*CONTAINER, "imagePullPolicy"), Chosen("image.pullPolicy", optional=True)),
    ("Deployment", PAGE, (*CONTAINER, "args", "-"), Splice("dashboard.args")),
    ("Deployment", PAGE, (*CONTAINER, "resources"), Chosen("dashboard.resources")),
    ("Deployment", PAGE, (*POD, "imagePullSecrets"), Chosen("imagePullSecrets", optional=True)),
)


@dataclass(frozen=True)
class Part:
    """One object. `group` says which file of the chart it is written to; with `switch` it is there while that is on."""

    group: str
    switch: str
    tree: Json

    @property
    def is_kept(self) -> bool:
        """Whether it stays when the rest is uninstalled: users' own objects depend on it."""
        return self.tree["kind"] in ("CustomResourceDefinition", "ClusterTrainingRuntime")


def parts() -> list[Part]:
    """All objects of an installation but its namespace, in an order in which they can be created."""
    found = [
        Part(_group(item), _switch(item), item)
        for item in kustomize.build(ROOT / "overlays/manager")
        if item["kind"] != "Namespace"
    ]
    patches: list[tuple[str, kustomize.Patch]] = []
    for switch, folder in COMPONENTS.items():
        added, changes = kustomize.component(ROOT / "components" / folder)
        found += [Part(folder, switch, item) for item in added]
        patches += [(switch, change) for change in changes]
    found += [Part("runtimes", "runtimes.enabled", it) for it in kustomize.build(ROOT / "overlays/runtimes")]
    for part in found:
        item = part.tree
        if (item["kind"], item["metadata"]["name"]) == ("ConfigMap", CONFIG):
            _make_configuration(item)
        for switch, change in patches:
            if change.concerns(item):
                for operation in change.operations:
                    _change(item, operation, switch)
        for kind, name, pointer, node in PLACES:
            if (item["kind"], item["metadata"]["name"]) == (kind, name):
                _put(item, pointer, node)
    return found


def objects(values: Json, namespace: str) -> list[Json]:
    """The objects of an installation with these values (all of them: see `values.complete`)."""
    chosen = [part for part in parts() if not part.switch or value_at(values, part.switch)]
    return [resolve(part.tree, values, namespace) for part in chosen]


def _group(item: Json) -> str:
    kind = item["kind"]
    if kind == "CustomResourceDefinition":
        return f"crd-{item['spec']['names']['plural']}"
    if kind.endswith("WebhookConfiguration"):
        return "webhooks"
    return (
        "rbac" if kind in ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding") else "manager"
    )


def _switch(item: Json) -> str:
    if item["kind"] == "CustomResourceDefinition":
        return "crds.enabled"
    return SWITCHES.get((item["kind"], item["metadata"]["name"]), "")


def _make_configuration(item: Json) -> None:
    """The configuration file: the value `configuration`, field by field, so that components may change some."""
    fields = yaml.safe_load(item["data"][CONFIG_FILE])
    tree: Json = {"apiVersion": fields.pop("apiVersion"), "kind": fields.pop("kind")}
    for name in Configuration.__struct_encode_fields__:
        if name not in tree:
            tree[name] = Chosen(f"configuration.{name}", optional=True)
    item["data"][CONFIG_FILE] = YamlText(tree)


def _change(item: Json, operation: Operation, switch: str) -> None:
    parent, last = _parent(item, operation.pointer)
    if operation.pointer == ("data", CONFIG_FILE):
        text: YamlText = parent[last]
        for name, value in yaml.safe_load(operation.value).items():
            if name == "certManagement":
                text.tree[name] = Either(switch, value, text.tree[name])
    elif operation.op == "add" and last == "-":
        parent.append(Only(switch, operation.value))
    elif operation.op == "add" and isinstance(parent, dict) and last not in parent:
        parent[last] = Only(switch, operation.value)
    else:
        raise ValueError(f"{operation.op} {'/'.join(operation.pointer)} of a component is not understood here")


def _put(item: Json, pointer: tuple[str, ...], node: Any) -> None:
    parent, last = _parent(item, pointer)
    if last == "-":
        parent.append(node)
    elif isinstance(parent, dict) and isinstance(parent.get(last), Only):
        parent[last] = Either(parent[last].switch, parent[last].item, node)
    else:
        parent[last] = node


def _parent(item: Any, pointer: tuple[str, ...]) -> tuple[Any, str]:
    for step in pointer[:-1]:
        item = item[int(step)] if isinstance(item, list) else item.setdefault(step, {})
    return item, pointer[-1]
