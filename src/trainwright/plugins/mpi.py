"""MPI: a key pair so that the launcher can reach the nodes, a hostfile, and the variables of the MPI at hand.

Each implementation reads its own hostfile format and its own variables. Open MPI 5 replaced ORTE by PRRTE and
ignores the old names without a word, so both sets are written for it.

The operator's role needs: create, get, list, patch and watch of `configmaps`, and create of `secrets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwright.api.resources import CONFIG_MAPS
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import MPI_HOSTFILE, REMOTE_SHELL
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply, CreateOnce, Intention, Repair
from trainwright.pipeline.podset import LAUNCHER, NODE, env_var
from trainwright.pipeline.typed import reserved_env
from trainwright.pipeline.workload import Watch
from trainwright.schema.errors import FieldError, invalid
from trainwright.schema.jsonobject import Json

HOSTFILE_DIRECTORY = "/etc/mpi"
HOSTFILE = f"{HOSTFILE_DIRECTORY}/hostfile"
SSH_OPTIONS = "-o ConnectionAttempts=10"
"""A node's sshd may come up later than the launcher."""

SSH_VOLUME = "mpi-ssh-auth"
HOSTFILE_VOLUME = "mpi-hostfile"


class Implementation(NamedTuple):
    """What one MPI wants to be told. `{slots}` stands for the processes of a node, `{host}` for its name."""

    host_line: str
    variables: dict[str, str]
    reserved: tuple[str, ...]


OPEN_MPI = Implementation(
    "{host} slots={slots}",
    {
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "{slots}",
        "OMPI_MCA_plm_rsh_args": SSH_OPTIONS,
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": "{slots}",
        "PRTE_MCA_plm_ssh_args": SSH_OPTIONS,
    },
    reserved=(
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
    ),
)
INTEL_MPI = Implementation(
    "{host}:{slots}",
    {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_PERHOST": "{slots}",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_OPTIONS,
    },
    reserved=(
        "I_MPI_HYDRA_HOST_FILE",
        "I_MPI_PERHOST",
        "I_MPI_HYDRA_BOOTSTRAP",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    ),
)
MPICH = Implementation(
    "{host}:{slots}",
    {
        "HYDRA_HOST_FILE": HOSTFILE,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": SSH_OPTIONS,
    },
    reserved=("HYDRA_HOST_FILE", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXTRA_ARGS"),
)
IMPLEMENTATIONS = {"OpenMPI": OPEN_MPI, "": OPEN_MPI, "Intel": INTEL_MPI, "MPICH": MPICH}


class MPI:
    """Runtimes with `mlPolicy.mpi`: pods of the jobs `launcher` and `node`."""

    name = "MPI"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        mpi = info.ml_policy.mpi
        if mpi is None:
            return
        self._set_node_count(info)
        slots = slots_per_node(info)
        for pod_set in info.pod_sets:
            if pod_set.name not in (NODE, LAUNCHER):
                continue
            pod_set.set_volumes(_ssh_volume(info))
            pod_set.tell_local_node(REMOTE_SHELL, NODE)
            if pod_set.name == LAUNCHER:
                pod_set.set_volumes(_hostfile_volume(info))
                if pod_set.local:
                    pod_set.set_pod_annotation(MPI_HOSTFILE, HOSTFILE)
            for container in pod_set.containers:
                if container.name != NODE:
                    continue
                container.set_volume_mounts({"name": SSH_VOLUME, "mountPath": mpi.ssh_auth_mount_path})
                if pod_set.name == LAUNCHER:
                    container.set_volume_mounts({"name": HOSTFILE_VOLUME, "mountPath": HOSTFILE_DIRECTORY})
                    variables = _implementation(info).variables.items()
                    container.set_env(*(env_var(name, value.format(slots=slots)) for name, value in variables))

    def _set_node_count(self, info: Info) -> None:
        """The TrainJob's nodes are the job `node`, less the launcher where the launcher trains too."""
        node, nodes = info.pod_set(NODE), info.trainer_spec.num_nodes
        if node is None or nodes is None or info.ml_policy.mpi is None:
            return
        node.count = max(nodes - 1, 1) if info.ml_policy.mpi.run_launcher_as_node else nodes
        info.came_from("spec.trainer.numNodes")

    def build(self, info: Info, job: TrainJob) -> Iterator[Intention]:
        if info.ml_policy.mpi is None:
            return
        if not info.workload_is_running:  # a key pair takes a while to make, and a running job has one
            yield CreateOnce(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": _secret_name(info)},
                    "type": "kubernetes.io/ssh-auth",
                    "immutable": True,
                    "data": info.keys.ssh_auth(),
                }
            )
        yield Apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _hostfile_name(info)},
                "data": {"hostfile": _hostfile(info)},
            },
            repair=Repair.CHANGED,
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(CONFIG_MAPS)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        mpi = info.ml_policy.mpi
        if mpi is None:
            return
        nodes = info.trainer_spec.num_nodes
        lacks_pods = info.pod_set(LAUNCHER) is None or info.pod_set(NODE) is None
        if nodes is not None and nodes >= 2 and mpi.run_launcher_as_node and lacks_pods:
            detail = (
                "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode "
                "does not have either launcher and node"
            )
            yield invalid("spec.trainer.numNodes", nodes, detail)
        if isinstance(info.num_proc_per_node, str):
            detail = "must have an int value for MPI TrainJob"
            yield invalid("spec.trainer.numProcPerNode", info.num_proc_per_node, detail)
        yield from reserved_env(info, _implementation(info).reserved)


def slots_per_node(info: Info) -> int:
    """The TrainJob's processes per node; else the runtime's, where 1 gives way to a process for each GPU."""
    if isinstance(info.num_proc_per_node, int):
        return info.num_proc_per_node
    slots = info.ml_policy.mpi.num_proc_per_node if info.ml_policy.mpi is not None else 1
    gpus = info.node_resources.gpus
    return gpus if slots == 1 and gpus > 1 else slots


def _implementation(info: Info) -> Implementation:
    name = info.ml_policy.mpi.mpi_implementation if info.ml_policy.mpi is not None else ""
    return IMPLEMENTATIONS.get(name, OPEN_MPI)


def _hostfile(info: Info) -> str:
    mpi = info.ml_policy.mpi
    slots, line = slots_per_node(info), _implementation(info).host_line
    return "".join(
        line.format(host=host, slots=slots) + "\n"
        for pod_set in info.pod_sets
        if pod_set.name == NODE or (pod_set.name == LAUNCHER and mpi is not None and mpi.run_launcher_as_node)
        for host in pod_set.endpoints
    )


def _secret_name(info: Info) -> str:
    return f"{info.name}-mpi-ssh-auth"


def _hostfile_name(info: Info) -> str:
    return f"{info.name}-mpi-hostfile"


def _ssh_volume(info: Info) -> Json:
    files = (
        ("ssh-privatekey", "id_rsa", 0o640),
        ("ssh-publickey", "id_rsa.pub", 0o644),
        ("ssh-publickey", "authorized_keys", 0o644),
    )
    return {
        "name": SSH_VOLUME,
        "secret": {
            "secretName": _secret_name(info),
            "defaultMode": 0o400,
            "items": [{"key": key, "path": path, "mode": mode} for key, path, mode in files],
        },
    }


def _hostfile_volume(info: Info) -> Json:
    item = {"key": "hostfile", "path": "hostfile", "mode": 0o444}
    return {"name": HOSTFILE_VOLUME, "configMap": {"name": _hostfile_name(info), "items": [item]}}
