"""Which ended containers run again, and after which wait."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.node.supervision.restarts import BackOff, is_restarted


def test_the_first_restart_is_at_once_and_the_next_ones_wait_twice_as_long_each() -> None:
    back_off = BackOff()
    assert [back_off.seconds(1.0) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_container_that_ran_for_ten_minutes_begins_again_without_back_off() -> None:
    back_off = BackOff()
    for _ in range(5):
        back_off.seconds(1.0)
    assert [back_off.seconds(601.0), back_off.seconds(1.0)] == [0, 10]


@pytest.mark.parametrize(
    ("container", "policy", "init", "restarted"),
    [
        ({}, "Never", False, set()),
        ({}, "OnFailure", False, {1, 137}),
        ({}, "Always", False, {0, 1, 137}),
        ({}, "Always", True, {1, 137}),
        ({"restartPolicy": "Always"}, "Never", True, {0, 1, 137}),
        ({"restartPolicy": "OnFailure"}, "Never", False, {1, 137}),
        ({"restartPolicy": "Never"}, "Always", False, set()),
        ({"restartPolicy": "Never", "restartOnExitCodes": [("In", [137])]}, "Always", False, {137}),
        ({"restartPolicy": "Never", "restartOnExitCodes": [("NotIn", [1])]}, "Never", False, {0, 137}),
    ],
)
def test_the_containers_own_rules_and_policy_come_before_the_pods(
    container: Any, policy: str, init: bool, restarted: set[int]
) -> None:
    assert {code for code in (0, 1, 137) if is_restarted(container, policy, code, init=init)} == restarted
