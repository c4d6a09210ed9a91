"""The store shows what the last list and events told, and reports what vanished unseen."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trainwright.api.metadata import ObjectMeta
from trainwright.controlloop import Delta, Key, Store


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    colour: str = ""


def thing(name: str, version: int = 1, uid: str = "", colour: str = "") -> Thing:
    return Thing(ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=str(version)), colour)


def store() -> Store[Thing]:
    return Store({"colour": lambda it: [it.colour] if it.colour else []})


def test_what_vanished_while_disconnected_is_reported_as_deleted() -> None:
    it = store()
    it.replace([thing("a"), thing("b")])
    assert it.replace([thing("b")]) == [Delta(thing("a"), None, witnessed=False)]
    assert list(it) == [thing("b")]


def test_an_object_recreated_while_disconnected_is_gone_and_then_new() -> None:
    it = store()
    it.replace([thing("a", 1, "old")])
    assert it.replace([thing("a", 5, "new")]) == [
        Delta(thing("a", 1, "old"), None, witnessed=False),
        Delta(None, thing("a", 5, "new")),
    ]


def test_a_version_seen_before_is_no_change() -> None:
    it = store()
    assert it.put(thing("a", 1)) == Delta(None, thing("a", 1))
    assert it.put(thing("a", 1)) is None
    assert it.replace([thing("a", 1)]) == []


def test_a_change_shows_both_sides() -> None:
    it = store()
    it.put(thing("a", 1))
    assert it.put(thing("a", 2)) == Delta(thing("a", 1), thing("a", 2))
    assert it.get(Key("ns", "a")) == thing("a", 2)


def test_an_index_follows_its_objects() -> None:
    it = store()
    it.put(thing("a", 1, colour="red"))
    it.put(thing("b", 1, colour="red"))
    it.put(thing("a", 2, colour="blue"))
    it.remove(thing("b", 3))
    assert it.by("colour", "red") == []
    assert it.by("colour", "blue") == [thing("a", 2, colour="blue")]


def test_a_deletion_of_something_unknown_is_no_change() -> None:
    assert store().remove(thing("a")) is None


objects = st.builds(
    thing,
    st.sampled_from("abc"),
    st.integers(1, 5),
    st.sampled_from(["u1", "u2"]),
    st.sampled_from(["", "red", "blue"]),
)
actions = st.one_of(
    st.tuples(st.just("put"), objects),
    st.tuples(st.just("remove"), objects),
    st.tuples(st.just("replace"), st.lists(objects, max_size=3, unique_by=lambda it: it.metadata.name)),
)


@given(st.lists(actions, max_size=30))
def test_deltas_replayed_give_the_same_objects_and_the_index_agrees(history: list[tuple[str, object]]) -> None:
    it = store()
    replayed: dict[str, Thing] = {}
    for action, argument in history:
        result = getattr(it, action)(argument)
        for delta in result if isinstance(result, list) else [result] if result else []:
            if delta.new is None:
                assert replayed.pop(delta.old.metadata.name).metadata.uid == delta.old.metadata.uid
            else:
                assert replayed.get(delta.new.metadata.name) == delta.old
                replayed[delta.new.metadata.name] = delta.new
    assert {thing.metadata.name: thing for thing in it} == replayed
    for colour in ("red", "blue"):
        assert set(it.by("colour", colour)) == {thing for thing in it if thing.colour == colour}
