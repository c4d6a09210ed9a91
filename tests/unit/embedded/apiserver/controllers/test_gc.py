"""The garbage collector's decisions, one object at a time."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.controllers.gc import GarbageCollector
from trainwright.embedded.apiserver.controllers.supervisor import Supervision
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import DeleteOptions, Deletion
from trainwright.embedded.apiserver.storage.store import Key


def key(name: str, namespace: str = "default") -> Key:
    return Key("configmaps", namespace, name)


async def make(core: Any, name: str, *owners: Any, block: bool = False) -> Any:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return await core.create("configmaps", {"metadata": {"name": name, "ownerReferences": references}})


async def delete(core: Any, name: str, policy: str = "Background") -> None:
    options = DeleteOptions(policy=policy)
    await deletion.delete(core.api, Deletion(core.served("configmaps"), key(name), SYSTEM, options))


async def collect(core: Any) -> None:
    """Look at everything until nothing changes any more."""
    collector = GarbageCollector(core.api)
    version = -1
    while version != core.state.version:
        version = core.state.version
        for found in list(core.state.table("configmaps").objects.values()):
            await collector.look_at(found.key)


def left(core: Any) -> list[str]:
    return [stored.key.name for stored in core.state.table("configmaps").select("default")]


def owners(core: Any, name: str) -> list[str]:
    metadata = core.state.get(key(name)).decode()["metadata"]
    return [reference["name"] for reference in metadata.get("ownerReferences", [])]


async def test_dependents_follow_their_owner_all_the_way_down(core: Any) -> None:
    child = await make(core, "child", await make(core, "owner"))
    await make(core, "grandchild", child)
    await delete(core, "owner")
    await collect(core)
    assert left(core) == []


async def test_a_dependent_with_another_owner_stays_and_forgets_the_first(core: Any) -> None:
    await make(core, "child", await make(core, "one"), await make(core, "two"))
    await delete(core, "one")
    await collect(core)
    assert left(core) == ["child", "two"]
    assert owners(core, "child") == ["two"]


async def test_an_orphan_stays_without_its_owner(core: Any) -> None:
    await make(core, "child", await make(core, "owner"))
    await delete(core, "owner", "Orphan")
    await collect(core)
    assert left(core) == ["child"]
    assert owners(core, "child") == []


async def test_in_the_foreground_the_owner_goes_last(core: Any) -> None:
    await make(core, "child", await make(core, "owner"), block=True)
    await core.create("configmaps", {"metadata": {"name": "other"}})
    await delete(core, "owner", "Foreground")
    assert left(core) == ["child", "other", "owner"]
    collector = GarbageCollector(core.api)
    await collector.look_at(key("owner"))
    assert left(core) == ["other"]


async def test_a_dependent_that_does_not_block_is_not_waited_for(core: Any) -> None:
    owner = await make(core, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "child", "ownerReferences": [reference], "finalizers": ["example.com/hold"]}
    await core.create("configmaps", {"metadata": metadata})
    await delete(core, "owner", "Foreground")
    await collect(core)
    assert left(core) == ["child"]
    assert core.state.get(key("child")).deleting


async def test_a_blocking_dependent_that_is_held_holds_its_owner(core: Any) -> None:
    owner = await make(core, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "child", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}
    await core.create("configmaps", {"metadata": {**metadata, "finalizers": ["example.com/hold"]}})
    await delete(core, "owner", "Foreground")
    await collect(core)
    assert left(core) == ["child", "owner"]


async def test_an_owner_of_another_name_kind_or_uid_is_no_owner(core: Any) -> None:
    owner = await make(core, "owner")
    right = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    wrongs = {"a": {"name": "other"}, "b": {"kind": "Secret"}, "c": {"uid": "unknown"}, "d": {}}
    for name, wrong in wrongs.items():
        await core.create("configmaps", {"metadata": {"name": name, "ownerReferences": [{**right, **wrong}]}})
    await collect(core)
    assert left(core) == ["d", "owner"]


async def test_events_wake_it_for_dependents_of_what_went(core: Any) -> None:
    owner = await make(core, "owner")
    await make(core, "child", owner)
    async with Supervision([GarbageCollector(core.api)], core.state):
        await delete(core, "owner")
        assert left(core) == ["child"]
        await core.clock.advance(0.01)
        assert left(core) == []
