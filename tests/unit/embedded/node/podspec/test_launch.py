"""The launch of a pod: the command that its supervisor gets, and the pods that are refused."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec import support
from trainwright.embedded.node.podspec.environment import Facts, Sources, Unresolved
from trainwright.embedded.node.podspec.launch import Allocation, Launch, hostname_of, machine_variables
from trainwright.embedded.node.podspec.runs import RunOfPod
from trainwright.embedded.node.storage import volumes
from trainwright.embedded.node.supervision.tiers import T0_ISOLATION, Tier

T1 = Tier("T1", {"user": True, "mount": True, "pid": True}, "all allowed")
T0 = Tier("T0", T0_ISOLATION, "namespaces are not allowed here")


def pod(
    container: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    whole = {"name": "node", "command": ["torchrun", "train.py"], **(container or {})}
    metadata = {"name": "j-node-0-0-abcde", "namespace": "ns", "uid": "u1", "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [whole], "hostname": "j-node-0-0", "subdomain": "j", **spec}}


def launch(
    of: dict[str, Any],
    directory: Path,
    tier: Tier = T1,
    sources: Sources | None = None,
    tokens: dict[str, str] | None = None,
    run: RunOfPod | None = None,
) -> Launch:
    address = "127.64.0.1" if tier is T1 else "127.0.0.1"
    allocation = Allocation(
        directory=PodDirectory(directory),
        tier=tier,
        address=address,
        facts=Facts(address, "127.0.0.1", {}),
        machine={"PATH": "/bin"},
        notify=directory / "changes",
        run=run,
    )
    return Launch(of, allocation, sources or Sources(), tokens or {})


PORTS = {"trainwright.dev/port-variables": "PET_MASTER_PORT"}
MASTER = {"env": [{"name": "PET_MASTER_ADDR", "value": "j-node-0-0.j"}, {"name": "PET_MASTER_PORT", "value": "29500"}]}


def test_a_torch_pod_keeps_its_master_by_name_and_gets_a_port_of_its_jobs_own(tmp_path: Path) -> None:
    prepared = launch(pod(MASTER, PORTS), tmp_path)
    assert prepared.ports() == {"29500"}
    (container,) = prepared.pod_to_run({"29500": 20001})["containers"]
    assert container["env"]["PET_MASTER_ADDR"] == "j-node-0-0.j"
    assert container["env"]["PET_MASTER_PORT"] == "20001"
    assert container["env"]["HOSTNAME"] == "j-node-0-0"
    assert container["env"]["TRAINWRIGHT_POD"] == "u1"
    assert container["cwd"] == str(tmp_path / "work")


def test_without_namespaces_names_become_loopback(tmp_path: Path) -> None:
    (container,) = launch(pod(MASTER), tmp_path, T0).pod_to_run({"29500": 20001})["containers"]
    assert container["env"]["PET_MASTER_ADDR"] == "127.0.0.1"


def test_arguments_see_the_rewritten_variables(tmp_path: Path) -> None:
    container = {**MASTER, "args": ["--port=$(PET_MASTER_PORT)", "--rdzv_endpoint=j-node-0-0.j:29500"]}
    (made,) = launch(pod(container, PORTS), tmp_path).pod_to_run({"29500": 20001})["containers"]
    assert made["argv"][-2:] == ["--port=20001", "--rdzv_endpoint=j-node-0-0.j:20001"]


def test_the_machines_programs_are_found_and_its_secrets_stay_out() -> None:
    made = machine_variables({"PATH": "/usr/bin", "HOME": "/h", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x"})
    assert made["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"
    assert (made["HOME"], made["LC_ALL"]) == ("/h", "C")
    assert "AWS_SECRET_ACCESS_KEY" not in made


def test_a_machines_proxy_is_not_asked_for_the_clusters_own_services() -> None:
    environ = {"https_proxy": "http://proxy:3128", "NO_PROXY": "intra.net"}
    made = machine_variables(environ, ["op.sys.svc"])
    assert made["no_proxy"] == made["NO_PROXY"] == "intra.net,127.0.0.1,op.sys.svc"
    assert "no_proxy" not in machine_variables({}, ["op.sys.svc"])
    assert machine_variables(environ)["NO_PROXY"] == "intra.net"


def test_a_host_name_fits_the_kernels_limit() -> None:
    assert len(hostname_of({"metadata": {"name": "x" * 100}, "spec": {}})) == 63


def test_config_maps_and_secrets_become_files_at_their_mount_paths(tmp_path: Path) -> None:
    sources = Sources(
        {"c": {"data": {"hostfile": "node-0\n", "unused": ""}}},
        {"s": {"data": {"id_rsa": base64.b64encode(b"key").decode()}}},
    )
    mounts = [
        {"name": "hosts", "mountPath": "/etc/mpi"},
        {"name": "ssh", "mountPath": "/root/.ssh", "readOnly": True},
        {"name": "scratch", "mountPath": "/data", "subPath": "run-1"},
    ]
    declared = [
        {
            "name": "hosts",
            "configMap": {"name": "c", "items": [{"key": "hostfile", "path": "a/hostfile", "mode": 0o600}]},
        },
        {"name": "ssh", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "scratch", "emptyDir": {}},
    ]
    prepared = launch(pod({"volumeMounts": mounts}, volumes=declared), tmp_path, sources=sources)
    (container,) = prepared.pod_to_run({})["containers"]
    volumes.write(prepared.volumes, container["mounts"])
    by_target = {mount["target"]: mount for mount in container["mounts"]}
    hostfile = Path(by_target["/etc/mpi"]["source"], "a/hostfile")
    assert (hostfile.read_text(), hostfile.stat().st_mode & 0o777) == ("node-0\n", 0o600)
    assert not Path(by_target["/etc/mpi"]["source"], "unused").exists()
    key = Path(by_target["/root/.ssh"]["source"], "id_rsa")
    assert (key.stat().st_mode & 0o777, by_target["/root/.ssh"]["readOnly"]) == (0o400, True)
    assert Path(by_target["/data"]["source"]).is_dir()
    assert by_target["/data"]["source"].endswith("scratch/run-1")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x"])
def test_no_path_leads_out_of_its_volume(tmp_path: Path, path: str) -> None:
    mounts = [{"name": "v", "mountPath": "/v", "subPath": path}]
    prepared = launch(pod({"volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}]), tmp_path)
    with pytest.raises(Unresolved, match="leads out of its volume"):
        prepared.pod_to_run({})


def test_a_host_path_must_be_there(tmp_path: Path) -> None:
    gone = [{"name": "v", "hostPath": {"path": str(tmp_path / "gone")}}]
    with pytest.raises(Unresolved, match="does not exist"):
        launch(pod(volumes=gone), tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"container": {"command": None}}, "no image to take a default command from: set command"),
        ({"container": {"command": None, "args": ["x"]}}, "no image to take an entry point for args from: set command"),
        ({"container": {"livenessProbe": {"grpc": {"port": 1}}}}, "livenessProbe.grpc is not supported"),
        (
            {"volumes": [{"name": "v", "nfs": {"server": "x", "path": "/"}}]},
            "nfs volumes are not",
        ),
        (
            {"securityContext": {"runAsNonRoot": True}, "container": {"securityContext": {"runAsUser": 0}}},
            "breaks non-root policy",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_a_sentence(change: dict[str, Any], sentence: str) -> None:
    container = change.pop("container", None)
    (refusal,) = support.refusals(pod(container, **change), T1)
    assert sentence in refusal


def test_another_user_is_mapped_in_a_user_namespace_and_refused_without_one(tmp_path: Path) -> None:
    asking = pod({"securityContext": {"runAsGroup": 4343}}, securityContext={"runAsUser": 4242})
    assert support.refusals(asking, T1) == []
    assert launch(asking, tmp_path).pod_to_run({})["containers"][0]["runAs"] == [4242, 4343]
    (refusal,) = support.refusals(asking, T0)
    assert "runAsUser and runAsGroup cannot be honoured: there is no user namespace to map user 4242:4343" in refusal
    mine = pod(securityContext={"runAsUser": os.geteuid()})
    assert support.refusals(mine, T0) == []
    assert "runAs" not in launch(mine, tmp_path).pod_to_run({})["containers"][0]


def test_volumes_are_refused_where_nothing_can_be_mounted() -> None:
    asking = pod({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, volumes=[{"name": "v", "emptyDir": {}}])
    assert support.refusals(asking, T1) == []
    assert support.refusals(asking, T0) == [
        "container node: volumes cannot be mounted here, because namespaces are not allowed here"
    ]


def test_a_token_nobody_asked_for_is_no_reason_to_refuse(tmp_path: Path) -> None:
    mounts = [{"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    token = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    asking = pod({"volumeMounts": mounts}, volumes=[token])
    assert support.refusals(asking, T0) == []
    prepared = launch(asking, tmp_path, T0, tokens={"kube-api-access-x/token": "t"})
    assert prepared.pod_to_run({})["containers"][0]["mounts"] == []


def test_without_mounts_variables_lead_to_the_files_of_an_optional_volume(tmp_path: Path) -> None:
    at = "/var/run/secrets/kubeflow/trainer"
    container = {
        "env": [{"name": "TOKEN", "value": f"{at}/token"}, {"name": "OTHER", "value": f"{at}-of-mine/token"}],
        "volumeMounts": [{"name": "kubeflow-trainer-token", "mountPath": at, "readOnly": True}],
        "args": ["$(TOKEN)"],
    }
    sources = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    optional = {"trainwright.dev/optional-volumes": "other, kubeflow-trainer-token"}
    asking = pod(container, optional, volumes=[{"name": "kubeflow-trainer-token", "projected": sources}])
    for tier, token in ((T0, str(tmp_path / "volumes/kubeflow-trainer-token/token")), (T1, f"{at}/token")):
        assert support.refusals(asking, tier) == []
        prepared = launch(asking, tmp_path, tier, tokens={"kubeflow-trainer-token/token": "t"})
        (made,) = prepared.pod_to_run({})["containers"]
        assert (made["env"]["TOKEN"], made["argv"][-1]) == (token, token)
        assert made["env"]["OTHER"] == f"{at}-of-mine/token"
        assert [mount["target"] for mount in made["mounts"]] == ([at] if tier is T1 else [])
    volumes.write(prepared.volumes, [])
    assert (tmp_path / "volumes/kubeflow-trainer-token/token").read_text() == "t"
    assert any("is not mounted" in note for note in support.notes(asking, T0))
    assert not any("is not mounted" in note for note in support.notes(asking, T1))


def test_what_has_no_effect_is_noted() -> None:
    noted = support.notes(pod({"resources": {"limits": {"cpu": 1}}, "securityContext": {"privileged": True}}), T1)
    cpus = "the CPU limit is kept by giving the pod that many whole CPUs"
    assert noted[1:] == [cpus, "securityContext has no effect in: privileged"]


def test_a_pod_of_a_run_gets_the_run_s_output_directory_and_environment_by_name(tmp_path: Path) -> None:
    run = RunOfPod("a", tmp_path / "output", tmp_path / "environment.json")
    made = launch(pod({"args": ["$(TRAINWRIGHT_OUTPUT)/model.pt"]}), tmp_path, run=run).pod_to_run({})
    (container,) = made["containers"]
    assert container["env"]["TRAINWRIGHT_OUTPUT"] == str(tmp_path / "output")
    assert container["argv"][-1] == f"{tmp_path}/output/model.pt"
    assert made["environment"] == str(tmp_path / "environment.json")
    assert container["replaceable"] == ["PATH"], "only the machine's variables give way to the caller's"


def test_a_container_s_own_variables_win_over_the_run_s(tmp_path: Path) -> None:
    run = RunOfPod("a", tmp_path / "output", tmp_path / "environment.json")
    own = {"env": [{"name": "TRAINWRIGHT_OUTPUT", "value": "/mine"}, {"name": "PATH", "value": "/opt"}]}
    (container,) = launch(pod(own), tmp_path, run=run).pod_to_run({})["containers"]
    assert container["env"]["TRAINWRIGHT_OUTPUT"] == "/mine"
    assert container["replaceable"] == []


def test_the_run_s_working_directory_is_the_process_s(tmp_path: Path) -> None:
    of = pod({"workingDir": "/workspace"}, {"trainwright.dev/workdir": "/home/me/project"})
    assert launch(of, tmp_path).pod_to_run({})["containers"][0]["cwd"] == "/home/me/project"
    assert launch(pod({"workingDir": "/workspace"}), tmp_path).pod_to_run({})["containers"][0]["cwd"] == "/workspace"
