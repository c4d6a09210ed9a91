from __future__ import annotations

from typing import Any

import pytest

from trainwright.pipeline.sparse import sparse


def test_an_unset_field_and_its_zero_are_the_same() -> None:
    template = {
        "failurePolicy": {"maxRestarts": 0},
        "containers": [{"name": "a", "tty": False, "env": [{"name": "X", "value": ""}], "command": None}],
    }
    assert sparse(template) == {"failurePolicy": {}, "containers": [{"name": "a", "env": [{"name": "X"}]}]}


@pytest.mark.parametrize(
    "kept",
    [
        {"securityContext": {"runAsUser": 0, "privileged": False}},
        {"spec": {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}},
        {"labels": {"empty": ""}},
        {"sysctls": [{"name": "a", "value": ""}]},
        {"httpHeaders": [{"name": "a", "value": ""}]},
        {"emptyDir": {}},
        {"notYetKnown": {"value": "", "name": "", "tty": False, "list": [], "map": {}}},
    ],
)
def test_a_zero_that_means_something_stays(kept: dict[str, Any]) -> None:
    assert sparse(kept) == kept


def test_amounts_are_written_as_the_api_writes_them() -> None:
    template = {"limits": {"cpu": 1, "memory": "1024Mi"}, "emptyDir": {"sizeLimit": "0.5Gi"}, "overhead": {"cpu": 0.25}}
    assert sparse(template) == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "emptyDir": {"sizeLimit": "512Mi"},
        "overhead": {"cpu": "250m"},
    }
    assert sparse({"limits": {"cpu": "many"}}) == {"limits": {"cpu": "many"}}


def test_a_resource_field_always_has_a_divisor() -> None:
    assert sparse({"resourceFieldRef": {"resource": "limits.cpu"}}) == {
        "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}
    }


def test_in_a_patch_an_empty_list_says_nothing() -> None:
    patch = {"tolerations": [], "nodeSelector": {}, "metadata": {}, "emptyDir": {}}
    assert sparse(patch, is_patch=True) == {"emptyDir": {}}
    assert sparse(patch) == patch


def test_the_copy_shares_nothing_with_the_original() -> None:
    original: dict[str, Any] = {"a": [{"b": {"c": [1]}}], "labels": {"x": "y"}}
    copy = sparse(original)
    copy["a"][0]["b"]["c"].append(2)
    copy["labels"]["x"] = "z"
    assert original == {"a": [{"b": {"c": [1]}}], "labels": {"x": "y"}}
