"""The oracle catches what it promises: every rule is given a correct story and one with a seeded fault."""

from __future__ import annotations

import pytest

from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import Request
from trainwright.testing.oracle import Story, Violation, check, effective_writes
from trainwright.testing.watchlog import Change


class Scribe:
    """Writes a story change by change, with versions and times of its own."""

    def __init__(self) -> None:
        self.version = 0
        self.changes: list[Change] = []
        self.requests: list[Request] = []

    def change(self, type_: str, kind: str, item: Json, *, after: float = 0.1) -> Json:
        self.version += 1
        at = (self.changes[-1].at if self.changes else 1000.0) + after
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        self.changes.append(Change(type_, kind, self.version, item, at))
        return item

    def request(self, verb: str, resource: str, name: str, **more: object) -> None:
        values: dict[str, object] = {
            "user": "operator",
            "agent": "",
            "verb": verb,
            "group": "",
            "resource": resource,
            "subresource": "",
            "namespace": "ns",
            "name": name,
            "code": 200,
            "dry_run": False,
            "at": self.changes[-1].at + 0.01 if self.changes else 0.0,
            "sent": None,
            "answer": None,
        }
        self.requests.append(Request(**{**values, **more}))  # type: ignore[arg-type]

    def story(self) -> Story:
        return Story(self.changes, self.requests)

    def violations(self) -> list[str]:
        try:
            check(self.story())
        except AssertionError as found:
            return [line.partition(":")[0] for line in str(found).splitlines()[1:]]
        return []


def job(name: str = "job", uid: str = "u1", *conditions: Json, **metadata: object) -> Json:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": uid, **metadata},
        "status": {"conditions": list(conditions)},
    }


def condition(kind: str, at: str = "2026-01-01T00:00:01Z", **more: object) -> Json:
    return {"type": kind, "status": "True", "lastTransitionTime": at, **more}


def child(
    name: str = "job", uid: str = "c1", owner: str | None = "u1", manager: str = "trainer", **more: object
) -> Json:
    owners = [{"kind": "TrainJob", "name": "job", "uid": owner, "controller": True}] if owner else []
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid,
            "ownerReferences": owners,
            "managedFields": [{"manager": manager}],
        },
        **more,
    }


@pytest.fixture
def scribe() -> Scribe:
    return Scribe()


def test_a_job_that_runs_and_completes_breaks_nothing(scribe: Scribe) -> None:
    scribe.change("ADDED", "TrainJob", job())
    scribe.change("ADDED", "Secret", child("job-ssh", "s1", data={"key": "x"}))
    scribe.request("create", "secrets", "job-ssh", code=201)
    made = scribe.change("ADDED", "JobSet", child())
    scribe.request("patch", "jobsets", "job", code=201, answer=made)
    scribe.request(
        "patch",
        "trainjobs",
        "job",
        subresource="status",
        sent={"metadata": {"resourceVersion": "1"}, "status": {"conditions": []}},
    )
    scribe.change("MODIFIED", "TrainJob", job("job", "u1", condition("Complete")))
    scribe.change("DELETED", "JobSet", child())
    assert scribe.violations() == []


def test_a_job_deleted_and_made_again_breaks_nothing(scribe: Scribe) -> None:
    scribe.change("ADDED", "TrainJob", job())
    scribe.change("ADDED", "JobSet", child())
    scribe.change("DELETED", "TrainJob", job())
    scribe.change("ADDED", "TrainJob", job("job", "u2"))
    scribe.change("DELETED", "JobSet", child())
    scribe.change("ADDED", "JobSet", child("job", "c2", "u2"))
    assert scribe.violations() == []


def test_two_live_jobsets_of_one_job_are_seen(scribe: Scribe) -> None:
    scribe.change("ADDED", "TrainJob", job())
    scribe.change("ADDED", "JobSet", child())
    scribe.change("ADDED", "JobSet", child("job", "c2"))
    assert scribe.violations() == ["one JobSet"]


def test_a_jobset_under_another_name_is_seen(scribe: Scribe) -> None:
    scribe.change("ADDED", "TrainJob", job())
    scribe.change("ADDED", "JobSet", child("other"))
    assert scribe.violations() == ["one JobSet"]


@pytest.mark.parametrize("kind", ["JobSet", "ConfigMap", "Secret", "PodGroup"])
def test_a_child_without_its_owner_is_seen(scribe: Scribe, kind: str) -> None:
    scribe.change("ADDED", kind, child(owner=None))
    assert scribe.violations() == ["own objects only"]


def test_what_others_write_needs_no_owner(scribe: Scribe) -> None:
    scribe.change("ADDED", "ConfigMap", child(owner=None, manager="kubectl"))
    assert scribe.violations() == []


def test_a_write_to_a_foreign_object_is_seen(scribe: Scribe) -> None:
    scribe.change("ADDED", "ConfigMap", child("job", "c1", None, "kubectl"))
    answer = child("job", "c1", "u1")
    answer["metadata"]["resourceVersion"] = "2"
    scribe.request("patch", "configmaps", "job", answer=answer)
    assert scribe.violations() == ["own objects only"]


def test_a_delete_of_a_foreign_object_is_seen(scribe: Scribe) -> None:
    scribe.change("ADDED", "JobSet", child(owner=None, manager="kubectl"))
    scribe.request("delete", "jobsets", "job", answer={"kind": "Status", "metadata": {}})
    assert scribe.violations() == ["own objects only"]


def test_a_failed_or_dry_write_to_a_foreign_object_does_no_harm(scribe: Scribe) -> None:
    scribe.change("ADDED", "JobSet", child(owner=None, manager="kubectl"))
    scribe.request("patch", "jobsets", "job", code=409)
    scribe.request("patch", "jobsets", "job", dry_run=True)
    assert scribe.violations() == []


def test_an_edited_runtime_is_seen_and_a_finalizer_is_not(scribe: Scribe) -> None:
    runtime: Json = {
        "metadata": {"name": "torch", "namespace": "ns", "uid": "r"},
        "spec": {"mlPolicy": {"numNodes": 1}},
    }
    scribe.change("ADDED", "TrainingRuntime", runtime)
    guarded = {**runtime, "metadata": {**runtime["metadata"], "finalizers": ["x"], "resourceVersion": "2"}}
    scribe.request("patch", "trainingruntimes", "torch", answer=guarded)
    assert scribe.violations() == []
    scribe.request("patch", "trainingruntimes", "torch", answer={**guarded, "spec": {"mlPolicy": {"numNodes": 2}}})
    assert scribe.violations() == ["own objects only"]


@pytest.mark.parametrize("later", [[], [condition("Failed")], [condition("Complete"), condition("Failed")]])
def test_a_finished_job_that_changes_its_mind_is_seen(scribe: Scribe, later: list[Json]) -> None:
    scribe.change("ADDED", "TrainJob", job("job", "u1", condition("Complete")))
    scribe.change("MODIFIED", "TrainJob", job("job", "u1", *later))
    assert scribe.violations() == ["finished is final"]


def test_a_jobset_made_for_a_finished_job_is_seen(scribe: Scribe) -> None:
    scribe.change("ADDED", "TrainJob", job("job", "u1", condition("Failed")))
    scribe.change("ADDED", "JobSet", child())
    assert scribe.violations() == ["finished is final"]


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, []), (10.0, ["finished is final"])])
def test_a_jobset_made_for_a_job_being_deleted_is_seen_unless_news_was_on_its_way(
    scribe: Scribe, seconds: float, expected: list[str]
) -> None:
    scribe.change("ADDED", "TrainJob", job())
    scribe.change("MODIFIED", "TrainJob", job("job", "u1", deletionTimestamp="2026-01-01T00:00:00Z"))
    scribe.change("ADDED", "JobSet", child(), after=seconds)
    assert scribe.violations() == expected


@pytest.mark.parametrize("kind", ["Secret", "ControllerRevision"])
def test_a_rewritten_secret_or_revision_is_seen(scribe: Scribe, kind: str) -> None:
    scribe.change("ADDED", kind, child("x", "c1", data={"a": "1"}))
    scribe.change("MODIFIED", kind, child("x", "c1", data={"a": "2"}))
    assert scribe.violations() == ["created once"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (condition("Suspended", "2026-01-01T00:00:05Z"), condition("Suspended", "2026-01-01T00:00:04Z")),
        (condition("Suspended", observedGeneration=3), condition("Suspended", observedGeneration=2)),
    ],
)
def test_a_condition_that_goes_back_in_time_is_seen(scribe: Scribe, first: Json, second: Json) -> None:
    scribe.change("ADDED", "TrainJob", job("job", "u1", first))
    scribe.change("MODIFIED", "TrainJob", job("job", "u1", second))
    assert scribe.violations() == ["status bound to its version"]


def test_conditions_written_without_a_version_are_seen(scribe: Scribe) -> None:
    scribe.request("patch", "trainjobs", "job", subresource="status", sent={"status": {"conditions": []}})
    assert scribe.violations() == ["status bound to its version"]


def test_a_forbidden_request_is_seen(scribe: Scribe) -> None:
    scribe.request("list", "pods", "", code=403)
    assert scribe.violations() == ["least privilege"]


def test_a_namespace_that_is_going_is_not_a_missing_right(scribe: Scribe) -> None:
    gone = {"kind": "Status", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}
    scribe.request("create", "events", "x", code=403, answer=gone)
    assert scribe.violations() == []


@pytest.mark.parametrize("verb", ["get", "list", "watch", "patch", "delete"])
def test_a_secret_that_is_not_just_created_is_seen(scribe: Scribe, verb: str) -> None:
    scribe.request(verb, "secrets", "x", code=404)
    assert scribe.violations() == ["least privilege"]


def test_its_own_namespaces_secret_is_the_operators_to_read(scribe: Scribe) -> None:
    scribe.request("get", "secrets", "certificates", namespace="kubeflow-system")
    assert scribe.violations() == []


def test_writes_of_a_converged_operator_are_counted_and_its_lease_is_not(scribe: Scribe) -> None:
    scribe.request("update", "leases", "leader", at=20.0)
    scribe.request("patch", "jobsets", "early", at=5.0)
    scribe.request("patch", "jobsets", "dry", at=20.0, dry_run=True)
    scribe.request("patch", "jobsets", "late", at=20.0)
    assert [request.name for request in effective_writes(scribe.requests, 10.0, 30.0)] == ["late"]


def test_a_violation_says_which_invariant_and_what_was_seen() -> None:
    assert str(Violation("one JobSet", "two JobSets")) == "one JobSet: two JobSets"
