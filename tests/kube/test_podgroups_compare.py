"""Kubernetes' own PodGroups on our server and on kube-apiserver with its gates on: same objects, refusals and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jobsetadmission.local import served
from kube.conftest import BuiltPrograms
from trainwright.embedded.workloads.features import DEFAULTS
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.rest import Rest

GATES = ("GenericWorkload", "GangScheduling")
PATH = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 2}}}
REFERENCE: Json = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
BAD_REFERENCE: Json = {"workload": {"workloadName": "W!", "podGroupTemplateName": ""}}
SPECS: dict[str, Any] = {
    "gang": GANG,
    "basic": {"schedulingPolicy": {"basic": {}}},
    "both": {"schedulingPolicy": {"gang": {"minCount": 2}, "basic": {}}},
    "neither": {"schedulingPolicy": {}},
    "nothing": {},
    "no-count": {"schedulingPolicy": {"gang": {}}},
    "zero": {"schedulingPolicy": {"gang": {"minCount": 0}}},
    "negative": {"schedulingPolicy": {"gang": {"minCount": -1}}},
    "text": {"schedulingPolicy": {"gang": {"minCount": "two"}}},
    "null": {"schedulingPolicy": {"gang": None}},
    "referring": {**GANG, "podGroupTemplateRef": REFERENCE},
    "referring-to-nothing": {**GANG, "podGroupTemplateRef": {}},
    "referring-badly": {
        **GANG,
        "podGroupTemplateRef": {"workload": {"workloadName": "W!", "podGroupTemplateName": ""}},
    },
    "gated": {**GANG, "priority": 5, "disruptionMode": "PodGroup", "priorityClassName": "x"},
    "constrained": {**GANG, "schedulingConstraints": {"topology": [{"key": "zone"}]}},
    "unknown-field": {**GANG, "color": "blue"},
    "Bad_Name": GANG,
}
CHANGES: dict[str, Json] = {
    "another-count": {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
    "another-policy": {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}},
    "a-reference": {"spec": {"podGroupTemplateRef": REFERENCE}},
    "a-label": {"metadata": {"labels": {"a": "b"}}},
    "a-status": {"status": {"conditions": []}},
}
CONDITION = {
    "type": "PodGroupScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def both(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rest, Rest]]:
    directory = tmp_path_factory.mktemp("podgroups")
    real = RealControlPlane(
        programs,
        directory / "real",
        with_parts=(),
        with_audit_log=False,
        feature_gates=GATES,
        served=("scheduling.k8s.io/v1alpha2",),
    )
    with served(directory / "state", DEFAULTS), real as plane:
        yield Rest.from_kubeconfig(directory / "state" / "kubeconfig", directory / "scratch"), plane.admin


def answer(rest: Rest, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
    """The status, and what a user sees of the answer."""
    code, text = rest.raw(method, path, body, **options)
    found = json.loads(text)
    if code >= 400:
        return code, found.get("message")
    metadata = {key: found["metadata"].get(key) for key in ("name", "labels", "generation")}
    spec = {key: value for key, value in found["spec"].items() if value is not None}
    return code, (metadata, spec, found.get("status"))


@pytest.mark.parametrize("name", list(SPECS))
def test_it_is_taken_or_refused_alike(both: tuple[Rest, Rest], name: str) -> None:
    body: Json = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    body |= {"metadata": {"name": name}, "spec": SPECS[name]}
    ours, theirs = (answer(rest, "POST", f"{PATH}?fieldValidation=Strict", body) for rest in both)
    assert ours == theirs


@pytest.mark.parametrize("name", list(CHANGES))
def test_it_is_changed_or_not_alike(both: tuple[Rest, Rest], name: str) -> None:
    for rest in both:
        rest.create(PATH, {"metadata": {"name": f"changed-{name}"}, "spec": GANG})
    merge = "application/merge-patch+json"
    ours, theirs = (answer(rest, "PATCH", f"{PATH}/changed-{name}", CHANGES[name], content_type=merge) for rest in both)
    assert ours == theirs


def test_its_rows_say_the_same(both: tuple[Rest, Rest]) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    rows = []
    for rest in both:
        rest.create(PATH, {"metadata": {"name": "row"}, "spec": GANG})
        seen = []
        for status in ("True", "False"):
            told = {"status": {"conditions": [{**CONDITION, "status": status}]}}
            rest.patch(f"{PATH}/row/status", told)
            _, text = rest.raw("GET", f"{PATH}/row", accept=table)
            found = json.loads(text)
            seen.append(found["rows"][0]["cells"][:-1])
        rows.append((seen, [column["name"] for column in found["columnDefinitions"]]))
    assert rows[0] == rows[1]


def test_discovery_shows_it_alike(both: tuple[Rest, Rest]) -> None:
    def resources(rest: Rest) -> Any:
        found = rest.request("GET", "/apis/scheduling.k8s.io/v1alpha2")["resources"]
        hidden = ("storageVersionHash",)
        return [
            {key: value for key, value in each.items() if key not in hidden}
            for each in found
            if each["name"].startswith("podgroups")
        ]

    assert resources(both[0]) == resources(both[1])
    groups = [rest.request("GET", "/apis/scheduling.k8s.io")["versions"] for rest in both]
    assert groups[0] == groups[1]
