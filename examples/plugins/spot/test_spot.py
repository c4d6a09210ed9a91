"""The example's own test: it runs inside a real build, with the built-in plugins around it."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.validation import Verdict, validate_trainjob
from trainwright.plugins import load
from trainwright_spot import LABEL, Spot

POD = {"containers": [{"name": "node", "image": "i"}]}
JOBS = [{"name": "node", "template": {"spec": {"template": {"spec": POD}}}}]
RUNTIME = runtime_from(
    {"metadata": {"name": "r"}, "spec": {"mlPolicy": {}, "template": {"spec": {"replicatedJobs": JOBS}}}}
)
FRAMEWORK = load(discovered={"spot": Spot})


def job(label: str | None, **spec: Any) -> TrainJob:
    labels = {} if label is None else {LABEL: label}
    return trainjob_from({"metadata": {"name": "tj", "labels": labels}, "spec": {"runtimeRef": {"name": "r"}, **spec}})


def pods(of: TrainJob) -> dict[str, Any]:
    (apply,) = build(of, RUNTIME, Observed(), FRAMEWORK, MaskedKeys()).objects
    found: dict[str, Any] = apply.object["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return found


def verdict(of: TrainJob) -> Verdict:
    return validate_trainjob(of, RUNTIME, None, Observed(), FRAMEWORK)


def test_a_labelled_job_goes_to_spot_machines() -> None:
    found = pods(job("true"))
    assert found["nodeSelector"] == {LABEL: "true"}
    assert found["tolerations"] == [{"key": LABEL, "operator": "Exists", "effect": "NoSchedule"}]
    assert found["containers"][0]["env"] == [{"name": "SPOT_GRACE_SECONDS", "value": "30"}]


@pytest.mark.parametrize("label", [None, "false"])
def test_any_other_job_is_left_alone(label: str | None) -> None:
    assert pods(job(label)) == POD


def test_a_label_it_cannot_read_is_refused() -> None:
    (error,) = verdict(job("maybe")).errors
    assert str(error) == f'metadata.labels[{LABEL}]: Invalid value: "maybe": must be true or false'


def test_a_deadline_comes_with_a_warning() -> None:
    assert "may be interrupted" in verdict(job("true", activeDeadlineSeconds=60)).warnings[0]
