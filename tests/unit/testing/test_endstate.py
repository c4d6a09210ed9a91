"""Two end states are equal exactly if the runs ended alike."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json
from trainwright.testing.endstate import masked


def jobset(namespace: str, uid: str, *, suspend: bool = False) -> Json:
    return {
        "metadata": {
            "name": "job",
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": uid[:3],
            "creationTimestamp": "2026-01-01T00:00:0" + uid[0] + "Z",
            "ownerReferences": [{"kind": "TrainJob", "uid": uid}],
            "managedFields": [
                {"manager": "trainer", "operation": "Apply", "time": f"2026-01-01T00:00:0{uid[0]}Z", "fieldsV1": {}},
                {"manager": "jobset", "operation": "Update", "fieldsV1": {"f:status": uid}},
            ],
        },
        "spec": {"suspend": suspend},
        "status": {"conditions": [{"type": "Completed", "lastTransitionTime": f"2026-01-01T00:00:0{uid[0]}Z"}]},
    }


FIRST, SECOND = "1bcdef12-0000-4000-8000-000000000001", "2bcdef12-0000-4000-8000-000000000002"


def test_ids_versions_times_and_other_managers_do_not_count() -> None:
    assert masked(jobset("ns-a", FIRST), "JobSet", "ns-a") == masked(jobset("ns-b", SECOND), "JobSet", "ns-b")


def test_what_was_asked_for_counts() -> None:
    other = masked(jobset("ns-b", SECOND, suspend=True), "JobSet", "ns-b")
    assert masked(jobset("ns-a", FIRST), "JobSet", "ns-a") != other


def test_key_material_is_masked_and_its_names_are_not() -> None:
    def secret(**data: str) -> Json:
        return masked({"metadata": {"name": "s"}, "data": data}, "Secret", "ns")

    assert secret(key="a") == secret(key="b")
    assert secret(key="a") != secret(other="a")
