"""Nobody grants what they do not have, and a rule for one name is a rule for that name."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.access.rbac import GROUP
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.http.requests import Answer, Request
from trainwright.embedded.apiserver.server import Server
from trainwright.embedded.apiserver.storage.memory import MemoryStore
from trainwright.http.headers import Headers
from trainwright.schema.jsonobject import Json

BASE = f"/apis/{GROUP}/v1"
RBAC_EDITOR = {
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    "verbs": ["create", "update", "patch", "get"],
}
POD_READER = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


class Tenant:
    """A user of a server, with these rules everywhere; `admin` has all."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def ask(self, token: str, method: str, target: str, body: Json | None = None, kind: str = "json") -> Answer:
        import msgspec

        async def read() -> bytes:
            return msgspec.json.encode(body)

        fields = {"Host": "localhost", "Authorization": f"Bearer {token}", "Content-Type": f"application/{kind}"}
        answer = await self.server.answer(Request.of(method, target, Headers.of(list(fields.items())), read))
        assert isinstance(answer, Answer)
        return answer

    async def bob(self, method: str, target: str, body: Json, kind: str = "json") -> int:
        return (await self.ask("bobs", method, target, body, kind)).status

    async def admin(self, target: str, body: Json) -> None:
        answer = await self.ask(self.server.credentials.admin_token, "POST", target, body)
        assert answer.status == 201, answer.body

    async def give(self, *rules: Any) -> None:
        await self.admin(f"{BASE}/clusterroles", role("of-bob", *rules))
        await self.admin(f"{BASE}/clusterrolebindings", binding("of-bob", "of-bob"))


def role(name: str, *rules: Any, kind: str = "ClusterRole") -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, to: str, kind: str = "ClusterRoleBinding") -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": to},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "bob"}],
    }


@pytest.fixture
async def tenant() -> Any:
    users = {"bobs": User("bob", groups=("system:authenticated",))}
    async with Server(MemoryStore(), users=users) as server:
        tenant = Tenant(server)
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        await tenant.admin(f"{BASE}/clusterroles", role("all", everything))
        await tenant.admin(f"{BASE}/clusterroles", role("pods", POD_READER))
        yield tenant


async def test_who_may_write_bindings_cannot_bind_a_role_with_more_rights(tenant: Tenant) -> None:
    await tenant.give(RBAC_EDITOR, POD_READER)
    assert await tenant.bob("POST", f"{BASE}/clusterrolebindings", binding("mine", "all")) == 403
    inside = f"{BASE}/namespaces/default/rolebindings"
    assert await tenant.bob("POST", inside, binding("mine", "all", "RoleBinding")) == 403
    assert await tenant.bob("POST", inside, binding("mine", "nothing-there", "RoleBinding")) == 404
    assert await tenant.bob("POST", inside, binding("mine", "pods", "RoleBinding")) == 201


async def test_who_may_write_roles_cannot_write_more_into_them_than_they_have(tenant: Tenant) -> None:
    await tenant.give(RBAC_EDITOR, {**POD_READER, "resourceNames": ["one"]})
    more = {**POD_READER, "verbs": ["get", "delete"]}
    assert await tenant.bob("POST", f"{BASE}/clusterroles", role("mine", POD_READER)) == 403
    assert await tenant.bob("POST", f"{BASE}/clusterroles", role("mine", more)) == 403
    assert (
        await tenant.bob("POST", f"{BASE}/clusterroles", role("mine", {**POD_READER, "resourceNames": ["one"]})) == 201
    )
    patch = {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    assert await tenant.bob("PATCH", f"{BASE}/clusterroles/mine", patch, "merge-patch+json") == 403
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert await tenant.bob("PATCH", f"{BASE}/clusterroles/all", labels, "merge-patch+json") == 200


@pytest.mark.parametrize("verb", ["bind", "escalate"])
async def test_the_verbs_for_it_allow_it(tenant: Tenant, verb: str) -> None:
    await tenant.give(RBAC_EDITOR, {**RBAC_EDITOR, "verbs": [verb], "resourceNames": ["all"]})
    more = {"rules": [POD_READER]}
    changed = await tenant.bob("PATCH", f"{BASE}/clusterroles/all", more, "merge-patch+json")
    assert changed == (200 if verb == "escalate" else 403)
    bound = await tenant.bob("POST", f"{BASE}/clusterrolebindings", binding("mine", "all"))
    assert bound == (201 if verb == "bind" else 403)


async def test_a_field_selector_gives_a_create_no_name(tenant: Tenant) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list"], "resourceNames": ["mine"]}
    await tenant.give(rule)
    there = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=mine"
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    assert await tenant.bob("POST", there, other) == 403
    assert (await tenant.ask("bobs", "GET", there)).status == 200
