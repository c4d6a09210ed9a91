"""Random runtimes and TrainJobs with every kind of field build the objects and errors that the reference made of them.

Each line of `recorded.jsonl` holds both objects as an API server defaults them, `objects` (the objects that Kubeflow
Trainer v2.3 applied, in the normal form of the conformance check), `faults` (the errors of its webhook, sorted) and
`runtimeFault` (its error for the runtime). Inputs where we differ by decision are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import check
from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import trainjob_from
from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.validation import validate_runtime, validate_trainjob
from trainwright.plugins import load
from trainwright.schema.errors import aggregate

HERE = Path(__file__).parent
ROWS = [json.loads(line) for line in (HERE / "recorded.jsonl").read_text().splitlines()]
FRAMEWORK = load(discovered={})
OBSERVED = Observed(priority_classes=frozenset({"hp"}))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["seed"]))
def test_builds_what_the_reference_built(row: Any) -> None:
    plan = build(trainjob_from(row["trainjob"]), runtime_from(row["runtime"]), OBSERVED, FRAMEWORK, MaskedKeys())
    made = check.keyed([intention.object for intention in plan.objects])
    recorded = check.keyed(row["objects"].values())
    assert (check.sort_env(made) if check.env_order_is_chance([row["runtime"]]) else made) == recorded


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["seed"]))
def test_says_what_the_reference_said(row: Any) -> None:
    job, runtime = trainjob_from(row["trainjob"]), runtime_from(row["runtime"])
    faults = {str(error) for error in validate_trainjob(job, runtime, None, OBSERVED, FRAMEWORK).errors}
    assert sorted(faults) == row["faults"]
    verdict = validate_runtime(runtime)
    assert (aggregate(verdict.errors) if verdict.errors else "") == row["runtimeFault"]
