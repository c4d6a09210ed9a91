"""One server for each directory: what it refuses at start, what survives a restart, and whom it lets in."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainwright.embedded.apiserver import ApiServer, StoreError, User
from trainwright.embedded.apiserver.storage.sqlite import SqliteStore
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.manifests import crds
from trainwright.schema.jsonobject import Json

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with ApiServer(tmp_path / "state"):
        with pytest.raises(StoreError, match=r"another process \(pid \d+\) already serves .*trainwright down"):
            async with ApiServer(tmp_path / "state"):
                pass


async def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    async with ApiServer(tmp_path / "state"):
        pass
    database = sqlite3.connect(tmp_path / "state" / "state.db")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StoreError, match="written by a newer version of Trainwright"):
        async with ApiServer(tmp_path / "state"):
            pass


@pytest.mark.parametrize("damage", ["garbage", "flipped"])
async def test_a_damaged_store_is_refused(tmp_path: Path, damage: str) -> None:
    async with ApiServer(tmp_path / "state"):
        pass
    path = tmp_path / "state" / "state.db"
    if damage == "garbage":
        path.write_bytes(b"this is no database" * 500)
    else:
        database = sqlite3.connect(path)
        database.execute("UPDATE objects SET value = replace(value, 'Active', 'Broken') WHERE name = 'default'")
        database.commit()
        database.close()
    with pytest.raises(StoreError, match="is damaged"):
        async with ApiServer(tmp_path / "state"):
            pass


async def test_a_restart_keeps_objects_token_ca_port_and_versions(tmp_path: Path) -> None:
    async with ApiServer(tmp_path / "state") as first:
        token, url, authority = first.token, first.url, first.ca_file.read_bytes()
        await first.install([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}])
        version = first.server.state.version
    async with ApiServer(tmp_path / "state") as second:
        assert (second.token, second.url, second.ca_file.read_bytes()) == (token, url, authority)
        assert second.server.state.version >= version
        assert "default/c" in second.server.state.tables["configmaps"].objects
        config = json.loads(second.kubeconfig.read_text())
        assert config["users"][0]["user"]["token"] == token
        assert second.kubeconfig.stat().st_mode & 0o777 == 0o600


async def test_installing_the_same_manifest_twice_writes_nothing(server: ApiServer) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    await server.install([manifest])
    version = server.server.state.version
    await server.install([manifest])
    assert server.server.state.version == version


async def test_a_set_is_installed_again_only_if_it_is_another_or_an_object_of_it_changed(tmp_path: Path) -> None:
    crd = next(crds())
    read = 0

    def manifests() -> list[Json]:
        nonlocal read
        read += 1
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
        return [account, config, crd]

    async def start(digest: str = "1") -> tuple[int, dict[str, Any]]:
        async with ApiServer(tmp_path / "state") as server:
            before = read
            await server.ensure("set", digest, manifests)
            return read - before, dict(server.server.state.tables["configmaps"].objects)

    async def change(key: Key, edit: Callable[[Json], object]) -> None:
        async with ApiServer(tmp_path / "state") as server:
            state = server.server.state
            stored = state.get(key)
            assert stored is not None
            obj = stored.decode()
            edit(obj)
            await state.put(key, obj)[1]

    assert [(await start())[0], (await start())[0]] == [1, 0]
    assert (await start("2"))[0] == 1
    await change(Key("configmaps", "default", "c"), lambda obj: obj["data"].update(a="changed"))
    assert (await start("2"))[0] == 1
    definition = Key("customresourcedefinitions.apiextensions.k8s.io", "", crd["metadata"]["name"])
    await change(definition, lambda obj: obj["metadata"].update(labels={"of": "no matter"}))
    assert (await start("2"))[0] == 0
    (tmp_path / "state" / "installed.json").write_text("{")
    count, objects = await start("2")
    assert count == 1
    assert objects["default/c"].decode()["data"] == {"a": "b"}


async def test_a_write_the_disk_refuses_is_not_acknowledged_and_reads_go_on(http: Any, server: ApiServer) -> None:
    await http("POST", CONFIG_MAPS, {"metadata": {"name": "before"}})
    store = server.server.state.store
    assert isinstance(store, SqliteStore)
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count={pages}")
    statuses = [
        (await http("POST", CONFIG_MAPS, {"metadata": {"name": f"big{n}"}, "data": {"a": "x" * 500_000}}))[0]
        for n in range(3)
    ]
    assert statuses[-1] == 500
    assert (await http("GET", f"{CONFIG_MAPS}/big2"))[0] == 404
    assert (await http("GET", f"{CONFIG_MAPS}/before"))[0] == 200
    store.connection.execute("PRAGMA max_page_count=1000000")
    assert (await http("POST", CONFIG_MAPS, {"metadata": {"name": "after"}}))[0] == 201


async def test_service_accounts_may_do_what_rbac_grants_them(http: Any) -> None:
    await http("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
    path = "/api/v1/namespaces/default/serviceaccounts/reader/token"
    status, answer = await http("POST", path, {"spec": {"expirationSeconds": 600}})
    assert status == 201
    token = answer["status"]["token"]
    status, denied = await http("GET", CONFIG_MAPS, token=token)
    assert status == 403
    assert 'User "system:serviceaccount:default:reader" cannot list resource "configmaps"' in denied["message"]
    group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    await http("POST", f"{group}/roles", {"metadata": {"name": "r"}, "rules": rules})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader"}],
    }
    await http("POST", f"{group}/rolebindings", binding)
    assert (await http("GET", CONFIG_MAPS, token=token))[0] == 200
    assert (await http("DELETE", f"{CONFIG_MAPS}/x", token=token))[0] == 403
    await http("DELETE", "/api/v1/namespaces/default/serviceaccounts/reader")
    assert (await http("GET", CONFIG_MAPS, token=token))[0] == 401  # the account is gone, and so is its token


@pytest.mark.parametrize("change", ["signature", "algorithm", "garbage"])
async def test_a_forged_token_is_refused(http: Any, change: str) -> None:
    await http("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "s"}})
    _, answer = await http("POST", "/api/v1/namespaces/default/serviceaccounts/s/token", {"spec": {}})
    head, claims, signature = answer["status"]["token"].split(".")
    forged = {
        "signature": f"{head}.{claims}.{signature[::-1]}",
        "algorithm": f"eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{claims}.",
        "garbage": "not.a.token",
    }[change]
    assert (await http("GET", "/version", token=forged))[0] == 401


async def test_further_users_have_no_rights_of_their_own(tmp_path: Path) -> None:
    users = {"guest-token": User("guest", groups=("system:authenticated",))}
    async with ApiServer(tmp_path / "state", users=users) as server:
        import ssl

        import aiohttp

        context = ssl.create_default_context(cafile=server.ca_file)
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer guest-token"}) as session:
            async with session.get(f"{server.url}/api/v1/nodes", ssl=context) as answer:
                assert answer.status == 403
            async with session.get(f"{server.url}/version", ssl=context) as answer:
                assert answer.status == 200
