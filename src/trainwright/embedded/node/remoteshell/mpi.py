"""The variables by which every MPI finds a job's nodes on this machine, whichever MPI is installed here.

In a cluster the image and the runtime agree about the MPI. Here the machine has the one it has, so the variables of
all of them are set, each with the hostfile it can read: Open MPI 4 (ORTE) and 5 (PRRTE), MPICH and Intel MPI. They lie
under the container's own variables, and under those of whoever started the run. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trainwright.embedded.node.remoteshell.mpirun import HOSTFILES, HOSTS

SSH_ARGUMENTS = "-o ConnectionAttempts=10"


class Host(NamedTuple):
    """A line of a hostfile: a node and how many processes it takes."""

    name: str
    slots: int


def hosts(hostfile: str) -> list[Host]:
    """The nodes of a hostfile, in Open MPI's form (`host slots=2`) or in Hydra's (`host:2`)."""
    found = []
    for line in hostfile.splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        name = text.split()[0]
        name, _, number = name.partition(":")
        slots = re.search(r"\bslots\s*=\s*(\d+)", text)
        found.append(Host(name, int(slots[1]) if slots else int(number) if number.isdigit() else 1))
    return found


def open_mpi_hostfile(nodes: Sequence[Host]) -> str:
    return "".join(f"{node.name} slots={node.slots}\n" for node in nodes)


def hydra_hostfile(nodes: Sequence[Host]) -> str:
    return "".join(f"{node.name}:{node.slots}\n" for node in nodes)


def variables(*, only_loopback: bool, temporary: Path) -> dict[str, str]:
    """For every pod of an MPI job. `temporary` is a directory that every pod has for itself."""
    found = {
        # Pods run as whoever runs the cluster, and what Open MPI warns of is no danger in a pod.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        # TCP between pods: other transports look at the machine's devices and take all pods for one host.
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self,vader",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        # Every pod believes that it has the machine for itself; the first ranks would all be bound to core 0.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "I_MPI_PIN": "0",
        "OMPI_MCA_orte_tmpdir_base": str(temporary),
        "PRTE_MCA_prte_tmpdir_base": str(temporary),
    }
    if only_loopback:
        found["OMPI_MCA_btl_tcp_if_include"] = "127.0.0.0/8"
    return found


def launcher_variables(nodes: Sequence[Host], *, declared: str, open_mpi: Path, hydra: Path) -> dict[str, str]:
    """For the pod that has the hostfile, at the path `declared`; `open_mpi` and `hydra` are copies in the two forms."""
    slots = {node.slots for node in nodes}
    found = {
        "OMPI_MCA_orte_default_hostfile": str(open_mpi),
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_plm_rsh_args": SSH_ARGUMENTS,
        "PRTE_MCA_prte_default_hostfile": str(open_mpi),
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_plm_ssh_args": SSH_ARGUMENTS,
        "HYDRA_HOST_FILE": str(hydra),
        "HYDRA_LAUNCHER": "ssh",
        "I_MPI_HYDRA_HOST_FILE": str(hydra),
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        HOSTFILES: f"{declared}:{open_mpi}:{hydra}",
        HOSTS: ",".join(node.name for node in nodes),
    }
    if len(slots) == 1:  # Intel MPI does not read the number of processes from its hostfile
        found["I_MPI_PERHOST"] = str(slots.pop())
    return found
