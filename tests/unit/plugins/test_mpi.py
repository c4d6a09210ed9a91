"""The MPI plugin: hostfile, SSH keys and launcher variables."""

from __future__ import annotations

from typing import Any

import pytest

from unit.pipeline.objects import container, env, job_of_runtime, jobset, objects, plan, pods, runtime, trainjob


def mpi(*, launcher_is_node: bool = False, jobs: Any = None, **policy: Any) -> Any:
    jobs = jobs or (job_of_runtime("node", ""), job_of_runtime("launcher", "trainer"))
    return runtime(*jobs, policy={"numNodes": 1, "mpi": {"runLauncherAsNode": launcher_is_node, **policy}})


def hostfile(job: Any, of: Any) -> list[str]:
    text: str = objects(plan(job, of))["ConfigMap/tj-mpi-hostfile"]["data"]["hostfile"]
    return text.splitlines()


def counts(made: Any) -> dict[str, int]:
    return {item["name"]: item["template"]["spec"]["parallelism"] for item in made["spec"]["replicatedJobs"]}


def test_the_nodes_are_the_job_named_node() -> None:
    assert counts(jobset(trainjob({"numNodes": 4}), mpi())) == {"node": 4, "launcher": 1}


def test_a_launcher_that_trains_is_one_of_the_nodes() -> None:
    of = mpi(launcher_is_node=True)
    assert counts(jobset(trainjob({"numNodes": 4}), of)) == {"node": 3, "launcher": 1}
    assert counts(jobset(trainjob({"numNodes": 1}), of)) == {"node": 1, "launcher": 1}
    assert hostfile(trainjob({"numNodes": 3}), of) == [
        "tj-node-0-0.tj slots=1",
        "tj-node-0-1.tj slots=1",
        "tj-launcher-0-0.tj slots=1",
    ]


def test_host_names_follow_replicas_and_subdomain() -> None:
    node = {**job_of_runtime("node", ""), "replicas": 2}
    of = runtime(node, job_of_runtime("launcher"), policy={"mpi": {}}, network={"subdomain": "sub"})
    assert hostfile(trainjob({"numNodes": 1}), of) == ["tj-node-0-0.sub slots=1", "tj-node-1-0.sub slots=1"]


@pytest.mark.parametrize(
    ("trainer", "policy", "slots"),
    [
        ({}, {}, 1),
        ({}, {"numProcPerNode": 3}, 3),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, {}, 8),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, {"numProcPerNode": 3}, 3),
        ({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}, "numProcPerNode": 2}, {}, 2),
    ],
)
def test_slots_of_a_node(trainer: Any, policy: Any, slots: int) -> None:
    assert hostfile(trainjob(trainer), mpi(**policy)) == [f"tj-node-0-0.tj slots={slots}"]


@pytest.mark.parametrize("implementation", ["OpenMPI", ""])
def test_open_mpi_gets_the_names_of_both_its_generations(implementation: str) -> None:
    found = env(jobset(trainjob({"numProcPerNode": 2}), mpi(mpiImplementation=implementation)), "launcher")
    assert found == {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "2",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": "2",
        "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
    }


def test_intel_mpi_gets_its_own_variables_and_format() -> None:
    job, of = trainjob({"numProcPerNode": 2}), mpi(mpiImplementation="Intel")
    found = env(jobset(job, of), "launcher")
    assert found["I_MPI_HYDRA_HOST_FILE"] == "/etc/mpi/hostfile"
    assert found["I_MPI_PERHOST"] == "2"
    assert not any(name.startswith("OMPI") for name in found)
    assert hostfile(job, of) == ["tj-node-0-0.tj:2"]


def test_mpich_gets_its_own_variables_and_format() -> None:
    job, of = trainjob({"numProcPerNode": 2}), mpi(mpiImplementation="MPICH")
    assert env(jobset(job, of), "launcher")["HYDRA_HOST_FILE"] == "/etc/mpi/hostfile"
    assert hostfile(job, of) == ["tj-node-0-0.tj:2"]


def test_keys_are_mounted_for_ssh_on_both_sides_and_the_hostfile_on_the_launcher() -> None:
    made = jobset(trainjob(), mpi(sshAuthMountPath="/home/x/.ssh"))
    assert container(made)["volumeMounts"] == [{"name": "mpi-ssh-auth", "mountPath": "/home/x/.ssh"}]
    assert container(made, "launcher")["volumeMounts"] == [
        {"name": "mpi-ssh-auth", "mountPath": "/home/x/.ssh"},
        {"name": "mpi-hostfile", "mountPath": "/etc/mpi"},
    ]
    secret = pods(made)["volumes"][0]["secret"]
    assert (secret["secretName"], secret["defaultMode"]) == ("tj-mpi-ssh-auth", 0o400)
    assert [(item["path"], item["mode"]) for item in secret["items"]] == [
        ("id_rsa", 0o640),
        ("id_rsa.pub", 0o644),
        ("authorized_keys", 0o644),
    ]


def test_user_variables_reach_the_node_only_where_the_launcher_trains() -> None:
    job = trainjob({"env": [{"name": "A", "value": "1"}]})
    assert "A" not in env(jobset(job, mpi()))
    assert env(jobset(job, mpi(launcher_is_node=True)))["A"] == "1"


def test_the_secret_is_immutable_and_of_its_type() -> None:
    secret = objects(plan(trainjob(), mpi()))["Secret/tj-mpi-ssh-auth"]
    assert (secret["type"], secret["immutable"]) == ("kubernetes.io/ssh-auth", True)
    assert secret["data"] == {"ssh-privatekey": "<generated>", "ssh-publickey": "<generated>"}
