"""Deletion: at once, or marked until the last finalizer goes; preconditions, policies, grace."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import Deleted, DeleteOptions, Deletion
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, in_place
from trainwright.embedded.apiserver.storage.store import Key

KEY = Key("configmaps", "default", "c")
POD = Key("pods", "default", "p")


async def config_map(core: Any, **metadata: Any) -> Any:
    return await core.create("configmaps", {"metadata": {"name": "c", **metadata}})


async def delete(core: Any, key: Key = KEY, **options: Any) -> Deleted:
    return await deletion.delete(core.api, Deletion(core.served(key.resource), key, SYSTEM, DeleteOptions(**options)))


async def test_an_object_without_finalizers_goes_at_once(core: Any) -> None:
    await config_map(core)
    assert (await delete(core)).gone
    assert core.state.get(KEY) is None
    with pytest.raises(StatusError, match='configmaps "c" not found'):
        await delete(core)


async def test_an_object_with_finalizers_is_marked_and_goes_with_the_last(core: Any) -> None:
    await config_map(core, finalizers=["example.com/hold"])
    assert not (await delete(core)).gone
    marked = core.state.get(KEY).decode()["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 0
    assert marked["deletionTimestamp"]

    let_go = in_place(lambda obj: obj["metadata"].pop("finalizers"))
    await update(core.api, Write(core.served("configmaps"), KEY, SYSTEM, WriteOptions(), let_go))
    assert core.state.get(KEY) is None


async def test_deleting_twice_changes_nothing_the_second_time(core: Any) -> None:
    await config_map(core, finalizers=["example.com/hold"])
    await delete(core)
    version = core.state.get(KEY).version
    await delete(core)
    assert core.state.get(KEY).version == version


async def test_a_dry_run_leaves_it_there(core: Any) -> None:
    await config_map(core)
    assert (await delete(core, dry_run=True)).gone
    assert core.state.get(KEY) is not None


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"policy": "Foreground"}, ["foregroundDeletion"]),
        ({"policy": "Orphan"}, ["orphan"]),
        ({"orphan": True}, ["orphan"]),
    ],
)
async def test_policies_are_finalizers(core: Any, options: Any, finalizers: list[str]) -> None:
    await config_map(core)
    assert not (await delete(core, **options)).gone
    assert core.state.get(KEY).decode()["metadata"]["finalizers"] == finalizers


async def test_a_later_policy_takes_the_place_of_an_earlier_one(core: Any) -> None:
    await config_map(core, finalizers=["example.com/hold"])
    await delete(core, policy="Foreground")
    await delete(core, policy="Orphan")
    assert core.state.get(KEY).decode()["metadata"]["finalizers"] == ["example.com/hold", "orphan"]
    await delete(core, policy="Background")
    assert core.state.get(KEY).decode()["metadata"]["finalizers"] == ["example.com/hold"]


async def test_preconditions_must_hold(core: Any) -> None:
    made = await config_map(core)
    with pytest.raises(StatusError, match=r"the UID in the precondition \(x\) does not match"):
        await delete(core, uid="x")
    with pytest.raises(StatusError, match=r"the ResourceVersion in the precondition \(1\) does not match"):
        await delete(core, version="1")
    meta = made["metadata"]
    assert (await delete(core, uid=meta["uid"], version=meta["resourceVersion"])).gone


@pytest.mark.parametrize("options", [{"policy": "Sideways"}, {"policy": "Orphan", "orphan": True}])
async def test_policies_that_make_no_sense_are_refused(core: Any, options: Any) -> None:
    await config_map(core)
    with pytest.raises(StatusError, match="propagationPolicy") as found:
        await delete(core, **options)
    assert found.value.code == 422
    assert core.state.get(KEY) is not None


async def pod(core: Any, node: str = "") -> None:
    spec = {"containers": [{"name": "a", "image": "i"}], **({"nodeName": node} if node else {})}
    await core.create("pods", {"metadata": {"name": "p"}, "spec": spec})


async def test_a_pod_without_a_node_goes_at_once(core: Any) -> None:
    await pod(core)
    assert (await delete(core, POD)).gone


async def test_a_pod_on_a_node_gets_its_grace_which_can_only_be_shortened(core: Any) -> None:
    await pod(core, "n1")
    assert not (await delete(core, POD)).gone
    assert core.state.get(POD).decode()["metadata"]["deletionGracePeriodSeconds"] == 30
    await delete(core, POD, grace=40)
    assert core.state.get(POD).decode()["metadata"]["deletionGracePeriodSeconds"] == 30
    await delete(core, POD, grace=5)
    assert core.state.get(POD).decode()["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await delete(core, POD, grace=0)).gone
