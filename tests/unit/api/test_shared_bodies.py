"""Bodies that several components send: events and merge patches."""

from __future__ import annotations

from typing import Any

from trainwright.api.events import LONGEST_MESSAGE, event_body
from trainwright.api.mergepatches import changed_members, finalizers_patch, status_patch
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import NODES, TRAIN_JOBS
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import merge_patch

JOB = ObjectMeta(name="tj", namespace="team", uid="u1", resource_version="7", finalizers=["a", "b"])
NOON = "2026-07-01T12:00:00Z"


def event(about: ObjectMeta = JOB, message: str = "it waits", **more: Any) -> Json:
    resource = TRAIN_JOBS if about.namespace else NODES
    return event_body(
        resource,
        about,
        suffix="abc",
        type="Warning",
        reason="Waiting",
        message=message,
        component="tester",
        first=NOON,
        last=NOON,
        **more,
    )


def test_an_event_names_its_object_and_has_both_timestamps() -> None:
    body = event()
    assert body["metadata"] == {"name": "tj.abc", "namespace": "team"}
    assert body["involvedObject"] == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "name": "tj",
        "namespace": "team",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert (body["firstTimestamp"], body["lastTimestamp"], body["count"]) == (NOON, NOON, 1)
    assert "action" not in body
    assert event(action="Reconciling")["action"] == "Reconciling"


def test_an_event_about_a_cluster_scoped_object_is_in_the_default_namespace() -> None:
    assert event(ObjectMeta(name="node"))["metadata"]["namespace"] == "default"


def test_an_event_stays_within_the_servers_limits() -> None:
    body = event(ObjectMeta(name="n" * 253, namespace="team"), message="x" * 2000)
    assert len(body["metadata"]["name"]) <= 253
    assert len(body["message"]) == LONGEST_MESSAGE
    assert body["message"].endswith(" ...")


def test_changed_members_applied_give_the_other_object() -> None:
    before = {"same": 1, "old": [1], "changed": {"a": 1, "gone": 1, "same": {"x": 1}}}
    after = {"same": 1, "changed": {"a": 2, "same": {"x": 1}}, "new": {"y": []}}
    changes = changed_members(before, after)
    assert changes == {"old": None, "changed": {"a": 2, "gone": None}, "new": {"y": []}}
    assert merge_patch(before, changes) == after
    assert changed_members(after, after) == {}


def test_patches_are_bound_to_the_version_they_were_computed_from() -> None:
    assert status_patch(JOB, {"x": 1}) == {"metadata": {"uid": "u1", "resourceVersion": "7"}, "status": {"x": 1}}
    assert finalizers_patch(JOB, ["b"]) == {"metadata": {"resourceVersion": "7", "finalizers": ["b"]}}
    assert finalizers_patch(JOB, []) == {"metadata": {"resourceVersion": "7", "finalizers": None}}
