"""Ownership after applies and updates by several managers, and their conflicts."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.fieldmanager import lastapplied
from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager
from trainwright.embedded.apiserver.fieldmanager.nodes import object_node

TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "color": TEXT,
                "size": {"type": "integer"},
                "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "steps": {"type": "array", "items": TEXT},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": TEXT, "a": TEXT, "b": TEXT}},
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
VERSION = "example.com/v1"
NODE = object_node(SCHEMA)


class Object:
    """One object and its managers, with a clock that ticks at every write."""

    def __init__(self) -> None:
        self.live: dict[str, Any] | None = None
        self.main = FieldManager(NODE, VERSION, "Thing", ignored={"f:status": {}})
        self.status = FieldManager(NODE, VERSION, "Thing", "status", ignored={"f:spec": {}})
        self.clock = 0

    def now(self) -> str:
        self.clock += 1
        return f"2026-01-01T00:00:{self.clock:02d}Z"

    def apply(self, who: str, spec: Any = None, *, force: bool = False, **more: Any) -> dict[str, Any] | None:
        metadata = {"name": "o", **more.pop("metadata", {})}
        config = {"apiVersion": VERSION, "kind": "Thing", "metadata": metadata, **more}
        if spec is not None:
            config["spec"] = spec
        manager = self.status if "status" in more else self.main
        result = manager.apply(self.live, manager.prepare(config), who, self.now(), force=force)
        if result is not None:
            self.live = copy.deepcopy(result)
            self.live["metadata"].setdefault("uid", "u")
        return result

    def update(self, who: str, spec: Any = None, **metadata: Any) -> None:
        new = copy.deepcopy(self.live) or {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "o"}}
        if spec is not None:
            new["spec"] = spec
        new["metadata"].update(metadata)
        self.main.update(self.live, new, who, self.now())
        new["metadata"]["uid"] = "u"
        self.live = new

    @property
    def spec(self) -> Any:
        assert self.live is not None
        return self.live.get("spec")

    def owned(self, who: str, operation: str = "Apply") -> Any:
        assert self.live is not None
        for entry in self.live["metadata"].get("managedFields", []):
            if (entry["manager"], entry["operation"]) == (who, operation):
                return entry["fieldsV1"]
        return None


def conflicts(error: StatusError) -> list[tuple[str, str]]:
    assert error.details is not None
    return [(cause["message"], cause["field"]) for cause in error.details["causes"]]


def test_two_appliers_of_the_same_value_share_its_ownership() -> None:
    thing = Object()
    thing.apply("a", {"color": "red"})
    thing.apply("b", {"color": "red"})
    assert thing.owned("a") == thing.owned("b") == {"f:spec": {"f:color": {}}}


def test_applying_another_value_is_a_conflict_that_names_the_owner() -> None:
    thing = Object()
    thing.apply("a", {"color": "red"})
    with pytest.raises(StatusError) as found:
        thing.apply("b", {"color": "blue"})
    assert found.value.code == 409
    assert found.value.message == 'Apply failed with 1 conflict: conflict with "a": .spec.color'
    assert conflicts(found.value) == [('conflict with "a"', ".spec.color")]


def test_conflicts_with_updaters_name_their_version() -> None:
    thing = Object()
    thing.update("u", {"color": "red", "size": 1})
    with pytest.raises(StatusError) as found:
        thing.apply("b", {"color": "blue", "size": 2})
    assert found.value.message == (
        f'Apply failed with 2 conflicts: conflicts with "u" using {VERSION}:\n- .spec.color\n- .spec.size'
    )


def test_force_takes_the_field_away() -> None:
    thing = Object()
    thing.apply("a", {"color": "red", "size": 1})
    thing.apply("b", {"color": "blue"}, force=True)
    assert thing.spec == {"color": "blue", "size": 1}
    assert thing.owned("a") == {"f:spec": {"f:size": {}}}
    assert thing.owned("b") == {"f:spec": {"f:color": {}}}


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it() -> None:
    thing = Object()
    thing.apply("a", {"color": "red", "size": 1})
    thing.apply("b", {"size": 1})
    thing.apply("a", {})
    assert thing.spec == {"size": 1}
    assert thing.owned("b") == {"f:spec": {"f:size": {}}}


def test_an_update_takes_over_exactly_the_fields_it_changes() -> None:
    thing = Object()
    thing.apply("a", {"color": "red", "size": 1})
    thing.update("u", {"color": "blue", "size": 1})
    assert thing.owned("a") == {"f:spec": {"f:size": {}}}
    assert thing.owned("u", "Update") == {"f:spec": {"f:color": {}}}


def test_a_field_that_an_update_removes_is_owned_by_nobody() -> None:
    thing = Object()
    thing.apply("a", {"color": "red", "size": 1})
    thing.update("u", {"size": 1})
    assert thing.owned("a") == {"f:spec": {"f:size": {}}}
    assert thing.owned("u", "Update") is None


def test_an_atomic_list_has_one_owner_and_one_value() -> None:
    thing = Object()
    thing.apply("a", {"steps": ["x", "y"]})
    with pytest.raises(StatusError) as found:
        thing.apply("b", {"steps": ["x", "y", "z"]})
    assert conflicts(found.value) == [('conflict with "a"', ".spec.steps")]
    thing.apply("b", {"steps": ["z"]}, force=True)
    assert thing.spec == {"steps": ["z"]}
    assert thing.owned("a") is None


def test_members_of_a_set_have_owners_of_their_own() -> None:
    thing = Object()
    thing.apply("a", {"tags": ["x", "y"]})
    thing.apply("b", {"tags": ["y", "z"]})
    assert sorted(thing.spec["tags"]) == ["x", "y", "z"]
    thing.apply("a", {"tags": ["x"]})
    assert sorted(thing.spec["tags"]) == ["x", "y", "z"]
    thing.apply("b", {"tags": ["z"]})
    assert sorted(thing.spec["tags"]) == ["x", "z"]


def test_items_of_a_keyed_list_are_shared_field_by_field() -> None:
    thing = Object()
    thing.apply("a", {"ports": [{"name": "p", "a": "1"}]})
    thing.apply("b", {"ports": [{"name": "p", "b": "2"}, {"name": "q"}]})
    assert thing.spec["ports"] == [{"name": "p", "a": "1", "b": "2"}, {"name": "q"}]
    assert thing.owned("b") == {
        "f:spec": {
            "f:ports": {
                'k:{"name":"p"}': {".": {}, "f:b": {}, "f:name": {}},
                'k:{"name":"q"}': {".": {}, "f:name": {}},
            }
        }
    }


def test_an_item_that_survives_keeps_its_key() -> None:
    thing = Object()
    thing.apply("a", {"ports": [{"name": "p", "a": "1"}]})
    thing.apply("b", {"ports": [{"name": "p", "b": "2"}]})
    thing.apply("a", {"ports": []})
    assert thing.spec["ports"] == [{"name": "p", "b": "2"}]


def test_an_item_is_removed_with_its_last_owner() -> None:
    thing = Object()
    thing.apply("a", {"ports": [{"name": "p"}, {"name": "q"}], "color": "red"})
    thing.apply("a", {"ports": [{"name": "q"}], "color": "red"})
    assert thing.spec["ports"] == [{"name": "q"}]


def test_items_of_other_managers_stay_when_the_list_is_no_longer_applied() -> None:
    thing = Object()
    thing.apply("a", {"ports": [{"name": "p"}], "color": "red"})
    thing.update("u", {"ports": [{"name": "p"}, {"name": "q"}], "color": "red"})
    thing.apply("a", {"color": "red"})
    assert thing.spec == {"color": "red", "ports": [{"name": "q"}]}


def test_applying_the_same_again_changes_nothing() -> None:
    thing = Object()
    thing.apply("a", {"color": "red"})
    assert thing.apply("a", {"color": "red"}) is None


def test_a_manager_that_applies_nothing_has_no_entry() -> None:
    thing = Object()
    thing.apply("a", {"color": "red"})
    thing.apply("b", {"size": 1})
    thing.apply("a")
    assert thing.owned("a") is None
    assert thing.owned("b") == {"f:spec": {"f:size": {}}}


def test_status_and_main_resource_have_separate_entries() -> None:
    thing = Object()
    thing.apply("a", {"color": "red"})
    thing.apply("a", {"color": "red"}, status={"phase": "Ready"})
    assert thing.live is not None
    entries = thing.live["metadata"]["managedFields"]
    assert [(entry.get("subresource"), entry["fieldsV1"]) for entry in entries] == [
        (None, {"f:spec": {"f:color": {}}}),
        ("status", {"f:status": {"f:phase": {}}}),
    ]


def test_the_fields_of_an_untracked_object_get_one_owner_at_the_first_apply() -> None:
    thing = Object()
    thing.live = {"metadata": {"name": "o", "uid": "u"}, "spec": {"color": "red"}}
    thing.apply("a", {"size": 1})
    assert thing.owned("before-first-apply", "Update") == {"f:spec": {".": {}, "f:color": {}}}
    with pytest.raises(StatusError) as found:
        thing.apply("a", {"color": "blue"})
    assert conflicts(found.value) == [(f'conflict with "before-first-apply" using {VERSION}', ".spec.color")]


def test_an_empty_list_of_entries_switches_tracking_off() -> None:
    thing = Object()
    thing.update("u", {"color": "red"})
    thing.update("u", {"color": "blue"}, managedFields=[])
    assert thing.live is not None
    assert "managedFields" not in thing.live["metadata"]


def test_malformed_entries_are_replaced_by_the_stored_ones() -> None:
    thing = Object()
    thing.update("u", {"color": "red"})
    thing.update("v", {"color": "red", "size": 2}, managedFields=[{"operation": "Nonsense"}])
    assert thing.owned("u", "Update") == {"f:spec": {".": {}, "f:color": {}}}
    assert thing.owned("v", "Update") == {"f:spec": {"f:size": {}}}


def test_nobody_owns_name_namespace_and_system_metadata() -> None:
    thing = Object()
    thing.apply("a", metadata={"name": "o", "namespace": "n", "labels": {"x": "y"}})
    assert thing.owned("a") == {"f:metadata": {"f:labels": {"f:x": {}}}}


def test_the_oldest_of_more_than_ten_updaters_are_joined_as_ancient_changes() -> None:
    thing = Object()
    for number in range(12):
        thing.update(f"u{number:02d}", annotations={f"a{i}": "" for i in range(number + 1)})
    assert thing.live is not None
    names = [entry["manager"] for entry in thing.live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names
    assert set(thing.owned("ancient-changes", "Update")["f:metadata"]["f:annotations"]) == {".", "f:a0", "f:a1", "f:a2"}


def test_a_configuration_with_an_undeclared_field_is_refused_with_its_path() -> None:
    with pytest.raises(StatusError, match=r"field not declared in schema") as found:
        Object().apply("a", {"colour": "red"})
    assert found.value.code == 400
    assert "(/o; example.com/v1, Kind=Thing): .spec.colour" in found.value.message


def annotated(spec: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "o"}, "spec": spec})


def test_kubectl_takes_over_fields_it_set_by_client_side_apply() -> None:
    thing = Object()
    text = annotated({"color": "red"})
    thing.update("kubectl-client-side-apply", {"color": "red"}, annotations={lastapplied.ANNOTATION: text})
    thing.apply("kubectl", {"color": "blue"})
    assert thing.spec == {"color": "blue"}
    assert thing.live is not None
    kept = json.loads(thing.live["metadata"]["annotations"][lastapplied.ANNOTATION])
    assert kept["spec"] == {"color": "blue"}


def test_kubectl_does_not_take_over_fields_that_changed_since() -> None:
    thing = Object()
    text = annotated({"color": "red"})
    thing.update("kubectl-client-side-apply", {"color": "red"}, annotations={lastapplied.ANNOTATION: text})
    thing.update("other", {"color": "green"})
    with pytest.raises(StatusError) as found:
        thing.apply("kubectl", {"color": "blue"})
    assert conflicts(found.value) == [(f'conflict with "other" using {VERSION}', ".spec.color")]


@pytest.mark.parametrize("text", ["not json", "[]", annotated({"color": "red"}).replace("/v1", "/v2")])
def test_an_annotation_that_is_broken_or_of_another_version_allows_no_conflicts(text: str) -> None:
    live = {"metadata": {"annotations": {lastapplied.ANNOTATION: text}}, "spec": {"color": "red"}}
    assert lastapplied.allowed_conflicts(NODE, live, VERSION) == {}


def test_a_scale_of_replicas_that_nobody_owns_is_not_tracked() -> None:
    scale = FieldManager(NODE, VERSION, "Thing", "scale", replicas=("spec", "size"))
    thing = Object()
    thing.apply("a", {"color": "red"})
    assert thing.live is not None
    defaulted = copy.deepcopy(thing.live)
    defaulted["spec"]["size"] = 1
    for live, owners in ((defaulted, ["a"]), (thing.live, ["a"])):
        new = copy.deepcopy(live)
        new["spec"]["size"] = 2
        scale.update(live, new, "b", thing.now())
        assert [entry["manager"] for entry in new["metadata"]["managedFields"]] == owners
    thing.update("u", {"color": "red", "size": 1})
    new = copy.deepcopy(thing.live)
    new["spec"]["size"] = 2
    scale.update(thing.live, new, "b", thing.now())
    assert [(entry["manager"], entry.get("subresource")) for entry in new["metadata"]["managedFields"]] == [
        ("a", None),
        ("b", "scale"),
    ]
