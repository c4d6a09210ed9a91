"""What a Job does next, decided from its pods alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.job import indexes
from trainwright.embedded.workloads.job.decision import Decision, decide
from trainwright.embedded.workloads.job.pods import build, pod_name
from trainwright.schema.jsonobject import Json
from unit.embedded.workloads.making import NOW, conditions, job, pod

INDEXED: dict[str, Any] = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0}


def counted(decision: Decision) -> Json:
    """The status once the finalizers of its pods are off."""
    return decision.counted([pod.metadata.uid for pod in decision.release], NOW)[0]


def test_a_new_indexed_job_creates_a_pod_for_each_index() -> None:
    decision = decide(job(**INDEXED), [], NOW)
    assert [wanted.index for wanted in decision.create] == [0, 1]
    assert decision.status["active"] == 2
    assert decision.status["startTime"] == rfc3339(NOW)


def test_creating_is_repeatable_because_names_follow_from_what_is_known() -> None:
    first, again = (decide(job(**INDEXED), [], NOW).create for _ in range(2))
    assert first == again
    there = pod(0, name=first[0].name)
    assert decide(job(**INDEXED), [there], NOW).create == first[1:]


def test_a_replacement_gets_another_name_than_the_pod_it_replaces() -> None:
    name = decide(job(**INDEXED), [], NOW).create[0].name
    failed = pod(0, "Failed", name=name)
    decision = decide(job(**{**INDEXED, "backoffLimit": 3}), [failed, pod(1)], NOW)
    assert [wanted.index for wanted in decision.create] == [0]
    assert decision.create[0].name != name


def test_parallelism_bounds_what_runs_at_once() -> None:
    decision = decide(job(completionMode="Indexed", completions=5, parallelism=2), [pod(0, "Succeeded"), pod(1)], NOW)
    assert [wanted.index for wanted in decision.create] == [2]


def test_all_indexes_succeeded_completes_the_job_with_kubernetes_words() -> None:
    decision = decide(job(**INDEXED), [pod(0, "Succeeded"), pod(1, "Succeeded")], NOW)
    assert conditions(decision.status) == {"SuccessCriteriaMet": ("True", "CompletionsReached")}
    status = counted(decision)
    assert conditions(status) == {
        "SuccessCriteriaMet": ("True", "CompletionsReached"),
        "Complete": ("True", "CompletionsReached"),
    }
    assert status["conditions"][-1]["message"] == "Reached expected number of succeeded pods"
    assert (status["succeeded"], status["completedIndexes"], status["completionTime"]) == (2, "0,1", rfc3339(NOW))
    assert "active" not in status


def test_a_succeeded_index_stays_counted_when_its_pod_is_gone() -> None:
    before = {"completedIndexes": "0", "succeeded": 1, "startTime": rfc3339(NOW - 60)}
    decision = decide(job(before, **INDEXED), [pod(1, "Succeeded")], NOW)
    assert decision.create == []
    assert conditions(counted(decision))["Complete"] == ("True", "CompletionsReached")


def test_a_failure_beyond_the_limit_deletes_the_others_before_the_job_has_failed() -> None:
    other = pod(1, ready=True)
    failed = pod(0, "Failed")
    decision = decide(job(**INDEXED), [failed, other], NOW)
    assert decision.delete == [other]
    assert not decision.uncounted, "a pod that has not ended fails with its Job"
    assert conditions(decision.status) == {"FailureTarget": ("True", "BackoffLimitExceeded")}
    uids = {failed.metadata.uid, other.metadata.uid}
    assert set(decision.status["uncountedTerminatedPods"]["failed"]) == uids
    status = counted(decision)
    assert (status["failed"], status["terminating"], status["uncountedTerminatedPods"]) == (2, 1, {})
    assert "Failed" not in conditions(status)
    later = decide(job(status, **INDEXED), [pod(0, "Failed", tracked=False)], NOW + 1)
    assert conditions(counted(later))["Failed"] == ("True", "BackoffLimitExceeded")
    assert counted(later)["conditions"][-1]["message"] == "Job has reached the specified backoff limit"
    assert (counted(later)["failed"], later.create) == (2, [])


def test_failures_within_the_limit_are_retried_after_a_growing_back_off() -> None:
    spec = {**INDEXED, "backoffLimit": 6}
    recent = decide(job(**spec), [pod(0, "Failed", at=NOW - 3), pod(1)], NOW)
    assert (recent.create, recent.after) == ([], 7.0)
    second = decide(job(**spec), [pod(0, "Failed", at=NOW - 30), pod(0, "Failed", at=NOW - 3), pod(1)], NOW)
    assert second.after == 17.0
    ripe = decide(job(**spec), [pod(0, "Failed", at=NOW - 11), pod(1)], NOW)
    assert [wanted.index for wanted in ripe.create] == [0]


def test_restarts_in_place_count_against_the_limit() -> None:
    template = {"spec": {"containers": [{"name": "node"}], "restartPolicy": "OnFailure"}}
    decision = decide(job(**{**INDEXED, "template": template}), [pod(0, restarts=1), pod(1)], NOW)
    assert conditions(decision.status) == {"FailureTarget": ("True", "BackoffLimitExceeded")}


def test_an_active_deadline_ends_the_job_and_is_waited_for() -> None:
    spec = {**INDEXED, "activeDeadlineSeconds": 100}
    started = {"startTime": rfc3339(NOW - 40)}
    assert decide(job(started, **spec), [pod(0), pod(1)], NOW).after == 60.0
    late = decide(job(started, **spec), [pod(0), pod(1)], NOW + 60)
    assert conditions(late.status) == {"FailureTarget": ("True", "DeadlineExceeded")}
    assert len(late.delete) == 2


def test_suspending_deletes_pods_without_counting_them_as_failed() -> None:
    running = [pod(0), pod(1)]
    decision = decide(job({"startTime": rfc3339(NOW - 5)}, **INDEXED, suspend=True), running, NOW)
    assert decision.delete == running
    assert decision.uncounted, "their finalizers go first"
    assert conditions(decision.status) == {"Suspended": ("True", "JobSuspended")}
    assert "startTime" not in decision.status
    killed = [pod(index, "Failed", deleting=True, tracked=False) for index in (0, 1)]
    later = decide(job(decision.status, **INDEXED, suspend=True), killed, NOW + 1)
    assert "failed" not in later.status
    assert "FailureTarget" not in conditions(later.status)


def test_resuming_starts_the_clock_anew() -> None:
    suspended = decide(job(**INDEXED, suspend=True), [], NOW).status
    decision = decide(job(suspended, **INDEXED), [], NOW + 100)
    assert conditions(decision.status) == {"Suspended": ("False", "JobResumed")}
    assert decision.status["startTime"] == rfc3339(NOW + 100)
    assert len(decision.create) == 2


def test_a_second_pod_of_one_index_is_removed() -> None:
    ready, late = pod(0, ready=True), pod(0, "Pending")
    assert decide(job(**INDEXED), [late, ready, pod(1)], NOW).delete == [late]


def test_scaling_down_removes_the_least_advanced() -> None:
    ready, late = pod(None, ready=True), pod(None, "Pending")
    assert decide(job(parallelism=1, completions=2), [ready, late], NOW).delete == [late]


def test_a_job_without_completions_is_complete_when_one_succeeded_and_none_runs() -> None:
    decision = decide(job(parallelism=2), [pod(None, "Succeeded"), pod(None)], NOW)
    assert (decision.create, decision.delete) == ([], [])
    assert "Complete" not in conditions(decision.status)
    assert "Complete" in conditions(counted(decide(job(parallelism=2), [pod(None, "Succeeded")], NOW)))


def test_pod_failure_policy_fails_the_job_with_the_rule_that_matched() -> None:
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    failed = pod(0, "Failed", exit_code=42, name="j-0-x")
    decision = decide(job(**{**INDEXED, "backoffLimit": 6, "podFailurePolicy": policy}), [failed], NOW)
    (condition,) = decision.status["conditions"][:1]
    assert (condition["type"], condition["reason"]) == ("FailureTarget", "PodFailurePolicy")
    assert condition["message"] == (
        "Container node for pod ns/j-0-x failed with exit code 42 matching FailJob rule at index 0"
    )


def test_an_ignored_failure_does_not_count() -> None:
    policy = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}]}
    decision = decide(job(**{**INDEXED, "podFailurePolicy": policy}), [pod(0, "Failed", exit_code=143), pod(1)], NOW)
    assert "FailureTarget" not in conditions(decision.status)
    assert [wanted.index for wanted in decision.create] == [0]


def test_backoff_limit_per_index_lets_other_indexes_finish() -> None:
    spec: Json = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0}
    going_on = decide(job(**spec), [pod(0, "Failed"), pod(1)], NOW)
    assert (going_on.delete, going_on.create, going_on.status["failedIndexes"]) == ([], [], "0")
    over = decide(job(**spec), [pod(0, "Failed"), pod(1, "Succeeded")], NOW)
    assert conditions(counted(over))["Failed"] == ("True", "FailedIndexes")


def test_success_policy_is_met_by_the_leader_alone() -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    other = pod(1)
    decision = decide(job(**INDEXED, successPolicy=policy), [pod(0, "Succeeded"), other], NOW)
    assert decision.delete == [other]
    assert conditions(decision.status) == {"SuccessCriteriaMet": ("True", "SuccessPolicy")}
    assert "failed" not in counted(decision)


def test_a_pod_deleted_by_hand_counts_as_failed_and_is_replaced() -> None:
    deleted = pod(0, deleting=True)
    decision = decide(job(**{**INDEXED, "backoffLimit": 3}), [deleted, pod(1)], NOW)
    assert [wanted.index for wanted in decision.create] == [0]
    assert decision.release == [deleted]
    assert counted(decision)["failed"] == 1


def test_with_replacement_of_failed_pods_only_a_deleted_pod_counts_when_it_has_ended() -> None:
    spec = {**INDEXED, "backoffLimit": 3, "podReplacementPolicy": "Failed"}
    decision = decide(job(**spec), [pod(0, deleting=True), pod(1)], NOW)
    assert (decision.create, decision.release, decision.status["terminating"]) == ([], [], 1)
    ended = decide(job(**spec), [pod(0, "Failed", deleting=True), pod(1)], NOW)
    assert [wanted.index for wanted in ended.create] == [0]
    assert counted(ended)["failed"] == 1


def test_failures_of_an_index_go_on_to_its_next_pod_which_frees_the_last() -> None:
    spec: Json = {"completionMode": "Indexed", "completions": 1, "parallelism": 1, "backoffLimitPerIndex": 2}
    failed = pod(0, "Failed")
    decision = decide(job(**spec), [failed], NOW)
    assert [wanted.failures for wanted in decision.create] == [(1, 0)]
    assert decision.release == [], "the failures are written on it"
    assert decide(job(**spec), [failed, pod(0)], NOW).release == [failed]


def test_a_job_that_is_being_deleted_lets_its_pods_go_and_makes_no_more() -> None:
    running = pod(0)
    of = job(**INDEXED)
    deleted = msgspec.structs.replace(
        of, metadata=msgspec.structs.replace(of.metadata, deletion_timestamp=rfc3339(NOW))
    )
    decision = decide(deleted, [running], NOW)
    assert (decision.create, decision.delete, decision.release) == ([], [], [running])


def test_a_pod_is_what_the_job_controller_of_kubernetes_makes() -> None:
    the_job = job(**INDEXED)
    made = build(the_job, 1, pod_name(the_job, 1, ()))
    assert made["metadata"]["name"].startswith("j-1-")
    assert len(made["metadata"]["name"]) == len("j-1-") + 5
    assert made["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": "job-uid",
        "batch.kubernetes.io/job-completion-index": "1",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "job-uid",
        "job-name": "j",
    }
    assert made["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert made["spec"]["hostname"] == "j-1"
    (variable,) = made["spec"]["containers"][0]["env"]
    assert (
        variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-completion-index']"
    )
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert "env" not in the_job.spec["template"]["spec"]["containers"][0], "the Job's own template is not touched"


@pytest.mark.parametrize(("found", "text"), [({0, 1, 2, 4}, "0-2,4"), ({0, 1}, "0,1"), (set(), ""), ({3}, "3")])
def test_indexes_are_written_as_kubernetes_writes_them(found: set[int], text: str) -> None:
    assert indexes.write(found) == text


@given(st.sets(st.integers(0, 200)))
def test_indexes_come_back_as_they_were_written(found: set[int]) -> None:
    assert indexes.parse(indexes.write(found), 201) == found


PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])


@given(st.lists(st.tuples(st.integers(0, 3), PHASES, st.booleans()), max_size=10), st.integers(0, 4), st.booleans())
def test_no_index_ever_has_two_pods_by_our_doing(
    present: list[tuple[int, str, bool]], parallelism: int, suspended: bool
) -> None:
    """Whatever is there, a decision creates at most one pod for an index that has none, and never deletes too."""
    pods = [pod(index, phase, deleting=deleting) for index, phase, deleting in present]
    decision = decide(
        job(completionMode="Indexed", completions=4, parallelism=parallelism, backoffLimit=9, suspend=suspended),
        pods,
        NOW,
    )
    created = [wanted.index for wanted in decision.create]
    busy = {i for i, phase, deleting in present if phase == "Succeeded" or (phase not in ("Failed",) and not deleting)}
    assert len(created) == len(set(created))
    assert not set(created) & busy
    assert not (decision.create and decision.delete)
    assert not (suspended and created)


def test_an_elastic_job_that_shrinks_deletes_the_last_indexes() -> None:
    spec = {**INDEXED, "completions": 2, "parallelism": 2}
    there = [pod(index) for index in range(4)]
    decision = decide(job(**spec), there, NOW)
    assert sorted(doomed.name for doomed in decision.delete) == sorted(pod.name for pod in there[2:])
    assert decision.create == []
    assert decision.status["active"] == 2


def test_an_elastic_job_that_ended_leaves_no_pod_beyond_its_indexes() -> None:
    there = [pod(0, "Succeeded"), pod(1, "Succeeded"), pod(2)]
    decision = decide(job(**INDEXED), there, NOW)
    assert [doomed.name for doomed in decision.delete] == [there[2].name]
