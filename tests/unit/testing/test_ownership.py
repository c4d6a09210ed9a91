"""An object is cut down to the fields that one manager owns."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json
from trainwright.testing.ownership import owned_fields


def stored(**entries: Json) -> Json:
    managed = [
        {"manager": name.partition("_")[0], "operation": name.partition("_")[2] or "Apply", "fieldsV1": fields}
        for name, fields in entries.items()
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "ns", "labels": {"a": "1", "b": "2"}, "managedFields": managed},
        "spec": {
            "priority": 0,
            "containers": [
                {"name": "one", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
                {"name": "two", "image": "j"},
            ],
        },
        "tags": ["x", "y"],
    }


def test_only_what_the_manager_set_is_left() -> None:
    fields = {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:containers": {'k:{"name":"one"}': {".": {}, "f:image": {}}}},
    }
    assert owned_fields(stored(trainer=fields, kubectl={"f:spec": {"f:priority": {}}}), "trainer") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "ns", "labels": {"a": "1"}},
        "spec": {"containers": [{"image": "i"}]},
    }


def test_a_leaf_is_taken_whole_and_lists_keep_their_order() -> None:
    fields: Json = {"f:spec": {"f:containers": {'k:{"name":"two"}': {}, 'k:{"name":"one"}': {"f:env": {}}}}}
    assert owned_fields(stored(trainer=fields), "trainer")["spec"]["containers"] == [
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "two", "image": "j"},
    ]


def test_elements_of_a_set_are_found_by_value() -> None:
    assert owned_fields(stored(trainer={"f:tags": {'v:"y"': {}}}), "trainer")["tags"] == ["y"]


def test_the_operation_tells_apply_from_what_admission_added() -> None:
    both = stored(trainer_Apply={"f:tags": {}}, trainer_Update={"f:spec": {"f:priority": {}}})
    assert "spec" not in owned_fields(both, "trainer", "Apply")
    assert owned_fields(both, "trainer")["spec"] == {"priority": 0}


def test_two_entries_of_one_manager_are_joined() -> None:
    both = stored(
        trainer_Apply={"f:metadata": {"f:labels": {"f:a": {}}}},
        trainer_Update={"f:metadata": {"f:labels": {"f:b": {}}}},
    )
    assert owned_fields(both, "trainer")["metadata"]["labels"] == {"a": "1", "b": "2"}
