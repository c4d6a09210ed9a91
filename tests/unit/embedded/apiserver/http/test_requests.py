"""Query parameters and write options."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import Call, Query
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.types import Strategy, Type

THING = Type("", "v1", "things", "thing", "Thing", True, Strategy())


def options(query: str, kind: str = "CreateOptions", **headers: str) -> WriteOptions:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Call("POST", "/", Query(query), named, User("bob"), THING).write_options(kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("watch", True), ("watch=", True), ("watch=0", False), ("watch=FALSE", False), ("watch=1", True)],
)
def test_flags_are_true_unless_they_say_no(text: str, expected: bool) -> None:
    assert Query(text).flag("watch") is expected


def test_numbers_must_be_numbers() -> None:
    assert Query("limit=5").integer("limit") == 5
    assert Query("limit=").integer("limit") is None
    with pytest.raises(StatusError) as found:
        Query("limit=five").integer("limit")
    assert found.value.code == 400


def test_the_manager_is_named_or_taken_from_the_user_agent() -> None:
    assert options("fieldManager=m", User_Agent="kubectl/v1").manager == "m"
    assert options("", User_Agent="kubectl/v1.36 (linux)").manager == "kubectl"


@pytest.mark.parametrize(
    ("query", "kind", "fault"),
    [
        ("dryRun=Some", "CreateOptions", "dryRun: Unsupported value"),
        ("fieldValidation=Maybe", "CreateOptions", "fieldValidation: Unsupported value"),
        ("fieldManager=" + "x" * 129, "CreateOptions", "fieldManager: Too long"),
        ("fieldManager=a%01", "UpdateOptions", "fieldManager: Invalid value"),
        ("force=true", "PatchOptions", "force: Forbidden: may not be specified for non-apply patch"),
    ],
)
def test_options_that_are_wrong_are_refused(query: str, kind: str, fault: str) -> None:
    with pytest.raises(StatusError) as found:
        options(query, kind)
    assert found.value.code == 422
    assert f'{kind}.meta.k8s.io "" is invalid: {fault}' in found.value.message


def test_an_apply_needs_a_manager() -> None:
    apply: dict[str, Any] = {"Content_Type": "application/apply-patch+yaml"}
    with pytest.raises(StatusError, match="fieldManager: Required value: is required for apply patch"):
        options("", "PatchOptions", **apply)
    assert options("fieldManager=m&force=true", "PatchOptions", **apply).force
