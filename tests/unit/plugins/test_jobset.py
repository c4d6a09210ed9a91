"""The JobSet plugin: the JobSet that is built, and the one that is sent for a stored one."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOB_SETS
from trainwright.pipeline import Observed, Workload, WorkloadStatus
from trainwright.schema.jsonobject import Json
from unit.pipeline.objects import objects, plan, runtime, trainjob

CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
STORED_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    "status": {},
}
RETENTION = {"whenDeleted": "Delete"}


def resumed(stored: Json, **template: Any) -> Json:
    """The spec that is sent for a suspended JobSet, which is stored with `stored` in its spec."""
    workload = Workload(
        JOB_SETS, ObjectMeta(name="tj"), "JobSet", WorkloadStatus(is_suspended=True), stored={"spec": stored}
    )
    made = objects(plan(trainjob(), runtime(**template), Observed(workload=workload)))
    spec: Json = made["JobSet/tj"]["spec"]
    return spec


def test_claims_are_sent_as_jobset_stored_them() -> None:
    stored = [{"templates": [STORED_CLAIM], "retentionPolicy": RETENTION}]
    sent = resumed({"volumeClaimPolicies": stored}, volumeClaimPolicies=[{"templates": [CLAIM]}])
    assert sent["volumeClaimPolicies"] == stored


def test_names_that_jobset_gave_to_rules_are_sent_back() -> None:
    stored = {"maxRestarts": 1, "rules": [{"action": "FailJobSet", "name": "failurePolicyRule0"}]}
    sent = resumed({"failurePolicy": stored}, failurePolicy={"maxRestarts": 1, "rules": [{"action": "FailJobSet"}]})
    assert sent["failurePolicy"] == stored


@pytest.mark.parametrize(
    "stored",
    [
        [{"templates": [{**STORED_CLAIM, "metadata": {"name": "other"}}], "retentionPolicy": RETENTION}],
        [{"templates": [STORED_CLAIM, STORED_CLAIM], "retentionPolicy": RETENTION}],
        [],
        None,
    ],
)
def test_what_somebody_changed_is_sent_as_it_is_wanted_now(stored: Any) -> None:
    """JobSet refuses it then, and the user reads why; it is not quietly left as it was."""
    sent = resumed({"volumeClaimPolicies": stored}, volumeClaimPolicies=[{"templates": [CLAIM]}])
    wanted = {name: value for name, value in STORED_CLAIM.items() if name != "status"}
    assert sent["volumeClaimPolicies"] == [{"templates": [wanted]}]


def test_what_the_build_does_not_want_is_not_taken_over() -> None:
    assert "network" not in resumed({"network": {"enableDNSHostnames": True}})
