"""Claims, ephemeral volumes, parts of volumes, and changes of ConfigMaps that reach running pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from embedded.node.cluster import Cluster, pod, running_cluster
from embedded.node.machine import PROBED
from trainwright.api.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    STORAGE_CLASSES,
)
from trainwright.client import DeleteOptions
from trainwright.schema.jsonobject import Json

pytestmark = pytest.mark.skipif(PROBED.name == "T0", reason=PROBED.reason)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path / "state") as running:
        yield running


def claim(name: str, **spec: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": asked}


def using(name: str, script: str, volume: Json, **mount: Any) -> Json:
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/trainwright-v", **mount}]}
    return pod(name, "sh", "-c", script, container=mounts, volumes=[{"name": "v", **volume}])


async def bound(cluster: Cluster, name: str) -> Json:
    async def question() -> Json | None:
        found = await cluster.get(PERSISTENT_VOLUME_CLAIMS, name)
        return found if found and found["status"].get("phase") == "Bound" else None

    found: Json = await cluster.until(question)
    return found


async def test_a_claims_directory_outlives_its_pods_and_goes_with_the_claim(cluster: Cluster) -> None:
    volume = {"persistentVolumeClaim": {"claimName": "data"}}
    await cluster.create(PODS, using("first", "echo kept > /trainwright-v/file", volume))
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("data"))
    await cluster.until_pod("first", "Succeeded")
    found = await bound(cluster, "data")
    assert found["spec"]["storageClassName"] == "local"
    assert found["status"]["capacity"] == {"storage": "1Gi"}
    made = await cluster.client.get(PERSISTENT_VOLUMES, found["spec"]["volumeName"])
    assert (made["status"]["phase"], made["spec"]["persistentVolumeReclaimPolicy"]) == ("Bound", "Delete")
    directory = Path(made["spec"]["hostPath"]["path"])
    await cluster.client.delete(PODS, "first", "default", DeleteOptions(grace_period_seconds=0))
    await cluster.stop_node()
    await cluster.start_node()
    wait = "cat /trainwright-v/file; while [ -e /trainwright-v/file ]; do sleep 0.05; done"
    await cluster.create(PODS, using("second", wait, volume))
    await cluster.until_pod("second", "Running")

    async def has_read() -> bool:
        return await cluster.log("second") == "kept\n"

    await cluster.until(has_read)
    await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    assert (await cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")) is not None, "a pod uses it"
    (directory / "file").unlink()
    await cluster.until_pod("second", "Succeeded")
    await cluster.until_gone(PERSISTENT_VOLUME_CLAIMS, "data")

    async def given_back() -> bool:
        return not directory.exists() and not (await cluster.client.list(PERSISTENT_VOLUMES)).items

    await cluster.until(given_back)


async def test_a_class_may_say_that_data_stays_and_one_that_is_not_there_is_stood_in_for(cluster: Cluster) -> None:
    kept = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "kept"}}
    await cluster.client.create(STORAGE_CLASSES, {**kept, "provisioner": "x", "reclaimPolicy": "Retain"})
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("a", storageClassName="kept"))
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("b", storageClassName="gp3"))
    names = {name: (await bound(cluster, name))["spec"]["volumeName"] for name in "ab"}
    for name in "ab":
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")

    async def released() -> bool:
        found = {
            volume["metadata"]["name"]: volume["status"]["phase"]
            for volume in (await cluster.client.list(PERSISTENT_VOLUMES)).items or []
        }
        return found == {names["a"]: "Released"}

    await cluster.until(released)


async def test_a_volume_that_somebody_made_is_bound_to_the_claim_that_wants_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("mine\n")
    spec = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "mine"}}
    await cluster.client.create(
        PERSISTENT_VOLUMES, {**body, "spec": {**spec, "hostPath": {"path": str(tmp_path / "data")}}}
    )
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("data", storageClassName=""))
    volume = {"persistentVolumeClaim": {"claimName": "data"}}
    await cluster.create(PODS, using("p", "cat /trainwright-v/file", volume))
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "mine\n"


async def test_an_ephemeral_volume_is_a_claim_that_goes_with_its_pod(cluster: Cluster) -> None:
    volume = {"ephemeral": {"volumeClaimTemplate": {"spec": claim("")["spec"]}}}
    await cluster.create(PODS, using("p", "echo x > /trainwright-v/x; ls /trainwright-v", volume))
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "x\n"
    await bound(cluster, "p-v")
    await cluster.client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))
    await cluster.until_gone(PERSISTENT_VOLUME_CLAIMS, "p-v")


async def test_a_pod_whose_claim_is_missing_says_so(cluster: Cluster) -> None:
    await cluster.create(PODS, using("p", "true", {"persistentVolumeClaim": {"claimName": "nope"}}))

    async def waiting() -> str | None:
        found = await cluster.get(PODS, "p") or {}
        for status in found.get("status", {}).get("containerStatuses", ()):
            return str(status["state"]["waiting"].get("message"))
        return None

    assert await cluster.until(waiting) == 'persistentvolumeclaim "nope" not found'


async def test_parts_of_a_volume_are_mounted_by_name_and_by_variable(cluster: Cluster) -> None:
    mounts = [
        {"name": "v", "mountPath": "/trainwright-a", "subPath": "shared/a"},
        {"name": "v", "mountPath": "/trainwright-b", "subPathExpr": "$(POD)"},
        {"name": "v", "mountPath": "/trainwright-all"},
    ]
    name = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    script = "echo a > /trainwright-a/x; echo b > /trainwright-b/y; cd /trainwright-all; cat shared/a/x p/y"
    container = {"volumeMounts": mounts, "env": [name]}
    body = pod("p", "sh", "-c", script, container=container, volumes=[{"name": "v", "emptyDir": {}}])
    await cluster.create(PODS, body)
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "a\nb\n"


async def test_changes_of_config_maps_and_secrets_reach_running_pods_all_at_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainwright.embedded.node.storage.content.LOOK_SECONDS", 0.2)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "old"}}
    await cluster.create(CONFIG_MAPS, {**config, "data": {"a": "old", "b": "old", "gone": "x"}})
    await cluster.create(SECRETS, secret)
    sources = [
        {"configMap": {"name": "c"}},
        {"secret": {"name": "s", "items": [{"key": "key", "path": "deep/key", "mode": 0o400}]}},
        {"configMap": {"name": "absent", "optional": True}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    volume = {"projected": {"sources": sources, "defaultMode": 0o440}}
    script = (
        "cd /trainwright-v; cat a b deep/key; echo; while :; do d=$(readlink ..data); "
        'if [ "$(cat $d/a 2>/dev/null)" = new ]; then cat $d/a $d/b; break; fi; sleep 0.02; done; '
        "while grep -q old deep/key; do sleep 0.05; done; cat deep/key; echo; ls; "
        "stat -L -c %a a deep/key; test -s token"
    )
    body = using("p", script, volume, readOnly=True)
    body["spec"]["serviceAccountName"] = "default"
    await cluster.create(PODS, body)
    await cluster.until_pod("p", "Running")
    await cluster.client.patch(
        CONFIG_MAPS, {"data": {"a": "new", "b": "new", "gone": None, "more": "y"}}, name="c", namespace="default"
    )
    await cluster.client.patch(SECRETS, {"stringData": {"key": "fresh"}}, name="s", namespace="default")
    await cluster.until_pod("p", "Succeeded")
    assert (await cluster.log("p")).split() == [
        *("oldoldold", "newnewfresh", "a", "b", "deep", "more", "token", "440", "400")
    ]
