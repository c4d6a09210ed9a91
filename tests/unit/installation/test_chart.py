"""The chart and the dashboard in the tree are what `make generate` would write, and values are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import chart
import dashboard
from trainwright.installation import composition, values
from trainwright.installation.values import WrongValue
from trainwright.version import __version__

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts/trainwright"
STALE = "run `make generate` and look at the difference"


def test_the_chart_is_fresh() -> None:
    wanted = chart.files()
    there = {str(path.relative_to(CHART)): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert set(there) == set(wanted), STALE
    assert [path for path in wanted if there[path] != wanted[path]] == [], STALE


def test_the_dashboard_is_fresh() -> None:
    committed = ROOT / "manifests/components/grafana-dashboard/dashboard.yaml"
    assert yaml.safe_load(committed.read_text()) == dashboard.config_map(), STALE


def test_the_manifests_name_this_version_of_the_image() -> None:
    deployment = yaml.safe_load((ROOT / "manifests/base/manager/deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"trainwright/trainwright:{__version__}"


def test_every_component_of_kustomize_is_a_switch_of_the_chart() -> None:
    folders = {path.name for path in (ROOT / "manifests/components").iterdir() if path.is_dir()}
    assert folders == set(values.COMPONENTS.values())


def test_values_reach_the_objects() -> None:
    chosen = values.complete({"replicas": 3, "crds": {"enabled": False}, "configuration": {"webhook": {"port": 9999}}})
    objects = {(item["kind"], item["metadata"]["name"]): item for item in composition.objects(chosen, "training")}
    deployment = objects["Deployment", composition.MANAGER]
    assert deployment["spec"]["replicas"] == 3
    assert deployment["metadata"]["namespace"] == "training"
    assert not [kind for kind, _ in objects if kind == "CustomResourceDefinition"]
    configuration = yaml.safe_load(objects["ConfigMap", composition.CONFIG]["data"][composition.CONFIG_FILE])
    assert configuration["webhook"] == {"port": 9999}
    assert configuration["leaderElection"]["leaderElect"] is True
    assert "kubeflow-system" not in str([item for key, item in objects.items() if key[0] != "ClusterTrainingRuntime"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"replica": 3}, "replica: there is no such value; there is admissionPolicy,"),
        ({"replicas": "three"}, "replicas: 'three' is not of type integer"),
        ({"kueue": {"enabled": "yes"}}, "kueue.enabled: 'yes' is not of type boolean"),
        ({"image": {"pullPolicy": "Sometimes"}}, "image.pullPolicy: 'Sometimes' is none of '', 'Always'"),
        ({"configuration": {"webhook": {"prot": 1}}}, "configuration.webhook.prot: there is no such value; there is"),
        ({"tolerations": [1]}, r"tolerations\[0\]: 1 is not of type object"),
    ],
)
def test_a_wrong_value_is_refused_by_name(given: dict[str, object], words: str) -> None:
    with pytest.raises(WrongValue, match=words):
        values.complete(given)


def test_null_takes_a_value_away_as_in_helm() -> None:
    assert "cpu" not in values.complete({"resources": {"requests": {"cpu": None}}})["resources"]["requests"]


def test_settings_are_read_as_yaml_and_go_over_files(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("replicas: 5\nkueue: {enabled: true}\n")
    assert values.read([file], ["replicas=3", "image.tag=v1"]) == {
        "replicas": 3,
        "kueue": {"enabled": True},
        "image": {"tag": "v1"},
    }
    with pytest.raises(WrongValue, match="--set replicas: write NAME=VALUE"):
        values.read([], ["replicas"])
