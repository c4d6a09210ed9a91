"""ssh's command lines: which host is meant, which command, and whether the host is a pod of the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.embedded.node.remoteshell.ssh import Call, parse, pod_name
from trainwright.embedded.node.remoteshell.sshd import listening_address


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("job-node-0-0.job hostname", Call("job-node-0-0.job", "hostname")),
        ("-o ConnectionAttempts=10 job-node-0-0.job prted --x y", Call("job-node-0-0.job", "prted --x y")),
        ("-x job-node-0-0 orted -mca ess env", Call("job-node-0-0", "orted -mca ess env")),
        ("-oBatchMode=yes -p2222 -q mpiuser@node true", Call("node", "true")),
        ("-l mpiuser -n node sleep 1", Call("node", "sleep 1", without_input=True)),
        ("node -p 2222 -- ls -l", Call("node", "ls -l")),
        ("ssh://mpiuser@node:2222 ls", Call("node", "ls")),
        ("-- node ls", Call("node", "ls")),
        ("node", Call("node", "")),
        ("-V", Call("", "")),
    ],
)
def test_the_host_and_the_command_are_found_between_sshs_options(line: str, call: Call) -> None:
    assert parse(line.split()) == call


HOSTS = """\
# Kept by trainwright
127.64.0.1\tjob-node-0-0.job.team.svc.cluster.local job-node-0-0.job.team.svc job-node-0-0.job job-node-0-0
127.0.0.1\tlocalhost
192.0.2.7\tcompute-7
"""


@pytest.mark.parametrize(
    ("host", "pod"),
    [
        ("job-node-0-0", "job-node-0-0"),
        ("job-node-0-0.job", "job-node-0-0"),
        ("job-node-0-0.job.team.svc", "job-node-0-0"),
        ("127.64.0.1", "job-node-0-0"),
        ("other-node-0-0", "other-node-0-0"),
        ("compute-7", None),
        ("git.example.com", None),
    ],
)
def test_a_pod_of_the_job_is_told_from_another_machine(host: str, pod: str | None, tmp_path: Path) -> None:
    (tmp_path / "other-node-0-0.sock").touch()
    assert pod_name(host, HOSTS, str(tmp_path)) == pod


@pytest.mark.parametrize(
    ("words", "port"),
    [
        (["-De", "-f", "/home/mpiuser/.sshd_config"], 2222),
        (["-D", "-p", "2022"], 2022),
        (["-D", "-p2022"], 2022),
        (["-D", "-o", "Port=2022"], 2022),
        (["-D", "-o", "Port 2022"], 2022),
    ],
)
def test_sshd_answers_where_the_probe_asks_or_its_command_line_says(words: list[str], port: int) -> None:
    assert listening_address(words, "127.64.0.1:2222") == ("127.64.0.1", port)
