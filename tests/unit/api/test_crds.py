"""The CRDs in manifests/ are what the types say, and the schemas we load are theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.api import crds
from trainwright.api.schema import schema_for
from trainwright.schema.rules import check_rules_compile
from trainwright.schema.structural import StructuralSchema

ROOT = Path(__file__).parents[3]
CRDS = ROOT / "manifests/crds"
STALE = "run `make generate` and look at the difference"


def read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe


@pytest.fixture(scope="module")
def jobset() -> Any:
    return read(CRDS / "third-party/jobsets.yaml")


@pytest.fixture(scope="module")
def built(jobset: Any) -> dict[str, Any]:
    return {crd["spec"]["names"]["plural"]: crd for crd in crds.build(jobset)}


@pytest.mark.parametrize("plural", ["trainjobs", "trainingruntimes", "clustertrainingruntimes"])
def test_crd_is_fresh(built: dict[str, Any], plural: str) -> None:
    assert read(CRDS / f"trainer.kubeflow.org_{plural}.yaml") == built[plural], STALE


@pytest.mark.parametrize("name", ["trainjob", "trainingruntime", "jobset"])
def test_loaded_schema_is_fresh(built: dict[str, Any], jobset: Any, name: str) -> None:
    source = jobset if name == "jobset" else built[f"{name}s"]
    loaded = json.loads((ROOT / f"src/trainwright/api/schemas/{name}.json").read_text())
    assert loaded == crds.bare_schema(source), STALE


@pytest.mark.parametrize("path", sorted(CRDS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_rule_compiles(path: Path) -> None:
    for version in read(path)["spec"]["versions"]:
        schema = StructuralSchema.compile(version["schema"]["openAPIV3Schema"])
        assert check_rules_compile(schema) == []


@pytest.mark.parametrize("path", sorted((CRDS / "third-party").glob("*.yaml")), ids=lambda path: path.stem)
def test_third_party_crds_carry_no_prose(path: Path) -> None:
    crd = read(path)
    assert crds.without_descriptions(crd["spec"]) == crd["spec"]


def test_fields_a_user_writes_are_explained(built: dict[str, Any]) -> None:
    spec = built["trainjobs"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["trainer"]["properties"]["numNodes"]["description"] == "Number of nodes."
    assert all("description" in field for field in spec["properties"].values())


def test_runtimes_share_one_schema() -> None:
    assert schema_for("TrainingRuntime") is schema_for("ClusterTrainingRuntime")
