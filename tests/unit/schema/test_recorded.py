"""Recorded answers of Kubernetes 1.36.4: same verdict, same causes, same defaults, same merges, for each object.

`recorded.jsonl` holds one conversation per line: the object sent, on update the object before, and the causes of the
refusal or the stored spec.

`recorded_fuzz.jsonl` holds random objects and updates judged by the API server's own library
(k8s.io/apiextensions-apiserver 0.36.4), `recorded_merges.jsonl` random strategic merge patches of pods applied by
k8s.io/apimachinery 0.36.4.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.api.schema import schema_for
from trainwright.schema import kubernetes
from trainwright.schema.custom_resource import check_create, check_status_update, check_update
from trainwright.schema.strategic import StrategicMergeError, strategic_merge
from trainwright.schema.structural import StructuralSchema

HERE = Path(__file__).parent
RECORDED = [json.loads(line) for line in (HERE / "recorded.jsonl").read_text().splitlines()]
WIDGET = StructuralSchema.compile(
    yaml.safe_load((HERE / "widget.yaml").read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
)


FUZZED = [json.loads(line) for line in (HERE / "recorded_fuzz.jsonl").read_text().splitlines()]
MERGES = [json.loads(line) for line in (HERE / "recorded_merges.jsonl").read_text().splitlines()]


def schema_of(kind: str) -> StructuralSchema:
    return WIDGET if kind == "Widget" else schema_for(kind)


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_a_request_gets_the_recorded_answer(case: dict[str, Any]) -> None:
    schema = schema_of(case["kind"])
    value = json.loads(json.dumps(case["object"]))
    unknown = schema.prune(value)
    if "unknown" in case:
        assert unknown == case["unknown"]
        return
    schema.default(value)
    match case["verb"]:
        case "create":
            errors = check_create(schema, value)
        case "status":
            errors = check_status_update(schema, value, case["old"])
        case _:
            errors = check_update(schema, value, case["old"])
    assert sorted([error.field or "<nil>", error.reason, error.body] for error in errors) == case["causes"]
    if "spec" in case:
        assert value["spec"] == case["spec"]


@pytest.mark.parametrize("case", FUZZED, ids=range(len(FUZZED)))
def test_a_random_object_has_the_recorded_errors(case: dict[str, Any]) -> None:
    schema = schema_of(case["kind"])
    value = json.loads(json.dumps(case["object"]))
    assert schema.prune(value) == case["unknown"]
    schema.default(value)
    errors = check_update(schema, value, case["old"]) if "old" in case else check_create(schema, value)
    assert sorted([error.field or "<nil>", error.reason, error.body] for error in errors) == case["causes"]
    assert value == case["after"]


@pytest.mark.parametrize("case", MERGES, ids=range(len(MERGES)))
def test_a_random_strategic_merge_has_the_recorded_outcome(case: dict[str, Any]) -> None:
    schema = kubernetes.merge_schema("v1", "Pod")
    if case.get("refused"):
        with pytest.raises(StrategicMergeError):
            strategic_merge(case["original"], case["patch"], schema)
    else:
        assert _without_nulls(strategic_merge(case["original"], case["patch"], schema)) == _without_nulls(case["value"])


def _without_nulls(value: Any) -> Any:
    """A null in a new list item means nothing to the API server, which reads it into a typed object."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
