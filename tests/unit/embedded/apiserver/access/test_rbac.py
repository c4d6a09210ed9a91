"""What users may do, by stored roles and bindings."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.access.rbac import GROUP, Attributes, Authorizer
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError

BOB = User("bob", groups=("team", "system:authenticated"))
ROBOT = User("system:serviceaccount:default:robot", groups=("system:serviceaccounts", "system:authenticated"))
READER = [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}]


async def bind(core: Any, rules: list[Any], subject: dict[str, str], *, cluster: bool = False) -> None:
    kind = "ClusterRole" if cluster else "Role"
    role = {"metadata": {"name": "r"}, "rules": rules}
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": "r"},
        "subjects": [subject],
    }
    await core.create("clusterroles" if cluster else "roles", role, group=GROUP)
    await core.create("clusterrolebindings" if cluster else "rolebindings", binding, group=GROUP)


def wants(user: User, verb: str, resource: str = "pods", **more: Any) -> Attributes:
    return Attributes(user, verb, resource=resource, **{"namespace": "default", **more})


GROUP_SUBJECT = {"kind": "Group", "apiGroup": GROUP, "name": "team"}


async def test_a_role_counts_in_its_namespace_only(core: Any) -> None:
    await bind(core, READER, GROUP_SUBJECT)
    may = Authorizer(core.api).allowed
    assert may(wants(BOB, "get"))
    assert may(wants(BOB, "get", subresource="log"))
    assert not may(wants(BOB, "get", namespace="other"))
    assert not may(wants(BOB, "delete"))
    assert not may(wants(BOB, "get", "secrets"))
    assert not may(wants(BOB, "get", group="apps"))
    assert not may(wants(User("eve", groups=("system:authenticated",)), "get"))


async def test_a_cluster_role_counts_everywhere(core: Any) -> None:
    await bind(core, READER, {"kind": "User", "apiGroup": GROUP, "name": "bob"}, cluster=True)
    may = Authorizer(core.api).allowed
    assert may(wants(BOB, "list", namespace="other"))
    assert may(wants(BOB, "list", namespace=""))


async def test_a_service_account_is_a_subject(core: Any) -> None:
    await bind(core, READER, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"})
    assert Authorizer(core.api).allowed(wants(ROBOT, "get"))
    assert not Authorizer(core.api).allowed(wants(BOB, "get"))


@pytest.mark.parametrize(
    ("resources", "subresource", "expected"),
    [
        (["*"], "status", True),
        (["pods"], "status", False),
        (["pods/status"], "", False),
        (["*/status"], "status", True),
        (["*/status"], "", False),
    ],
)
async def test_subresources_are_rights_of_their_own(
    core: Any, resources: list[str], subresource: str, expected: bool
) -> None:
    await bind(core, [{"apiGroups": ["*"], "resources": resources, "verbs": ["*"]}], GROUP_SUBJECT)
    assert Authorizer(core.api).allowed(wants(BOB, "update", subresource=subresource)) is expected


async def test_named_resources_cover_their_names_only(core: Any) -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"], "resourceNames": ["p"]}
    await bind(core, [rule], GROUP_SUBJECT)
    may = Authorizer(core.api).allowed
    assert may(wants(BOB, "get", name="p"))
    assert not may(wants(BOB, "get", name="q"))
    assert not may(wants(BOB, "list"))


async def test_paths_are_covered_by_prefix(core: Any) -> None:
    await bind(core, [{"nonResourceURLs": ["/metrics*"], "verbs": ["get"]}], GROUP_SUBJECT, cluster=True)
    may = Authorizer(core.api).allowed
    assert may(Attributes(BOB, "get", path="/metrics/cadvisor"))
    assert not may(Attributes(BOB, "get", path="/logs"))
    assert may(Attributes(BOB, "get", path="/version"))
    assert not may(Attributes(User("system:anonymous"), "get", path="/api"))


async def test_masters_may_do_everything(core: Any) -> None:
    assert Authorizer(core.api).allowed(wants(User("root", groups=("system:masters",)), "delete"))


async def test_a_refusal_says_who_what_and_where(core: Any) -> None:
    with pytest.raises(StatusError) as found:
        Authorizer(core.api).check(wants(BOB, "delete", name="p"))
    assert found.value.code == 403
    assert found.value.message.startswith(
        'pods "p" is forbidden: User "bob" cannot delete resource "pods" in API group "" in the namespace "default"'
    )
