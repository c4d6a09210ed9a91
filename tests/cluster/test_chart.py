"""The Helm chart: real Helm, real kustomize and `trainwright install` make the same objects of the same choices."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.binaries import build
from trainwright.installation import composition, values
from trainwright.installation.kustomize import ROOT
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import documents

CHART = ROOT.parent / "charts/trainwright"
NAMESPACE = "kubeflow-system"
CLUSTER = ("--kube-version", "1.36.4", "--api-versions", "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime")
KEEP = "helm.sh/resource-policy"

VALUE_SETS: dict[str, Json] = {
    "defaults": {},
    "one small replica": {"replicas": 1, "podDisruptionBudget": {"enabled": False}, "resources": {"limits": None}},
    "every switch": {switch.split(".")[0]: {"enabled": True} for switch in values.COMPONENTS}
    | {"runtimes": {"enabled": True}},
    "crds by somebody else": {"crds": {"enabled": False}, "userRoles": {"enabled": False}},
    "crds that go": {"crds": {"keep": False}, "runtimes": {"enabled": True}},
    "cert-manager and Prometheus": {
        "certManager": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "grafanaDashboard": {"enabled": True, "labels": {"grafana": "yes"}},
    },
    "an image of one's own": {
        "image": {"repository": "example.com/ours", "tag": "v9@sha256:" + "0" * 64, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "extraArgs": ["--take-over", "--feature-gates=AllAlpha=true"],
    },
    "placement": {
        "nodeSelector": {"role": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "topologySpreadConstraints": [],
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"example.com/a": "true", "example.com/b": "{{ not a template }}"},
        "serviceAccount": {"annotations": {"example.com/role": "training"}},
    },
    "a configuration": {
        "configuration": {
            "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 32}},
            "leaderElection": {"leaderElect": False},
            "runtimeGuard": {"enable": False},
            "clientConnection": {"qps": 20, "burst": 40},
            "plugins": {"directory": "/etc/trainwright/plugins"},
        },
        "plugins": {"enabled": True},
    },
    "a priority class and queues": {
        "priorityClass": {"enabled": True},
        "priorityClassName": "loses",
        "kueue": {"enabled": True},
        "kubernetesGang": {"enabled": True},
        "progress": {"enabled": True},
        "networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
        "admissionPolicy": {"enabled": True},
    },
}


@pytest.fixture(scope="session")
def helm() -> Path:
    return build.program("helm")


def run(*words: str | Path, code: int = 0) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


def template(helm: Path, given: Json, directory: Path, namespace: str = NAMESPACE) -> dict[tuple[str, str], Json]:
    file = directory / "values.yaml"
    file.write_text(json.dumps(given))
    words = ("--namespace", namespace, *CLUSTER, "--values", file)
    return by_name(documents(run(helm, "template", "trainwright", CHART, *words)))


def by_name(items: Any) -> dict[tuple[str, str], Json]:
    """Objects by kind and name, as they are compared: the configuration decoded, and without Helm's own annotation."""
    found: dict[tuple[str, str], Json] = {}
    for item in items:
        metadata = item["metadata"]
        if "helm.sh/hook" in (metadata.get("annotations") or {}):
            continue  # what Helm runs after an uninstallation; `trainwright uninstall` does it itself
        (metadata.get("annotations") or {}).pop(KEEP, None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
        if composition.CONFIG_FILE in (item.get("data") or {}):
            item["data"] = yaml.safe_load(item["data"][composition.CONFIG_FILE])
        name = item["kind"], metadata["name"]
        assert name not in found, f"{name} is there twice"
        found[name] = item
    return found


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_makes_what_we_make_of_the_same_values(helm: Path, tmp_path: Path, name: str) -> None:
    given = VALUE_SETS[name]
    ours = by_name(composition.objects(values.complete(given), "training"))
    assert template(helm, given, tmp_path, namespace="training") == ours


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_lints_it(helm: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(VALUE_SETS[name]))
    run(helm, "lint", "--strict", CHART, "--kube-version", "1.36.4", "--values", file)


@pytest.mark.parametrize("switch", [*values.COMPONENTS, ""])
def test_kustomize_makes_the_same_objects(helm: Path, tmp_path: Path, switch: str) -> None:
    """The overlay `manager` with one component, and the chart with that switch."""
    folder = tmp_path / "kustomization"
    folder.mkdir()
    components = [values.COMPONENTS[switch]] if switch else []
    relative = Path(*[".."] * len(folder.resolve().parts[1:])) / ROOT.relative_to("/")
    kustomization = {
        "resources": [str(relative / "overlays/manager")],
        "components": [str(relative / "components" / name) for name in components],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
    built = by_name(documents(run(build.program("kubectl"), "kustomize", folder)))
    assert built.pop(("Namespace", NAMESPACE))
    given = {switch.split(".")[0]: {"enabled": True}} if switch else {}
    assert template(helm, given, tmp_path) == built


def test_helm_refuses_wrong_values_by_the_schema(helm: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("replicas: three\nkueue: {enabeld: true}\nconfiguration: {webhook: {prot: 1}}\n")
    said = run(helm, "template", "x", CHART, "--kube-version", "1.36.4", "--values", file, code=1)
    for words in ("replicas", "enabeld", "prot"):
        assert words in said


def test_crds_and_runtimes_are_marked_to_stay(helm: Path, tmp_path: Path) -> None:
    words = ("template", "x", CHART, *CLUSTER, "--set", "runtimes.enabled=true")
    kept = {
        (item["kind"], item["metadata"]["name"])
        for item in documents(run(helm, *words))
        if (item["metadata"].get("annotations") or {}).get(KEEP) == "keep"
    }
    assert {kind for kind, _ in kept} == {"CustomResourceDefinition", "ClusterTrainingRuntime"}
    assert len(kept) == 3 + len(list((ROOT / "runtimes").glob("*.yaml")))
    assert KEEP not in run(helm, *words, "--set", "crds.keep=false")


def test_runtimes_wait_for_the_crds_of_a_first_installation(helm: Path) -> None:
    """Helm looks up every kind before it creates anything, so one release cannot bring a CRD and an object of it."""
    said = run(helm, "template", "x", CHART, *CLUSTER[:2], "--set", "runtimes.enabled=true")
    assert not [item for item in documents(said) if item["kind"] == "ClusterTrainingRuntime"]


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    rules = yaml.safe_load((ROOT / "components/prometheus-rule/prometheus_rule.yaml").read_text())["spec"]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    said = run("promtool", "check", "rules", file)
    assert f"SUCCESS: {len(rules['groups'][0]['rules'])} rules found" in said
