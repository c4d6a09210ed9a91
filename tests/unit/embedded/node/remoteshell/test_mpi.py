"""The variables and hostfiles of every MPI, and when `mpirun` is told that it left nodes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from trainwright.embedded.node.remoteshell import mpi
from trainwright.embedded.node.remoteshell.mpirun import chosen, missing

NODES = [mpi.Host("job-node-0-0.job", 2), mpi.Host("job-launcher-0-0.job", 2)]


@pytest.mark.parametrize("write", [mpi.open_mpi_hostfile, mpi.hydra_hostfile])
def test_both_forms_of_hostfile_name_the_same_nodes(write: Callable[[Sequence[mpi.Host]], str]) -> None:
    assert mpi.hosts(f"# nodes\n\n{write(NODES)}") == NODES


def test_a_line_without_a_number_takes_one_process() -> None:
    assert mpi.hosts("job-node-0-0.job\n") == [mpi.Host("job-node-0-0.job", 1)]


def test_each_mpi_reads_a_hostfile_of_its_own_form() -> None:
    found = mpi.launcher_variables(NODES, declared="/etc/mpi/hostfile", open_mpi=Path("/o"), hydra=Path("/h"))
    assert found["OMPI_MCA_orte_default_hostfile"] == found["PRTE_MCA_prte_default_hostfile"] == "/o"
    assert found["HYDRA_HOST_FILE"] == found["I_MPI_HYDRA_HOST_FILE"] == "/h"
    assert found["I_MPI_PERHOST"] == "2", "Intel MPI does not read it from the hostfile"


@pytest.mark.parametrize(("only_loopback", "there"), [(True, True), (False, False)])
def test_a_machine_without_a_network_uses_its_loopback_addresses(only_loopback: bool, there: bool) -> None:
    found = mpi.variables(only_loopback=only_loopback, temporary=Path("/t"))
    assert ("OMPI_MCA_btl_tcp_if_include" in found) is there


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-n 2 python train.py", True),
        ("--np 2 python train.py", True),
        ("--host=a,b python train.py", True),
        ("--hostfile /etc/mpi/hostfile sh -c x", False),
        ("sh train.py -n 3", False),
        ("-x NAME=value sh -c x", False),
        ("--version", True),
    ],
)
def test_a_number_of_processes_counts_as_chosen_where_mpirun_reads_it(line: str, expected: bool) -> None:
    assert chosen(line.split()) is expected


def test_the_launcher_reaches_itself_and_others_by_ssh() -> None:
    hosts = ["job-node-0-0.job", "job-node-0-1.job", "job-launcher-0-0.job"]
    assert missing(hosts, {"job-node-0-0"}, "job-launcher-0-0") == ["job-node-0-1"]
    assert missing(hosts, {"job-node-0-0", "job-node-0-1"}, "job-launcher-0-0") == []
