"""Recorded answers of kube-apiserver 1.36.4: same verdict, same causes, same defaults, for each object.

`recorded.jsonl` holds one conversation per line: the object sent, on update the object before, and the causes of the
refusal or the stored spec.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.api import schema_for
from trainwright.schema.custom_resource import check_create, check_status_update, check_update
from trainwright.schema.structural import StructuralSchema

HERE = Path(__file__).parent
RECORDED = [json.loads(line) for line in (HERE / "recorded.jsonl").read_text().splitlines()]
WIDGET = StructuralSchema.compile(
    yaml.safe_load((HERE / "widget.yaml").read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
)


def schema_of(kind: str) -> StructuralSchema:
    return WIDGET if kind == "Widget" else schema_for(kind)


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_answer_is_the_recorded_one(case: dict[str, Any]) -> None:
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
