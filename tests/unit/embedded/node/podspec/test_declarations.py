"""What plugins declare about ports and volumes reaches the node: from a TrainJob to a container's variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.trainjob import TrainJob
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec.declarations import Declarations, declared
from trainwright.embedded.node.podspec.environment import Facts, Sources
from trainwright.embedded.node.podspec.launch import Allocation, Launch
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.jobset import children
from trainwright.embedded.workloads.jobset.defaults import defaulted
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.info import Info
from trainwright.pipeline.podset import env_var
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.pipeline.objects import job_of_runtime, runtime, trainjob


class Ring:
    """A made-up framework: every node connects to one port, named in a variable and in a flag."""

    name = "Ring"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        if info.trainer is not None and (container := info.trainer_container) is not None:
            container.set_env(env_var("RING_PORT", "7000"), env_var("RING_BIND", "0.0.0.0:7001"))
            info.trainer.tell_local_node("trainwright.dev/port-variables", "RING_PORT", "RING_BIND")
            info.trainer.tell_local_node("trainwright.dev/port-flags", "--ring-port")


def pod_of(policy: Json, command: list[str], annotations: dict[str, str] | None = None) -> Json:
    """The first pod of the TrainJob, as plugins, JobSet controller and Job controller make it."""
    template = job_of_runtime()
    template["template"]["spec"]["template"]["metadata"] = {"annotations": annotations}
    framework = load(discovered={"ring": Ring}, progress_server="https://op.sys.svc:1")
    job = trainjob({"command": command})
    here = Observed(ca_certificate="PEM", local_node=True)
    made = build(job, runtime(template, policy=policy), here, framework, MaskedKeys())
    spec = defaulted(next(i.object for i in made.objects if i.object["kind"] == "JobSet")["spec"])
    job_set = ApiObject(ObjectMeta(name="tj", namespace="ns", uid="u"), spec)
    child = children.job(job_set, spec, spec["replicatedJobs"][0], 0)
    job_metadata = ObjectMeta(name=child["metadata"]["name"], namespace="ns", uid="v")
    pod = pods.build(ApiObject(job_metadata, child["spec"]), 0, "tj-node-0-0-abcde")
    pod["metadata"]["uid"] = "w"
    return pod


def launch(pod: Json, directory: Path) -> Launch:
    allocation = Allocation(
        directory=PodDirectory(directory),
        tier=Tier("T1", {"user": True, "mount": True, "pid": True}, ""),
        address="127.64.0.1",
        facts=Facts("127.64.0.1", "127.0.0.1", {}),
        machine={},
        notify=directory / "changes",
    )
    config_map = {"data": {"ca.crt": "PEM"}}
    return Launch(pod, allocation, Sources({"tj-tls-config": config_map}), {})


def test_a_made_up_plugins_ports_become_the_jobs_own(tmp_path: Path) -> None:
    prepared = launch(pod_of({"numNodes": 2}, ["ring", "--ring-port=7000"]), tmp_path)
    assert prepared.ports() == {"7000", "7001"}
    (container,) = prepared.pod_to_run({"7000": 20001, "7001": 20002})["containers"]
    assert (container["env"]["RING_PORT"], container["env"]["RING_BIND"]) == ("20001", "0.0.0.0:20002")
    assert container["argv"] == ["ring", "--ring-port=20001"]


@pytest.mark.parametrize(
    ("policy", "command", "variable", "value"),
    [
        ({"torch": {}}, ["torchrun", "--master_port", "29500"], "PET_MASTER_PORT", "20000"),
        ({"jax": {}}, ["python"], "JAX_COORDINATOR_ADDRESS", "tj-node-0-0.tj:20000"),
        ({"xgboost": {}}, ["python"], "DMLC_TRACKER_PORT", "20000"),
    ],
    ids=["torch", "jax", "xgboost"],
)
def test_the_built_in_plugins_declare_their_ports(
    policy: Json, command: list[str], variable: str, value: str, tmp_path: Path
) -> None:
    prepared = launch(pod_of(policy, command), tmp_path)
    (container,) = prepared.pod_to_run({port: int(port) - 9500 for port in prepared.ports()})["containers"]
    assert container["env"][variable] == value
    assert "29500" not in container["argv"]


def test_what_several_plugins_and_the_runtime_declare_adds_up() -> None:
    mine = {"trainwright.dev/port-variables": "MINE, RING_PORT", "trainwright.dev/optional-volumes": "scratch"}
    pod = pod_of({"torch": {}}, ["x"], mine)
    assert declared(pod) == Declarations(
        port_variables=frozenset({"MINE", "RING_PORT", "RING_BIND", "PET_MASTER_PORT", "MASTER_PORT"}),
        port_flags=frozenset({"--ring-port", "--master_port", "--master-port"}),
        optional_volumes=frozenset({"scratch", "kubeflow-trainer-token"}),
    )


@pytest.mark.parametrize("annotations", [None, {}, {"trainwright.dev/port-variables": " , ,"}])
def test_a_pod_may_declare_nothing(annotations: dict[str, str] | None) -> None:
    assert declared({"metadata": {"annotations": annotations}}) == Declarations()
