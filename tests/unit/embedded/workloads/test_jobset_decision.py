"""What a JobSet does next, decided from its Jobs alone, in JobSet v0.12's words."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.jobset.decision import Decision
from trainwright.embedded.workloads.jobset.decision import decide as _decide
from trainwright.embedded.workloads.jobset.failure_policy import GateOff
from trainwright.embedded.workloads.objects import ApiObject
from unit.embedded.workloads.making import NOW, TEMPLATE, child, conditions, ended, job_set, replicated


def decide(of: ApiObject, jobs: list[ApiObject], now: float = NOW) -> Decision:
    return _decide(of, jobs, has_service=True, now=now)


def names(jobs: list[dict[str, Any]]) -> list[str]:
    return [job["metadata"]["name"] for job in jobs]


def with_status(of: ApiObject, status: dict[str, Any]) -> ApiObject:
    return ApiObject(of.metadata, of.spec, status)


def test_a_new_jobset_creates_its_service_and_all_jobs() -> None:
    of = job_set(replicated("launcher"), replicated("node", 2))
    decision = _decide(of, [], has_service=False, now=NOW)
    assert names(decision.create) == ["js-launcher-0", "js-node-0", "js-node-1"]
    assert decision.service is not None
    assert decision.service["metadata"]["name"] == "js"
    assert decision.service["spec"] == {
        "clusterIP": "None",
        "selector": {"jobset.sigs.k8s.io/jobset-name": "js"},
        "publishNotReadyAddresses": True,
    }
    assert [status["name"] for status in decision.status["replicatedJobsStatus"]] == ["node", "launcher"]


def test_a_child_job_carries_jobsets_labels_and_pods_find_each_other() -> None:
    of = job_set(replicated("launcher"), replicated("node", 2))
    job = decide(of, []).create[-1]
    expected = {
        "jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/jobset-uid": "js-uid",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
        "jobset.sigs.k8s.io/global-replicas": "3",
        "jobset.sigs.k8s.io/job-index": "1",
        "jobset.sigs.k8s.io/job-key": "7e4dd44019b7fe0233d07ca39fa5ab1febf5a1e3",
        "jobset.sigs.k8s.io/job-global-index": "2",
        "jobset.sigs.k8s.io/group-name": "default",
        "jobset.sigs.k8s.io/group-replicas": "3",
        "jobset.sigs.k8s.io/job-group-index": "2",
    }
    assert job["metadata"]["labels"] == expected
    pod = job["spec"]["template"]
    assert pod["metadata"]["labels"] == pod["metadata"]["annotations"] == job["metadata"]["labels"]
    assert pod["spec"]["subdomain"] == "js"
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["suspend"] is False


def test_a_coordinator_is_named_by_its_endpoint() -> None:
    of = job_set(
        replicated("node", 2), coordinator={"replicatedJob": "node", "jobIndex": 1}, network={"subdomain": "net"}
    )
    (job, _) = decide(of, []).create
    assert job["metadata"]["labels"]["jobset.sigs.k8s.io/coordinator"] == "js-node-1-0.net"


def test_all_jobs_complete_completes_the_jobset() -> None:
    of = job_set(replicated("node", 2))
    done = [child(of, index=index, **ended("Complete")) for index in range(2)]
    status = decide(of, done).status
    assert conditions(status) == {"Completed": ("True", "AllJobsCompleted")}
    assert status["conditions"][0]["message"] == "jobset completed successfully"
    assert status["terminalState"] == "Completed"
    assert status["replicatedJobsStatus"][0]["succeeded"] == 2


def test_one_targeted_job_is_enough_for_operator_any() -> None:
    policy = {"operator": "Any", "targetReplicatedJobs": ["launcher"]}
    of = job_set(replicated("launcher"), replicated("node", 2), successPolicy=policy)
    others = [child(of, "node", index, active=1) for index in range(2)]
    assert "Completed" not in conditions(decide(of, [child(of, "node", 0, **ended("Complete"))]).status)
    decision = decide(of, [child(of, "launcher", 0, **ended("Complete")), *others])
    assert "Completed" in conditions(decision.status)
    later = decide(with_status(of, decision.status), [child(of, "launcher", 0, **ended("Complete")), *others])
    assert later.delete == others, "what still runs of a finished JobSet is ended"


def test_a_failed_job_fails_the_jobset_that_has_no_failure_policy() -> None:
    of = job_set(replicated("node", 2))
    failed = [child(of, index=0, **ended("Failed", at=NOW - 5)), child(of, index=1, **ended("Failed", at=NOW - 9))]
    status = decide(of, failed).status
    assert conditions(status) == {"Failed": ("True", "FailedJobs")}
    assert status["conditions"][0]["message"] == (
        "jobset failed due to one or more job failures (first failed job: js-node-1)"
    )
    assert status["terminalState"] == "Failed"


def test_restarts_make_all_jobs_anew_until_the_limit() -> None:
    of = job_set(replicated("node", 2), failurePolicy={"maxRestarts": 1})
    jobs = [child(of, index=0, **ended("Failed")), child(of, index=1, active=1)]
    first = decide(of, jobs)
    assert (first.status["restarts"], first.status["restartsCountTowardsMax"]) == (1, 1)
    assert conditions(first.status) == {"RestartingJobSet": ("True", "DefaultFailurePolicy")}

    restarted = with_status(of, first.status)
    second = decide(restarted, jobs)
    assert second.delete == jobs
    assert second.create == [], "a name is free only when its old Job, and its pods, are gone"
    assert names(decide(restarted, []).create) == ["js-node-0", "js-node-1"]
    assert decide(restarted, []).create[0]["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] == "1"

    failed_again = [child(restarted, index=0, attempt=1, **ended("Failed"))]
    last = decide(restarted, failed_again).status
    assert conditions(last)["Failed"] == ("True", "ReachedMaxRestarts")
    assert conditions(last)["RestartingJobSet"] == ("False", "JobSetFailed")


def test_a_job_already_on_its_way_out_is_not_deleted_again() -> None:
    of = with_status(job_set(), {"restarts": 1})
    assert decide(of, [child(of, deleting=True)]).delete == []


def test_rules_are_tried_in_order_and_name_the_condition() -> None:
    rules = [
        {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        {"action": "RestartJobSetAndIgnoreMaxRestarts", "targetReplicatedJobs": ["node"], "name": "lost-node"},
    ]
    of = job_set(replicated("launcher"), replicated("node"), failurePolicy={"maxRestarts": 0, "rules": rules})
    fatal = decide(of, [child(of, "node", **ended("Failed", reason="PodFailurePolicy"))]).status
    assert conditions(fatal) == {"Failed": ("True", "FailJobSetFailurePolicyAction")}
    again = decide(of, [child(of, "node", **ended("Failed"))]).status
    assert conditions(again) == {"RestartingJobSet": ("True", "FailurePolicy_lost-node")}
    assert "restartsCountTowardsMax" not in again
    neither = decide(of, [child(of, "launcher", **ended("Failed"))]).status
    assert conditions(neither) == {"Failed": ("True", "ReachedMaxRestarts")}


def test_message_patterns_choose_a_rule() -> None:
    rules = [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["exit code 4[0-9]"]}]
    of = job_set(failurePolicy={"maxRestarts": 3, "rules": rules})
    assert "Failed" in conditions(decide(of, [child(of, **ended("Failed", message="failed with exit code 42"))]).status)
    assert "RestartingJobSet" in conditions(decide(of, [child(of, **ended("Failed", message="exit code 1"))]).status)


def test_a_dependency_holds_back_creation_until_it_is_complete() -> None:
    waiting = replicated("node", dependsOn=[{"name": "initializer", "status": "Complete"}])
    of = job_set(replicated("initializer"), waiting)
    assert names(decide(of, []).create) == ["js-initializer-0"]
    assert decide(of, [child(of, "initializer", active=1, ready=1)]).create == []
    assert names(decide(of, [child(of, "initializer", **ended("Complete"))]).create) == ["js-node-0"]


def test_a_dependency_on_ready_needs_all_pods_ready() -> None:
    waiting = replicated("launcher", dependsOn=[{"name": "node", "status": "Ready"}])
    of = job_set(replicated("node", 2), waiting)
    half = [child(of, "node", 0, active=1, ready=1), child(of, "node", 1, active=1, ready=0)]
    assert decide(of, half).create == []
    ready = [child(of, "node", index, active=1, ready=1) for index in range(2)]
    assert names(decide(of, ready).create) == ["js-launcher-0"]


def test_in_order_start_up_goes_one_replicated_job_at_a_time() -> None:
    of = job_set(replicated("first"), replicated("second"), startupPolicy={"startupPolicyOrder": "InOrder"})
    begin = decide(of, [])
    assert names(begin.create) == ["js-first-0"]
    assert conditions(begin.status) == {"StartupPolicyInProgress": ("True", "InOrderStartupPolicyInProgress")}
    going = with_status(of, begin.status)
    started = [child(of, "first", ready=1, active=1)]
    assert names(decide(going, started).create) == ["js-second-0"]
    over = decide(going, [*started, child(of, "second", ready=1, active=1)]).status
    assert conditions(over) == {
        "StartupPolicyInProgress": ("False", "InOrderStartupPolicyInProgress"),
        "StartupPolicyCompleted": ("True", "InOrderStartupPolicyCompleted"),
    }


def test_a_suspended_jobset_creates_suspended_jobs_and_suspends_running_ones() -> None:
    of = job_set(suspend=True)
    created = decide(of, [])
    assert created.create[0]["spec"]["suspend"] is True
    assert conditions(created.status) == {"Suspended": ("True", "SuspendedJobs")}
    running = child(job_set(), active=1)
    assert decide(of, [running]).suspend == [running]


def test_resuming_takes_over_what_changed_while_suspended() -> None:
    suspended = child(job_set(suspend=True))
    changed = replicated()
    changed["template"] = {
        "spec": {
            "template": {
                "metadata": {"labels": {"queue": "fast"}},
                "spec": {**changed["template"]["spec"]["template"]["spec"], "nodeSelector": {"zone": "a"}},
            }
        }
    }
    of = with_status(job_set(changed), decide(job_set(suspend=True), []).status)
    decision = decide(of, [suspended])
    ((job, patch),) = decision.resume
    assert job is suspended
    assert patch["spec"] == {
        "suspend": False,
        "template": {"metadata": {"labels": {"queue": "fast"}}, "spec": {"nodeSelector": {"zone": "a"}}},
    }
    assert conditions(decision.status) == {"Suspended": ("False", "ResumeJobs")}


def test_a_jobset_that_was_never_suspended_has_no_such_condition() -> None:
    of = job_set()
    assert "conditions" not in decide(of, [child(of, active=1, ready=1)]).status


def test_a_finished_jobset_is_deleted_when_its_time_to_live_is_over() -> None:
    finished = {"conditions": [{**ended("Completed")["conditions"][0], "lastTransitionTime": rfc3339(NOW - 30)}]}
    of = job_set(ttlSecondsAfterFinished=100, status=finished)
    assert (decide(of, []).delete_self, decide(of, []).after) == (False, 70.0)
    assert decide(of, [], now=NOW + 70).delete_self


def test_nothing_changes_in_a_converged_jobset() -> None:
    of = job_set(replicated("node", 2))
    jobs = [child(of, index=index, active=1, ready=1) for index in range(2)]
    settled = with_status(of, decide(of, jobs).status)
    decision = decide(settled, jobs, now=NOW + 500)
    assert decision.status == settled.status
    assert decision == Decision(status=settled.status)


def test_counts_say_ready_active_and_suspended() -> None:
    of = job_set(replicated("node", 3))
    jobs = [
        child(of, index=0, active=1, ready=1),
        child(of, index=1, active=1),
        child(job_set(replicated("node", 3), suspend=True), index=2),
    ]
    (counted,) = decide(of, jobs).status["replicatedJobsStatus"]
    assert counted == {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 2, "suspended": 1}


CLAIM: dict[str, Any] = {"metadata": {"name": "data", "labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}


@pytest.mark.parametrize(("kept", "owners"), [("Delete", 1), ("Retain", 0)])
def test_a_volume_claim_is_made_for_each_template_and_mounted_where_a_container_asks(kept: str, owners: int) -> None:
    mounting = replicated("node")
    mounting["template"] = deepcopy(mounting["template"])
    container = mounting["template"]["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    policies = [{"templates": [CLAIM], "retentionPolicy": {"whenDeleted": kept}}]
    decision = decide(job_set(mounting, replicated("other"), volumeClaimPolicies=policies), [])
    (claim,) = decision.claims
    assert claim["metadata"]["name"] == "data-js"
    assert claim["metadata"]["labels"] == {"a": "b", "jobset.sigs.k8s.io/jobset-name": "js"}
    assert len(claim["metadata"].get("ownerReferences", [])) == owners
    volumes = [job["spec"]["template"]["spec"].get("volumes") for job in decision.create]
    assert volumes == [[{"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}], None]


RESTART_JOB = {"maxRestarts": 1, "rules": [{"name": "r", "action": "RestartJob"}]}
GATES = Features(restart_job=True, elastic_job_set=True)


def test_a_single_job_is_restarted_while_restarts_are_left() -> None:
    of = job_set(replicated("node", 2), failurePolicy=RESTART_JOB)
    jobs = [child(of, index=0), child(of, index=1, **ended("Failed"))]
    decision = _decide(of, jobs, has_service=True, now=NOW, gates=GATES)
    (counted,) = decision.status["replicatedJobsStatus"]
    assert (counted["jobRestarts"], counted["jobRestartsCountTowardsMax"]) == ([0, 1], [0, 1])
    assert decision.status["restarts"] == 0
    again = with_status(of, decision.status)
    marked = [with_attempt(job, "0") for job in jobs]
    decision = _decide(again, marked, has_service=True, now=NOW, gates=GATES)
    assert [job.name for job in decision.delete] == ["js-node-1"]
    decision = _decide(again, marked[:1], has_service=True, now=NOW, gates=GATES)
    assert decision.create[0]["metadata"]["labels"]["jobset.sigs.k8s.io/job-restart-attempt"] == "1"
    last = [marked[0], with_attempt(jobs[1], "1")]
    decision = _decide(again, last, has_service=True, now=NOW, gates=GATES)
    assert conditions(decision.status)["Failed"] == ("True", "ReachedMaxRestarts")


def with_attempt(job: ApiObject, attempt: str) -> ApiObject:
    labels = {**(job.metadata.labels or {}), "jobset.sigs.k8s.io/job-restart-attempt": attempt}
    return ApiObject(msgspec.structs.replace(job.metadata, labels=labels), job.spec, job.status)


def test_a_single_job_is_not_restarted_without_its_gate() -> None:
    of = job_set(failurePolicy=RESTART_JOB)
    with pytest.raises(GateOff, match="feature gate RestartJob is disabled"):
        decide(of, [child(of, **ended("Failed"))])


def test_a_running_job_follows_an_elastic_jobset() -> None:
    template = {"spec": {"parallelism": 2, "completions": 2, "template": TEMPLATE}}
    of = job_set({"name": "node", "replicas": 1, "template": template})
    job = child(of)
    wider = {"spec": {**template["spec"], "parallelism": 4, "completions": 4}}
    scaled = job_set({"name": "node", "replicas": 1, "template": wider})
    assert _decide(scaled, [job], has_service=True, now=NOW).scale == []
    ((_, patch),) = _decide(scaled, [job], has_service=True, now=NOW, gates=GATES).scale
    assert patch["spec"] == {"parallelism": 4, "completions": 4}


def test_a_condition_without_a_time_counts_as_the_first_failure() -> None:
    of = job_set(replicated("node", 2))
    untimed = ended("Failed")
    del untimed["conditions"][0]["lastTransitionTime"]
    decision = decide(of, [child(of, index=0, **ended("Failed")), child(of, index=1, **untimed)])
    assert "first failed job: js-node-1" in decision.status["conditions"][0]["message"]
