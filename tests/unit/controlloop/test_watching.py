"""Every recovery rule of the watch's state machine, as `state × input → state`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.controlloop.watching import (
    Absent,
    Elapsed,
    Ended,
    Expired,
    Failed,
    Happened,
    Input,
    List,
    Listed,
    Pause,
    State,
    Steady,
    Watch,
    step,
)


def none() -> float:
    return 0.0


def test_a_complete_list_is_followed_by_a_watch_from_its_version() -> None:
    assert step(List(0), Listed("10"), none) == Watch("10")


def test_events_and_bookmarks_move_the_version_and_clear_failures() -> None:
    assert step(Watch("10", 4), Happened("11"), none) == Watch("11", 0)


def test_an_event_without_a_version_leaves_the_old_one() -> None:
    assert step(Watch("10"), Happened(""), none) == Watch("10")


def test_an_expired_version_leads_to_a_new_list_at_once() -> None:
    assert step(Watch("10"), Expired(), none) == List(1)


def test_a_version_that_is_refused_right_after_its_list_does_not_make_a_hot_loop() -> None:
    state: State = List()
    paused = 0.0
    for happened in (Listed("10"), Expired(), Listed("11"), Expired(), Elapsed(), Listed("12"), Expired()):
        state = step(state, happened, none)
        paused += state.seconds if isinstance(state, Pause) else 0
    assert paused > 4


def test_a_stream_that_lived_for_a_while_owes_nothing_to_earlier_failures() -> None:
    assert step(Watch("10", 7), Steady(), none) == Watch("10", 0)


def test_an_expired_page_token_starts_the_list_over_and_only_a_second_one_waits() -> None:
    again = step(List(), Expired(), none)
    assert again == List(1)
    assert isinstance(step(again, Expired(), none), Pause)


def test_an_ended_stream_goes_on_at_once_from_the_last_version() -> None:
    assert step(Watch("10"), Ended(), none) == Watch("10", 1)


def test_streams_that_end_again_and_again_without_an_event_wait_longer_and_longer() -> None:
    state: State = Watch("10", 1)
    pauses = []
    for _ in range(8):
        state = step(state, Ended(), none)
        assert isinstance(state, Pause)
        pauses.append(state.seconds)
        state = step(state, Elapsed(), none)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0
    assert state == Watch("10", 9)


def test_a_failed_watch_keeps_its_version() -> None:
    assert step(Watch("10"), Failed(), none) == Pause(0.8, Watch("10", 1))


def test_no_pause_is_shorter_than_the_server_asked_for() -> None:
    assert step(Watch("10"), Failed(retry_after=17.0), none) == Pause(17.0, Watch("10", 1))
    assert step(List(), Failed(retry_after=17.0), none) == Pause(17.0, List(1))


@pytest.mark.parametrize("state", [List(2), Watch("10", 2)])
def test_a_type_that_is_not_served_is_asked_for_again_a_few_seconds_later(state: State) -> None:
    after = step(state, Absent(), none)
    assert after == Pause(5.0, List(), absent=True)
    assert step(after, Elapsed(), none) == List()


inputs = st.one_of(
    st.builds(Listed, st.just("1")),
    st.builds(Happened, st.sampled_from(["2", "3"])),
    st.builds(Ended),
    st.builds(Steady),
    st.builds(Elapsed),
    st.builds(Expired),
    st.builds(Absent),
    st.builds(Failed, st.floats(0, 60)),
)


@given(st.lists(inputs, max_size=40), st.floats(0, 0.999))
def test_from_any_history_the_machine_comes_back_to_watching(history: list[Input], jitter: float) -> None:
    state: State = List()
    for happened in history:
        state = step(state, happened, lambda: jitter)
        if isinstance(state, Pause):
            assert 0 < state.seconds <= 60
    for happened in (Elapsed(), Listed("9"), Happened("10")):
        state = step(state, happened, lambda: jitter)
    assert state == Watch("10")
