"""Least privilege, over everything the operator did in this session: nothing was forbidden, nothing granted was unused.

Named so that it comes after the other files of the operator; alone it has nothing to judge and is skipped.
"""

from __future__ import annotations

import pytest

from kube.installation import USER, Installation
from trainwright.testing.audit import Request, requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.grants import unused


@pytest.fixture
def mine(plane: RealControlPlane, pytestconfig: pytest.Config) -> list[Request]:
    found = requests(plane.audit_events(), user=USER)
    if not any(request.resource == "tokenreviews" for request in found):
        if pytestconfig.getoption("lf"):
            pytest.fail("it failed, and by itself it cannot be judged again: run the whole folder")
        pytest.skip("the operator has not been at work in this session: run the whole folder")
    return found


def test_no_request_of_the_operator_was_forbidden(mine: list[Request]) -> None:
    assert [str(request) for request in mine if request.code == 403 and not is_terminating(request)] == []


def test_every_granted_verb_was_used(plane: RealControlPlane, mine: list[Request]) -> None:
    # trainjobs/finalizers is for clusters that enforce owner references; this one does not.
    assert [str(it) for it in unused(Installation(plane).roles, mine, apart=["trainjobs/finalizers"])] == []


def is_terminating(request: Request) -> bool:
    """Writing into a namespace that is being deleted is refused by admission, with the code that RBAC uses too."""
    return "because it is being terminated" in str((request.answer or {}).get("message", ""))
