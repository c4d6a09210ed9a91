"""What our manager owns in the stored children equals what Kubeflow Trainer applied, for every recorded case.

The objects go through a real API server and JobSet's own webhooks. Our fields are read back from `managedFields`, so
that defaults and other controllers' fields do not count, and a field that the server dropped is noticed.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conformance.check import env_order_is_chance, is_snapshot
from kube.equality import keyed
from kube.installation import Installation
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.ownership import owned_fields

CASES = Path(__file__).resolve().parents[1] / "conformance" / "cases"
NAMES = sorted(folder.name for folder in CASES.iterdir())
MANAGER = "trainer"
SETTLE_SECONDS = 15.0

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
CLUSTER_SCOPED = {
    "ClusterTrainingRuntime": f"{TRAINER}/clustertrainingruntimes",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
}
NAMESPACED = {
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "trainjobs",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "trainingruntimes",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "jobsets",
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): "podgroups",
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): "podgroups",
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "Secret"): "secrets",
    ("v1", "LimitRange"): "limitranges",
}


def collection(item: Json, namespace: str) -> str:
    if item["kind"] in CLUSTER_SCOPED:
        return CLUSTER_SCOPED[item["kind"]]
    version = item["apiVersion"]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    return f"{root}/namespaces/{namespace}/{NAMESPACED[version, item['kind']]}"


def read(path: Path) -> list[Json]:
    return list(documents(path.read_text()))


@pytest.fixture(scope="module")
def operator(plane: RealControlPlane, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The operator as shipped, with or without progress reporting, as the case was recorded."""
    with Installation(plane, overlay="progress" if request.param else "manager") as installed:
        yield installed


class Case:
    """A recorded case, played in a namespace of its own."""

    def __init__(self, plane: RealControlPlane, name: str) -> None:
        self.plane = plane
        self.folder = CASES / name
        self.input = read(self.folder / "input.yaml")
        self.namespace = plane.namespace("golden")

    def create(self) -> None:
        for item in self.input:
            path = collection(item, self.namespace)
            if item["kind"] in CLUSTER_SCOPED:
                self.plane.admin.until(f"{path}/{item['metadata']['name']}", lambda found: found is None, what="gone")
            self.plane.admin.create(path, item)

    def patch(self, step: Json) -> None:
        target = {"apiVersion": step["target"]["apiVersion"], "kind": step["target"]["kind"]}
        self.plane.admin.patch(f"{collection(target, self.namespace)}/{step['target']['name']}", step["patch"])

    def clean_up(self) -> None:
        for item in reversed(self.input):
            if item["kind"] == "TrainJob" or item["kind"] in CLUSTER_SCOPED:
                path = f"{collection(item, self.namespace)}/{item['metadata']['name']}"
                self.plane.admin.delete_if_there(path)
                self.plane.admin.until(path, lambda found: found is None, what="gone")
        self.plane.admin.delete_if_there(f"/api/v1/namespaces/{self.namespace}")

    def assert_children(self, expected: list[Json]) -> None:
        """Wait until we own exactly what was recorded; show the difference if that does not happen."""
        ordered = not env_order_is_chance(self.input)
        wanted = keyed(expected, namespace="golden", ordered_env=ordered)
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            stored = (self.stored(item) for item in expected if not is_snapshot(item))
            found = keyed((item for item in stored if item), namespace=self.namespace, ordered_env=ordered)
            if found == wanted:
                return
            if time.monotonic() > end:
                raise AssertionError(difference(wanted, found))
            time.sleep(0.1)

    def stored(self, expected: Json) -> Json | None:
        item = self.plane.admin.find(f"{collection(expected, self.namespace)}/{expected['metadata']['name']}")
        if item is None:
            return None
        applied = any(entry["operation"] == "Apply" for entry in item["metadata"].get("managedFields", []))
        # A create with our field manager is an Update entry; beside an Apply entry, Update is what admission added.
        return owned_fields(item, MANAGER, "Apply" if applied else None)


def difference(wanted: dict[str, Json], found: dict[str, Json]) -> str:
    a, b = (yaml.safe_dump(side, sort_keys=True).splitlines() for side in (wanted, found))
    return "\n".join(difflib.unified_diff(a, b, "recorded", "owned by us", n=3, lineterm=""))


@pytest.mark.parametrize(
    ("operator", "name"),
    [pytest.param((CASES / name / "features").exists(), name, id=name) for name in NAMES],
    indirect=["operator"],
)
def test_children_are_as_recorded(plane: RealControlPlane, operator: Installation, name: str) -> None:
    case = Case(plane, name)
    try:
        case.create()
        case.assert_children(read(case.folder / "expected.yaml"))
        for step in sorted(case.folder.glob("step-*.yaml")):
            [change] = read(step)
            case.patch(change)
            case.assert_children(read(case.folder / step.name.replace("step", "expected")))
    finally:
        case.clean_up()
