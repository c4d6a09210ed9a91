"""The values of an installation: names, defaults, comments and schema; and those that a user gives, checked.

Defaults that `manifests/` states come from there. The chart's `values.yaml` and `values.schema.json` are written from
this table by `tools/chart.py`; `trainwright install --set` reads it too.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from trainwright.api.configuration import Configuration
from trainwright.installation import kustomize
from trainwright.installation.kustomize import ROOT
from trainwright.schema.jsonobject import Json
from trainwright.version import __version__

COMPONENTS = {
    "progress.enabled": "progress",
    "certManager.enabled": "cert-manager",
    "metricsAuth.enabled": "metrics-auth",
    "kubernetesGang.enabled": "kubernetes-gang",
    "kueue.enabled": "kueue",
    "plugins.enabled": "plugins",
    "networkPolicy.enabled": "network-policy",
    "priorityClass.enabled": "priority-class",
    "admissionPolicy.enabled": "admission-policy",
    "serviceMonitor.enabled": "service-monitor",
    "prometheusRule.enabled": "prometheus-rule",
    "grafanaDashboard.enabled": "grafana-dashboard",
    "dashboard.enabled": "dashboard",
}
"""Switches, and the component of kustomize that each of them is."""

BOOLEAN: Json = {"type": "boolean"}
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
OBJECT: Json = {"type": "object"}
OBJECTS: Json = {"type": "array", "items": {"type": "object"}}


class WrongValue(Exception):
    """A value that there is not, or of another type; the message says which and what there is."""


@dataclass(frozen=True)
class Option:
    """One value. `shipped`: where the default stands in `manifests/`, as kind and pointer of an object of the base."""

    path: str
    comment: str
    schema: Json
    default: Any = None
    shipped: tuple[str, ...] = field(default=())


def _switch(path: str, comment: str = "", *, default: bool = False) -> Option:
    if path in COMPONENTS:
        comment = kustomize.title(ROOT / "components" / COMPONENTS[path])
    return Option(path, comment, BOOLEAN, default)


_POD = ("Deployment", "spec", "template", "spec")
_CONTAINER = (*_POD, "containers", "0")


@cache
def options() -> tuple[Option, ...]:
    texts: Json = {"type": "array", "items": TEXT}
    pull: Json = {"enum": ["", "Always", "IfNotPresent", "Never"]}
    return (
        Option("replicas", "One leads, all answer admission reviews.", {"type": "integer", "minimum": 0}, 2),
        Option("image.repository", "The operator's image; `make image` builds it.", TEXT, "trainwright/trainwright"),
        Option("image.tag", "Its tag; tag@sha256:… for a digest.", TEXT, __version__),
        Option("image.pullPolicy", "Empty: Kubernetes' own choice.", pull, ""),
        Option("imagePullSecrets", "Such as [{name: registry}].", OBJECTS, []),
        Option("resources", "docs/operator.md says what it uses.", OBJECT, shipped=(*_CONTAINER, "resources")),
        Option("nodeSelector", "", TEXTS, {}),
        Option("tolerations", "", OBJECTS, []),
        Option("affinity", "", OBJECT, {}),
        Option(
            "topologySpreadConstraints",
            "Replicas on different nodes where that is possible.",
            OBJECTS,
            shipped=(*_POD, "topologySpreadConstraints"),
        ),
        Option("priorityClassName", "One that exists; priorityClass.enabled makes one and goes before it.", TEXT, ""),
        Option("podAnnotations", "", TEXTS, {}),
        Option("serviceAccount.annotations", "", TEXTS, {}),
        Option("extraArgs", "Further arguments of `trainwright operator`.", texts, []),
        Option("env", "Environment variables of the operator, such as HTTPS_PROXY.", OBJECTS, []),
        Option(
            "configuration",
            "The operator's configuration file; docs/reference-configuration.md has every field.",
            {"$ref": "#/$defs/Configuration"},
            shipped=("ConfigMap",),
        ),
        _switch("crds.enabled", "Install and upgrade the CRDs with the release.", default=True),
        _switch("crds.keep", "Leave CRDs and runtimes, and so all TrainJobs, at an uninstallation.", default=True),
        _switch("userRoles.enabled", "Let Kubernetes' roles admin, edit and view cover TrainJobs.", default=True),
        _switch("runtimes.enabled", "Install the ClusterTrainingRuntimes that ship with Trainwright."),
        _switch("podDisruptionBudget.enabled", "Keep a replica while nodes are drained.", default=True),
        Option("podDisruptionBudget.minAvailable", "", {"type": ["integer", "string"]}, 1),
        _switch("progress.enabled"),
        _switch("certManager.enabled"),
        _switch("metricsAuth.enabled"),
        _switch("kubernetesGang.enabled"),
        _switch("kueue.enabled"),
        _switch("plugins.enabled"),
        _switch("networkPolicy.enabled"),
        Option("networkPolicy.metricsFrom", "Who may scrape, as peers.", OBJECTS, [{"namespaceSelector": {}}]),
        _switch("priorityClass.enabled"),
        _switch("admissionPolicy.enabled"),
        _switch("serviceMonitor.enabled"),
        Option("serviceMonitor.labels", "What your Prometheus selects, such as {release: prometheus}.", TEXTS, {}),
        Option("serviceMonitor.interval", "", TEXT, "30s"),
        _switch("prometheusRule.enabled"),
        Option("prometheusRule.labels", "What your Prometheus selects.", TEXTS, {}),
        _switch("grafanaDashboard.enabled"),
        Option("grafanaDashboard.labels", "What Grafana's sidecar looks for.", TEXTS, {"grafana_dashboard": "1"}),
        _switch("dashboard.enabled"),
        Option("dashboard.args", "Such as [--allowed-host=train.example.com, --allow-changes].", texts, []),
        Option(
            "dashboard.resources",
            "",
            OBJECT,
            {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        ),
    )


def defaults() -> Json:
    """All values as they are when nobody chooses."""
    found: Json = {}
    for option in options():
        set_at(found, option.path, _shipped(option.shipped) if option.shipped else copy.deepcopy(option.default))
    return found


@cache
def _base() -> list[Json]:
    return kustomize.build(ROOT / "base/manager")


def _shipped(where: tuple[str, ...]) -> Any:
    kind, *pointer = where
    item: Any = next(item for item in _base() if item["kind"] == kind)
    if kind == "ConfigMap":
        (text,) = item["data"].values()
        return {name: value for name, value in yaml.safe_load(text).items() if name not in ("apiVersion", "kind")}
    for step in pointer:
        item = item[int(step)] if isinstance(item, list) else item[step]
    return copy.deepcopy(item)


def complete(given: Json) -> Json:
    """The defaults with what is given over them, maps field by field; raises `WrongValue`."""
    _check(given, schema(), "")
    found: Json = merged(defaults(), given)
    return found


def merged(under: Any, over: Any) -> Any:
    """As Helm merges values: maps field by field, null takes a field away, anything else replaces."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return copy.deepcopy(over)
    found = dict(under)
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(under.get(key), value) if isinstance(under.get(key), dict) else copy.deepcopy(value)
    return found


def read(files: list[Path], settings: list[str]) -> Json:
    """Values of files, then of `path=value` texts, the value as YAML: `replicas=3`, `kueue.enabled=true`."""
    given: Json = {}
    for file in files:
        try:
            found = yaml.safe_load(file.read_text()) or {}
        except (OSError, yaml.YAMLError) as error:
            raise WrongValue(f"{file}: {error}") from error
        if not isinstance(found, dict):
            raise WrongValue(f"{file}: values are a map of names")
        given = merged(given, found)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            raise WrongValue(f"--set {setting}: write NAME=VALUE, such as replicas=3")
        set_at(given, path, yaml.safe_load(text))
    return given


def set_at(values: Json, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        values = values.setdefault(part, {})
    values[last] = value


@cache
def schema() -> Json:
    """The JSON schema of the values, in which every name is known."""
    root: Json = {"type": "object", "additionalProperties": False, "properties": {}}
    for option in options():
        place = root
        *parents, last = option.path.split(".")
        for part in parents:
            empty: Json = {"type": "object", "additionalProperties": False, "properties": {}}
            place = place["properties"].setdefault(part, empty)
        described = {"description": option.comment} if option.comment else {}
        place["properties"][last] = {**described, **option.schema}
    root["properties"]["global"] = {"description": "Helm's own.", "type": "object"}
    _, definitions = msgspec.json.schema_components([Configuration], ref_template="#/$defs/{name}")
    for definition in definitions.values():
        for name in ("title", "description"):
            definition.pop(name, None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}


_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "object": (dict,),
    "array": (list,),
}


def _check(value: Any, wanted: Json, path: str) -> None:
    """As much of JSON schema as ours uses."""
    if "$ref" in wanted:
        wanted = schema()["$defs"][wanted["$ref"].rpartition("/")[2]]
    if "anyOf" in wanted:
        if value is not None:
            _check(value, next(each for each in wanted["anyOf"] if each.get("type") != "null"), path)
        return
    if value is None:
        return
    kinds = wanted.get("type")
    names = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    allowed = tuple(one for name in names for one in _TYPES[name])
    if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        raise WrongValue(f"{path or 'values'}: {value!r} is not of type {' or '.join(names)}")
    if "enum" in wanted and value not in wanted["enum"]:
        raise WrongValue(f"{path}: {value!r} is none of {', '.join(repr(it) for it in wanted['enum'])}")
    if isinstance(value, dict):
        known = wanted.get("properties") or {}
        for name, each in value.items():
            here = f"{path}.{name}" if path else str(name)
            if name in known:
                _check(each, known[name], here)
            elif wanted.get("additionalProperties") is False:
                raise WrongValue(f"{here}: there is no such value; there is {', '.join(sorted(known))}")
            elif isinstance(wanted.get("additionalProperties"), dict):
                _check(each, wanted["additionalProperties"], here)
    if isinstance(value, list) and "items" in wanted:
        for number, each in enumerate(value):
            _check(each, wanted["items"], f"{path}[{number}]")
