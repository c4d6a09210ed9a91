"""JobSets become Jobs, pods and processes and complete, over real HTTP; failures, restarts and deletions on the way."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.node.cluster import Cluster, conditions, job_set, pod, running_cluster
from embedded.node.machine import PROBED, processes_marked
from trainwright.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOB_SETS,
    JOBS,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from trainwright.client import ApiError, DeleteOptions
from trainwright.embedded.node.pods.record import PodDirectory, supervisor_of
from trainwright.embedded.node.supervision import tiers
from trainwright.schema.jsonobject import Json
from waiting import until

namespaces_only = pytest.mark.skipif(PROBED.name == "T0", reason=PROBED.reason)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as running:
        yield running


def directory_of(cluster: Cluster, uid: str) -> PodDirectory:
    return PodDirectory(cluster.directory / "node" / "pods" / uid)


def has_ended(cluster: Cluster, uid: str) -> bool:
    record = directory_of(cluster, uid).record()
    return record is not None and bool(record["done"])


def supervisor_pid(cluster: Cluster, uid: str) -> int:
    record = directory_of(cluster, uid).record()
    assert record is not None
    return supervisor_of(record).pid


async def test_a_jobset_runs_to_completion_with_kubernetes_own_traces(cluster: Cluster) -> None:
    await cluster.create(JOB_SETS, job_set("a", "sh", "-c", "echo rank $JOB_COMPLETION_INDEX on $HOSTNAME"))
    status = await cluster.until_job_set_ends("a")
    assert conditions(status) == {"Completed": ("True", "AllJobsCompleted")}
    job = await cluster.job("a-node-0")
    assert (job["status"]["succeeded"], job["status"]["completedIndexes"]) == (2, "0,1")
    first, second = await cluster.pods_of("a")
    assert first["metadata"]["name"].startswith("a-node-0-0-")
    assert second["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert second["status"]["phase"] == "Succeeded"
    assert await cluster.log(second["metadata"]["name"]) == "rank 1 on a-node-0-1\n"
    service = await cluster.get(SERVICES, "a")
    assert service is not None
    assert service["spec"]["clusterIP"] == "None"


async def test_a_failing_rank_ends_the_others_and_fails_the_jobset(cluster: Cluster) -> None:
    script = "echo before; if [ $JOB_COMPLETION_INDEX = 1 ]; then echo boom; exit 3; fi; sleep 600"
    await cluster.create(JOB_SETS, job_set("f", "sh", "-c", script))
    status = await cluster.until_job_set_ends("f")
    assert conditions(status) == {"Failed": ("True", "FailedJobs")}
    assert conditions((await cluster.job("f-node-0"))["status"])["Failed"] == ("True", "BackoffLimitExceeded")
    (failed,) = [p for p in await cluster.pods_of("f") if p["status"].get("phase") == "Failed"]
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert (await cluster.log(failed["metadata"]["name"])).endswith("boom\n")


async def test_deleting_a_jobset_leaves_no_process_behind(cluster: Cluster) -> None:
    stubborn = "trap '' TERM; sleep 600 & wait; sleep 600"
    await cluster.create(JOB_SETS, job_set("d", "sh", "-c", stubborn, grace=1))

    async def running() -> bool:
        return [p["status"].get("phase") for p in await cluster.pods_of("d")] == ["Running", "Running"]

    await cluster.until(running)
    uids = [p["metadata"]["uid"] for p in await cluster.pods_of("d")]
    await cluster.client.delete(JOB_SETS, "d", "default")

    async def gone() -> bool:
        return not await cluster.pods_of("d")

    await cluster.until(gone)
    assert [processes_marked(uid) for uid in uids] == [[], []]

    async def tidy() -> bool:
        return not any(directory_of(cluster, uid).path.exists() for uid in uids)

    await cluster.until(tidy)


async def test_a_restart_begins_when_nothing_of_the_old_attempt_is_left(cluster: Cluster, tmp_path: Path) -> None:
    first = f"sleep 0.2; mkdir {tmp_path}/once 2>/dev/null && exit 1; exit 0"
    script = f"if [ $JOB_COMPLETION_INDEX = 0 ]; then {first}; fi; sleep 0.5"
    await cluster.create(JOB_SETS, job_set("r", "sh", "-c", script, failurePolicy={"maxRestarts": 3}))
    status = await cluster.until_job_set_ends("r")
    assert conditions(status)["Completed"] == ("True", "AllJobsCompleted")
    assert status["restarts"] == 1
    current = await cluster.pods_of("r")
    assert {p["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for p in current} == {"1"}


async def test_suspend_ends_pods_and_resume_runs_them_anew(cluster: Cluster) -> None:
    await cluster.create(JOB_SETS, job_set("s", "sh", "-c", "sleep 0.7; echo done", suspend=True))

    async def suspended() -> bool:
        return (
            conditions((await cluster.get(JOB_SETS, "s") or {}).get("status", {})).get("Suspended", ("",))[0] == "True"
        )

    async def jobs_ready() -> bool:
        return bool((await cluster.job("s-node-0"))["status"].get("ready") == 2)

    async def no_pods() -> bool:
        return not await cluster.pods_of("s")

    await cluster.until(suspended)
    assert await no_pods()
    await cluster.client.patch(JOB_SETS, {"spec": {"suspend": False}}, name="s", namespace="default")
    await cluster.until(jobs_ready)
    await cluster.client.patch(JOB_SETS, {"spec": {"suspend": True}}, name="s", namespace="default")
    await cluster.until(no_pods)
    assert await suspended()
    await cluster.client.patch(JOB_SETS, {"spec": {"suspend": False}}, name="s", namespace="default")
    status = await cluster.until_job_set_ends("s")
    assert conditions(status) == {"Suspended": ("False", "ResumeJobs"), "Completed": ("True", "AllJobsCompleted")}


async def test_a_new_node_adopts_running_pods_and_learns_true_exit_codes(cluster: Cluster, tmp_path: Path) -> None:
    """One pod ends while no node is there, one runs on, one is deleted, one is removed by force."""
    gate = tmp_path / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    await cluster.create(PODS, pod("ends", "sh", "-c", "echo up; sleep 0.5; exit 6"))
    await cluster.create(PODS, pod("runs", "sh", "-c", f"echo up; {wait}; exit 7"))
    await cluster.create(PODS, pod("deleted", "sh", "-c", "echo up; sleep 600"))
    await cluster.create(PODS, pod("forced", "sh", "-c", "echo up; sleep 600"))
    pods = {name: await cluster.until_pod(name, "Running") for name in ("ends", "runs", "deleted", "forced")}
    supervisors = {name: supervisor_pid(cluster, p["metadata"]["uid"]) for name, p in pods.items()}
    await cluster.stop_node()
    await cluster.client.delete(PODS, "deleted", "default", DeleteOptions(grace_period_seconds=1))
    await cluster.client.delete(PODS, "forced", "default", DeleteOptions(grace_period_seconds=0))
    await until("the pod to end while no node is there", lambda: has_ended(cluster, pods["ends"]["metadata"]["uid"]))
    await cluster.start_node()
    ended = await cluster.until_pod("ends", "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 6
    assert supervisor_pid(cluster, pods["runs"]["metadata"]["uid"]) == supervisors["runs"]
    gate.touch()
    ended = await cluster.until_pod("runs", "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert await cluster.log("runs") == "up\n"
    await cluster.until_gone(PODS, "deleted")

    async def forced_is_gone() -> bool:
        return not directory_of(cluster, pods["forced"]["metadata"]["uid"]).path.exists()

    await cluster.until(forced_is_gone)
    for name in ("deleted", "forced"):
        assert processes_marked(pods[name]["metadata"]["uid"]) == []


async def test_torn_files_of_a_crashed_machine_fail_their_pod_and_nothing_else(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p", "sleep", "600"))
    await cluster.create(PODS, pod("q", "sleep", "600"))
    torn, whole = await cluster.until_pod("p", "Running"), await cluster.until_pod("q", "Running")
    await cluster.stop_node()
    directory = directory_of(cluster, torn["metadata"]["uid"])
    os.kill(supervisor_pid(cluster, torn["metadata"]["uid"]), signal.SIGKILL)
    (directory.path / "pod.json").write_text("")
    (directory.path / "record.json").write_text('{"uid": ')
    await cluster.start_node()
    failed = await cluster.until_pod("p", "Failed")
    assert failed["status"]["reason"] == "SupervisorLost"
    assert await cluster.until_pod("q", "Running")
    assert len(processes_marked(whole["metadata"]["uid"])) == 1


async def test_kill_9_of_a_supervisor_fails_its_pod_within_two_seconds(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p", "sh", "-c", "sleep 600 & sleep 600"))
    running = await cluster.until_pod("p", "Running")
    os.kill(supervisor_pid(cluster, running["metadata"]["uid"]), signal.SIGKILL)
    failed = await cluster.until_pod("p", "Failed", seconds=2)
    assert failed["status"]["reason"] == "SupervisorLost"
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert processes_marked(running["metadata"]["uid"]) == []


async def test_what_the_node_cannot_do_is_said_in_the_pods_status(cluster: Cluster) -> None:
    await cluster.create(PODS, pod("p", container={"command": None}))
    failed = await cluster.until_pod("p", "Failed")
    assert failed["status"]["reason"] == "NotSupported"
    assert failed["status"]["message"] == ("container c: there is no image to take a default command from: set command")


async def test_a_pod_that_fits_no_node_now_says_why_it_waits(cluster: Cluster) -> None:
    (node,) = (await cluster.client.list(NODES)).items or []
    wants = {"resources": {"requests": {"cpu": node["status"]["allocatable"]["cpu"]}}}
    await cluster.create(PODS, pod("first", "sleep", "600", container=wants))
    await cluster.until_pod("first", "Running")
    await cluster.create(PODS, pod("p", "true", container=wants))

    async def told() -> str | None:
        found = await cluster.get(PODS, "p") or {}
        for condition in found.get("status", {}).get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition["message"])
        return None

    assert (await cluster.until(told)).startswith("0/1 nodes are available: 1 Insufficient cpu. ")


async def test_a_missing_config_map_is_waited_for_and_named(cluster: Cluster) -> None:
    origin = {"configMapKeyRef": {"name": "settings", "key": "lr"}}
    container = {"command": ["sh", "-c", "echo lr is $LR"], "env": [{"name": "LR", "valueFrom": origin}]}
    await cluster.create(PODS, pod("p", container=container))

    async def waiting() -> dict[str, str] | None:
        found = await cluster.get(PODS, "p") or {}
        for status in found.get("status", {}).get("containerStatuses", ()):
            if "waiting" in status["state"]:
                waits: dict[str, str] = status["state"]["waiting"]
                return waits
        return None

    assert await cluster.until(waiting) == {
        "reason": "CreateContainerConfigError",
        "message": 'configmap "settings" not found',
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"lr": "0.1"}}
    await cluster.create(CONFIG_MAPS, body)
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "lr is 0.1\n"


@namespaces_only
async def test_volumes_reach_the_container_at_their_paths(cluster: Cluster) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"hostfile": "node-0\n"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "secret"}}
    await cluster.create(CONFIG_MAPS, config)
    await cluster.create(SECRETS, secret)
    mounts = [
        {"name": "hosts", "mountPath": "/etc/trainwright-mpi"},
        {"name": "key", "mountPath": "/trainwright-ssh"},
        {"name": "shared", "mountPath": "/trainwright-shared"},
        {"name": "about", "mountPath": "/trainwright-about"},
    ]
    declared = [
        {"name": "hosts", "configMap": {"name": "c"}},
        {"name": "key", "secret": {"secretName": "s"}},
        {"name": "shared", "emptyDir": {}},
        {"name": "about", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    read = "cat /etc/trainwright-mpi/hostfile /trainwright-ssh/key /trainwright-about/name /trainwright-shared/x"
    init = {"name": "i", "image": "none", "command": ["sh", "-c", "echo ' shared' > /trainwright-shared/x"]}
    container = {"command": ["sh", "-c", read], "volumeMounts": mounts}
    body = pod("p", container=container, volumes=declared, initContainers=[{**init, "volumeMounts": mounts}])
    await cluster.create(PODS, body)
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "node-0\nsecretp shared\n"


@namespaces_only
async def test_a_pod_gets_a_token_for_its_service_account_with_the_audience_asked_for(cluster: Cluster) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}}
    await cluster.create(SERVICE_ACCOUNTS, account)
    asked = {"path": "token", "audience": "trainer.kubeflow.org", "expirationSeconds": 3600}
    declared = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": asked}]}}]
    container = {
        "command": ["cat", "/var/run/secrets/trainwright-test/token"],
        "volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/trainwright-test", "readOnly": True}],
    }
    await cluster.create(PODS, pod("p", container=container, volumes=declared, serviceAccountName="trainer"))
    finished = await cluster.until_pod("p", "Succeeded")
    claims = (await cluster.log("p")).split(".")[1]
    token = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert token["aud"] == ["trainer.kubeflow.org"]
    assert token["kubernetes.io"]["pod"]["uid"] == finished["metadata"]["uid"]


@namespaces_only
async def test_a_running_pod_sees_its_token_renewed_by_the_node_that_adopts_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    asked = {"path": "token", "audience": "somebody", "expirationSeconds": 3600}
    declared = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": asked}]}}]
    at, first, second = "/var/run/secrets/trainwright-test", tmp_path / "first", tmp_path / "second"
    script = (
        f"cat {at}/token > {first}; while cmp -s {at}/token {first}; do sleep 0.05; done; cat {at}/token > {second}"
    )
    container = {"volumeMounts": [{"name": "t", "mountPath": at, "readOnly": True}]}
    started = await cluster.create(
        PODS, pod("p", "sh", "-c", script, container=container, volumes=declared, serviceAccountName="default")
    )
    await cluster.until_pod("p", "Running")
    await cluster.stop_node()
    directory_of(cluster, started["metadata"]["uid"]).write_token_times({"t/token": 0.0})  # long overdue
    await cluster.start_node()
    await cluster.until_pod("p", "Succeeded")
    ended, running = (file.read_text().split(".") for file in (first, second))
    assert len(running) == 3
    assert running != ended


async def test_logs_follow_tail_and_tell_what_is_wrong(cluster: Cluster, tmp_path: Path) -> None:
    script = f"echo one; echo two; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo three"
    await cluster.create(PODS, pod("p", "sh", "-c", script))
    await cluster.until_pod("p", "Running")
    lines: list[str] = []

    async def follow() -> None:
        async with cluster.client.logs("p", "default", follow=True) as stream:
            async for line in stream.lines():
                lines.append(line.decode().strip())
                if len(lines) == 2:
                    (tmp_path / "go").touch()

    await asyncio.wait_for(follow(), 20)
    assert lines == ["one", "two", "three"]
    assert await cluster.log("p", tail_lines=1) == "three\n"
    stamped = await cluster.log("p", timestamps=True)
    assert all(line.split(" ", 1)[0].endswith("Z") for line in stamped.splitlines())
    with pytest.raises(ApiError, match='previous terminated container "c" in pod "p" not found'):
        await cluster.log("p", previous=True)
    with pytest.raises(ApiError, match="container x is not valid for pod p"):
        await cluster.log("p", container="x")


async def test_nothing_is_left_when_the_cluster_ends_in_the_middle_of_a_start(cluster: Cluster) -> None:
    created = [await cluster.create(PODS, pod(f"p{number}", "sleep", "600")) for number in range(4)]

    async def one_has_begun() -> bool:
        return any(directory_of(cluster, p["metadata"]["uid"]).path.exists() for p in created)

    await cluster.until(one_has_begun)
    await cluster.stop_node()
    await cluster.node.end_pods(0)
    assert [processes_marked(p["metadata"]["uid"]) for p in created] == [[]] * 4
    await asyncio.sleep(0.5)
    assert [processes_marked(p["metadata"]["uid"]) for p in created] == [[]] * 4
    await cluster.start_node()


async def test_the_node_tells_its_tier_capacity_and_address(cluster: Cluster) -> None:
    node = await cluster.client.get(NODES, "local")
    assert node["metadata"]["annotations"]["trainwright.dev/tier"] == PROBED.name
    assert node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == cluster.node.port
    assert int(node["status"]["allocatable"]["cpu"]) >= 1
    assert conditions(node["status"])["Ready"][0] == "True"


async def test_a_settled_cluster_writes_nothing(cluster: Cluster) -> None:
    await cluster.create(JOB_SETS, job_set("a", "sleep", "600"))

    async def ready() -> bool:
        status = (await cluster.get(JOB_SETS, "a") or {}).get("status", {})
        return bool(status.get("replicatedJobsStatus", [{}])[0].get("ready") == 1)

    await cluster.until(ready)

    async def versions() -> dict[str, str]:
        found = {}
        for resource in (JOB_SETS, JOBS, PODS, NODES, EVENTS):
            for thing in (await cluster.client.list(resource)).items or []:
                found[f"{resource.plural}/{thing['metadata']['name']}"] = thing["metadata"]["resourceVersion"]
        return found

    await asyncio.sleep(0.5)
    before = await versions()
    for name in (p["metadata"]["name"] for p in await cluster.pods_of("a")):
        label = {"metadata": {"labels": {"touched": "by-somebody"}}}  # makes every controller look again
        await cluster.client.patch(PODS, label, name=name, namespace="default")
    await asyncio.sleep(0.5)
    after = await versions()
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {f"pods/{p['metadata']['name']}" for p in await cluster.pods_of("a")}


TRAINING = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
rank, size, port = dist.get_rank(), dist.get_world_size(), os.environ["MASTER_PORT"]
# One write for each line: torchrun runs Python unbuffered, where print writes text and newline apart, and lines of
# ranks that share a pod's pipe would mix.
sys.stdout.write(f"rank {rank} of {size} sum {int(total)} port {port}\\n")
dist.destroy_process_group()
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "tier",
    [pytest.param(None, id="probed"), pytest.param(tiers.plain("asked for by the test"), id="T0")],
)
async def test_torch_trains_across_two_pods_and_two_jobs_do_not_meet(tmp_path: Path, tier: tiers.Tier | None) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(TRAINING)

    def torch_job(name: str) -> dict[str, object]:
        rank = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
        env: list[Json] = [
            {"name": "PET_NNODES", "value": "2"},
            {"name": "PET_NPROC_PER_NODE", "value": "2"},
            {"name": "PET_NODE_RANK", "valueFrom": rank},
            {"name": "PET_MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
            {"name": "PET_MASTER_PORT", "value": "29500"},
        ]
        ports = {"trainwright.dev/port-variables": "PET_MASTER_PORT"}
        return job_set(name, sys.executable, "-m", "torch.distributed.run", str(script), env=env, annotations=ports)

    names = ("one", "two") if tier is None else ("one",)
    async with running_cluster(tmp_path / "cluster", tier) as cluster:
        for name in names:
            await cluster.create(JOB_SETS, torch_job(name))
        ports = set()
        for name in names:
            status = await cluster.until_job_set_ends(name, 200)
            said = "".join([await cluster.log(p["metadata"]["name"]) for p in await cluster.pods_of(name)])
            assert conditions(status) == {"Completed": ("True", "AllJobsCompleted")}, said
            ranks = [line.split() for line in said.splitlines() if line.startswith("rank ")]
            assert sorted(words[1] for words in ranks) == ["0", "1", "2", "3"]
            assert {words[5] for words in ranks} == {"10"}
            ports |= {words[7] for words in ranks}
        assert len(ports) == len(names)
