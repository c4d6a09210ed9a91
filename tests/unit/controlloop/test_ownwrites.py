"""A pass never acts on a state from before our own last write, and never trusts that write for longer than it must."""

from __future__ import annotations

import msgspec
import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import PODS
from trainwright.controlloop import Key, OwnWrites, Source

KEY = Key("ns", "a")


class Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


def pod(version: int, uid: str = "u1") -> Pod:
    return Pod(ObjectMeta(name="a", namespace="ns", uid=uid, resource_version=str(version)))


class Watched:
    """A source as its watch would fill it."""

    def __init__(self) -> None:
        self.source = Source(PODS, Pod)
        self.settled: list[Key] = []
        self.own = OwnWrites(self.source, self.settled.append)

    def list(self, version: int, *pods: Pod) -> None:
        deltas = self.source.store.replace(pods)
        self.source.listed(str(version))
        self.source.publish(deltas)

    def show(self, it: Pod) -> None:
        delta = self.source.store.put(it)
        self.source.publish([delta] if delta else [])

    def delete(self, it: Pod) -> None:
        delta = self.source.store.remove(it)
        self.source.publish([delta] if delta else [])


@pytest.fixture
def watched() -> Watched:
    it = Watched()
    it.list(10)
    return it


def test_a_write_counts_before_the_watch_shows_it(watched: Watched) -> None:
    watched.own.remember(pod(12))
    assert watched.own.get(KEY) == pod(12)


def test_a_stale_store_does_not_hide_a_write(watched: Watched) -> None:
    watched.show(pod(11))
    watched.own.remember(pod(14))
    watched.show(pod(12))  # an event from before our write
    assert watched.own.get(KEY) == pod(14)


@pytest.mark.parametrize("shown", [14, 15])
def test_a_write_is_forgotten_when_the_watch_has_caught_up(watched: Watched, shown: int) -> None:
    watched.own.remember(pod(14))
    watched.show(pod(shown))
    assert watched.own.get(KEY) == pod(shown)
    assert len(watched.own) == 0


def test_a_write_that_the_watch_showed_before_its_answer_came_is_not_remembered(watched: Watched) -> None:
    watched.show(pod(15))
    watched.own.remember(pod(14))
    assert watched.own.get(KEY) == pod(15)


def test_what_we_wrote_is_gone_when_the_watch_tells_of_its_deletion(watched: Watched) -> None:
    watched.show(pod(12))
    watched.own.remember(pod(14))
    watched.delete(pod(15))
    assert watched.own.get(KEY) is None


def test_the_deletion_of_a_predecessor_says_nothing_about_what_we_wrote(watched: Watched) -> None:
    watched.show(pod(12, "u0"))
    watched.own.remember(pod(14, "u1"))
    watched.delete(pod(13, "u0"))
    assert watched.own.get(KEY) == pod(14, "u1")


def test_an_answer_that_comes_after_the_watch_told_of_the_deletion_is_not_remembered(watched: Watched) -> None:
    watched.show(pod(14))
    watched.source.shown_version = "15"
    watched.delete(pod(15))
    watched.own.remember(pod(14))
    assert watched.own.get(KEY) is None


def test_a_later_list_without_it_means_that_it_is_gone_and_wakes_its_key(watched: Watched) -> None:
    watched.own.remember(pod(14))
    watched.list(20)
    assert watched.own.get(KEY) is None
    assert watched.settled == [KEY]


def test_a_list_from_before_the_write_says_nothing(watched: Watched) -> None:
    watched.own.remember(pod(14))
    watched.list(13)
    assert watched.own.get(KEY) == pod(14)
    assert watched.settled == []
