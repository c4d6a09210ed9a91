"""Requests are counted for the right job, at the right time, and only where a job is their reason."""

from __future__ import annotations

from comparison.contenders import USER
from comparison.requests import count
from trainwright.schema.jsonobject import Json

JOBS = ["job-00001", "job-00002"]


def event(
    second: int, verb: str, resource: str, name: str = "", *, subresource: str = "", code: int = 200, user: str = USER
) -> Json:
    return {
        "stage": "ResponseStarted" if verb == "watch" else "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "requestURI": "/",
        "objectRef": {"resource": resource, "subresource": subresource, "name": name, "namespace": "bench"},
        "responseStatus": {"code": code},
        "stageTimestamp": f"2026-01-01T00:00:{second:02d}.000000Z",
    }


def test_what_comes_before_a_jobs_own_job_set_counts_until_it_exists() -> None:
    counts = count(
        [
            event(1, "get", "trainjobs", "job-00001"),
            event(2, "patch", "jobsets", "job-00001", code=201),
            event(3, "patch", "trainjobs", "job-00001", subresource="status"),
            event(4, "get", "trainjobs", "job-00002"),
            event(5, "patch", "jobsets", "job-00002", code=201),
            event(6, "patch", "jobsets", "job-00002", code=200),
        ],
        JOBS,
    )
    assert counts.until_job_set == {"get trainjobs": 2, "patch jobsets": 2}
    assert counts.made_for_jobs == {"get trainjobs": 2, "patch jobsets": 3, "patch trainjobs/status": 1}


def test_a_read_that_names_no_job_counts_until_the_last_job_set_exists() -> None:
    counts = count(
        [
            event(1, "get", "clustertrainingruntimes", "torch-distributed"),
            event(2, "patch", "jobsets", "job-00001", code=201),
            event(3, "get", "clustertrainingruntimes", "torch-distributed"),
            event(4, "patch", "jobsets", "job-00002", code=201),
            event(5, "get", "clustertrainingruntimes", "torch-distributed"),
        ],
        JOBS,
    )
    assert counts.until_job_set["get clustertrainingruntimes"] == 2
    assert counts.made_for_jobs["get clustertrainingruntimes"] == 3


def test_an_object_named_after_a_job_is_the_jobs() -> None:
    counts = count(
        [
            event(1, "patch", "configmaps", "job-00001-runtime-snapshot", code=201),
            event(2, "patch", "jobsets", "job-00001", code=201),
            event(3, "patch", "configmaps", "job-00001-runtime-snapshot"),
        ],
        JOBS,
    )
    assert counts.until_job_set == {"patch configmaps": 1, "patch jobsets": 1}


def test_leases_watches_lists_and_the_runtimes_finalizer_stand_apart() -> None:
    counts = count(
        [
            event(1, "update", "leases", "trainer.kubeflow.org"),
            event(1, "list", "jobsets"),
            event(1, "watch", "jobsets"),
            event(1, "patch", "clustertrainingruntimes", "torch-distributed"),
        ],
        JOBS,
    )
    assert not counts.made_for_jobs
    assert counts.apart.total() == 4


def test_other_users_are_not_counted_and_refusals_are_told() -> None:
    counts = count(
        [
            event(1, "get", "jobsets", "job-00001", user="kubernetes-admin"),
            event(2, "get", "jobsets", "job-00001", code=404),
        ],
        JOBS,
    )
    assert counts.made_for_jobs == {"get jobsets": 1}
    assert counts.refused == {"get jobsets: 404": 1}
