"""The status of a TrainJob is folded from its workload."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline import RuntimeNotSupported, WorkloadStatus, WorkloadUnknown, status
from trainwright.plugins.jobset import JobSet, StoredJobSet
from unit.pipeline.objects import trainjob

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STAMP = "2026-01-01T12:00:00Z"
EARLIER = "2026-01-01T11:00:00Z"


def jobset(*conditions: dict[str, Any], jobs: list[dict[str, Any]] | None = None, **body: Any) -> WorkloadStatus:
    stored = {"status": {"conditions": list(conditions), "replicatedJobsStatus": jobs, **body}}
    return JobSet().status(trainjob(), msgspec.convert(stored, StoredJobSet))


def condition(
    type: str, status: str = "True", reason: str = "R", message: str = "m", at: str = EARLIER
) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def conditions(job: TrainJob, of: WorkloadStatus | None, **options: Any) -> list[tuple[str, str, str, str]]:
    found = status(job, of, NOW, **options).status.conditions or []
    return [(c.type, c.status, c.reason, c.last_transition_time) for c in found]


def test_a_new_job_waits_for_its_jobset_without_any_condition() -> None:
    update = status(trainjob(), None, NOW)
    assert update.status.conditions is None
    assert (update.status.state, update.status.message) == ("Pending", "waiting for the workload to be created")


def test_suspending_and_resuming_are_one_condition() -> None:
    assert conditions(trainjob(suspend=True), None) == [("Suspended", "True", "Suspended", STAMP)]
    resumed = trainjob(status={"conditions": [condition("Suspended", reason="Suspended")]})
    assert conditions(resumed, None) == [("Suspended", "False", "Resumed", STAMP)]


def test_a_condition_that_holds_keeps_its_time() -> None:
    job = trainjob(suspend=True, status={"conditions": [condition("Suspended", reason="Suspended")]})
    assert conditions(job, None) == [("Suspended", "True", "Suspended", EARLIER)]


@pytest.mark.parametrize(("theirs", "ours"), [("Completed", "Complete"), ("Failed", "Failed")])
def test_the_jobsets_end_is_the_jobs_with_its_time(theirs: str, ours: str) -> None:
    update = status(trainjob(), jobset(condition(theirs, reason="Why", message="because")), NOW)
    (end,) = update.status.conditions or []
    assert (end.type, end.reason, end.message, end.last_transition_time) == (ours, "Why", "because", EARLIER)
    assert (update.status.state, update.status.message) == (ours, "because")
    assert not update.delete_workload


def test_finished_is_a_latch() -> None:
    failed = trainjob(status={"conditions": [condition("Failed", reason="DeadlineExceeded")]})
    assert conditions(failed, jobset(condition("Completed"))) == [("Failed", "True", "DeadlineExceeded", EARLIER)]
    complete = trainjob(status={"conditions": [condition("Complete")]})
    assert conditions(complete, jobset(condition("Failed"))) == [("Complete", "True", "R", EARLIER)]
    assert conditions(complete, None) == [("Complete", "True", "R", EARLIER)]


def test_jobs_status_is_taken_over_whole_and_kept_when_the_jobset_is_gone() -> None:
    jobs = [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]
    update = status(trainjob(), jobset(jobs=jobs), NOW)
    assert msgspec.to_builtins(update.status.jobs_status) == jobs
    anew = trainjob(status={"jobsStatus": jobs})
    assert status(anew, jobset(jobs=[]), NOW).status.jobs_status is None
    later = trainjob(status={"conditions": [condition("Complete")], "jobsStatus": jobs})
    assert msgspec.to_builtins(status(later, None, NOW).status.jobs_status) == jobs


@pytest.mark.parametrize(
    ("jobs", "restarts", "state", "message"),
    [
        ([], 0, "Pending", "waiting for the first pods"),
        ([{"name": "node", "active": 1}], 0, "Pending", "waiting for pods of: node"),
        ([{"name": "node", "active": 1, "ready": 1}], 0, "Running", "running: node"),
        ([{"name": "init", "succeeded": 1}, {"name": "node", "active": 1}], 0, "Running", "waiting for pods of: node"),
        ([{"name": "node", "active": 1, "ready": 1}], 2, "Running", "running: node; restarts: 2"),
    ],
)
def test_state_and_message_say_what_is_going_on(
    jobs: list[dict[str, Any]], restarts: int, state: str, message: str
) -> None:
    update = status(trainjob(), jobset(jobs=jobs, restarts=restarts), NOW)
    assert (update.status.state, update.status.message) == (state, message)


def test_a_problem_is_the_message_with_what_to_do_about_it() -> None:
    update = status(trainjob(), None, NOW, problem="JobSet: exceeded quota: gpus")
    assert update.status.state == "Pending"
    assert (update.status.message or "").startswith("JobSet: exceeded quota: gpus. Ask for less, wait until other jobs")
    assert update.status.conditions is None
    nobody_knows = status(trainjob(), None, NOW, problem="it is what it is")
    assert nobody_knows.status.message == "it is what it is"


def test_while_nobody_can_report_the_workload_the_last_state_stands() -> None:
    running = trainjob(status={"state": "Running", "message": "running: node"})
    update = status(running, None, NOW, problem=WorkloadUnknown("plugin X failed in status: boom"))
    assert update.status.state == "Running"
    assert update.status.message == "plugin X failed in status: boom. See trainwright plugins, and the operator's log"
    assert not update.delete_workload


def test_a_plugins_own_words_are_the_message() -> None:
    update = status(trainjob(), WorkloadStatus(message="waiting for a licence"), NOW)
    assert (update.status.state, update.status.message) == ("Pending", "waiting for a licence")


def test_an_unsupported_runtime_is_the_end() -> None:
    update = status(trainjob(), None, NOW, problem=RuntimeNotSupported("Foo.x"))
    (end,) = update.status.conditions or []
    assert (end.type, end.reason, end.message) == (
        "Failed",
        "TrainingRuntimeNotSupported",
        "unsupported runtime: Foo.x",
    )


def deadline(created: str, **spec: Any) -> TrainJob:
    return trainjob(metadata={"creationTimestamp": created}, activeDeadlineSeconds=600, **spec)


def test_before_the_deadline_the_job_says_when_to_look_again() -> None:
    update = status(deadline("2026-01-01T11:55:00Z"), jobset(), NOW)
    assert update.look_again_after == 300
    assert update.status.conditions is None


def test_after_the_deadline_the_job_fails_and_its_jobset_goes() -> None:
    update = status(deadline("2026-01-01T11:40:00Z"), jobset(), NOW)
    (end,) = update.status.conditions or []
    assert (end.type, end.reason, end.message) == (
        "Failed",
        "DeadlineExceeded",
        "TrainJob exceeded its active deadline",
    )
    assert update.delete_workload
    assert update.look_again_after is None


def test_a_finished_job_keeps_asking_for_its_jobset_to_go() -> None:
    job = trainjob(status={"conditions": [condition("Failed", reason="DeadlineExceeded")]})
    assert status(job, jobset(), NOW).delete_workload
    assert not status(job, None, NOW).delete_workload


def test_the_clock_starts_anew_at_a_resume_and_stands_still_while_suspended() -> None:
    resumed = {"conditions": [condition("Suspended", "False", "Resumed", at="2026-01-01T11:58:00Z")]}
    assert status(deadline("2026-01-01T01:00:00Z", status=resumed), jobset(), NOW).look_again_after == 480
    assert status(deadline("2026-01-01T01:00:00Z", suspend=True), jobset(), NOW).look_again_after is None


def test_completion_beats_the_deadline() -> None:
    update = status(deadline("2026-01-01T01:00:00Z"), jobset(condition("Completed")), NOW)
    assert update.status.state == "Complete"


def test_progress_reported_by_the_training_code_is_carried_over() -> None:
    reported = {"lastUpdatedTime": STAMP, "progressPercentage": 5}
    update = status(trainjob(status={"trainerStatus": reported}), None, NOW)
    assert msgspec.to_builtins(update.status.trainer_status) == reported


def test_the_revision_once_set_stays() -> None:
    assert status(trainjob(), None, NOW, runtime_revision="a").status.runtime_revision == "a"
    job = trainjob(status={"runtimeRevision": "a"})
    assert status(job, None, NOW, runtime_revision="b").status.runtime_revision == "a"
