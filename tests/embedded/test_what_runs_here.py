"""A user learns at once what cannot run on this machine (FU4, FU10).

A rank that fails restarts its job exactly as often as the policy says, and suspend ends processes within the grace.
"""

from __future__ import annotations

import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from commandline import CommandLine, plain_job
from trainwright.embedded.node.resources import devices
from waiting import eventually

SECONDS = 15.0
MPI_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: waits-not
spec:
  runtimeRef:
    name: {runtime}
  trainer:
    numNodes: 2
    command: [mpirun, python, -c, "print('never')"]
"""


@pytest.mark.skipif(shutil.which("mpirun") is not None, reason="there is an MPI on this machine")
@pytest.mark.parametrize("framework", ["deepspeed", "mlx"])
def test_i_do_not_wait_for_a_runtime_that_cannot_run_here(
    shared: CommandLine, tmp_path: Path, framework: str
) -> None:  # FU4
    listed = shared("get", "runtimes")
    [line] = [line for line in listed.splitlines() if line.startswith(f"{framework}-distributed")]
    assert "no: mpirun is not on this machine" in line or (find_spec(framework) is None and "not installed" in line)
    (tmp_path / "job.yaml").write_text(MPI_JOB.format(runtime=f"{framework}-distributed"))
    begun = time.monotonic()
    output = shared("run", str(tmp_path / "job.yaml"), code=1)
    assert time.monotonic() - begun < SECONDS, "it waited for ten minutes once"
    assert "mpirun" in output
    assert "mpirun" in shared("why", "waits-not")
    shared("delete", "waits-not")


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_i_do_not_wait_for_a_gpu_that_this_machine_has_not(
    shared: CommandLine, tmp_path: Path, resource: str
) -> None:  # FU10
    if resource in devices.find({}):
        pytest.skip("this machine has one")
    job = plain_job("no-gpu", "pass")
    limits = f"resourcesPerNode:\n      limits:\n        {resource}: 1\n    command: ["
    (tmp_path / "job.yaml").write_text(job.replace("command: [", limits))
    begun = time.monotonic()
    output = shared("run", str(tmp_path / "job.yaml"), code=1)
    assert time.monotonic() - begun < SECONDS, "it waited for ever once"
    assert resource in output
    assert "capacity: 0" in output, "and says how many there are"
    assert resource in shared("validate", "--local", str(tmp_path / "job.yaml"), code=1)
    shared("delete", "no-gpu")


RESTARTED = """
    import fcntl, os, time
    me, home = os.environ["JOB_COMPLETION_INDEX"], "{home}"
    alive = open(f"{{home}}/alive-{{me}}", "w")
    fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while another attempt of this rank lives
    with open(f"{{home}}/attempts-{{me}}", "a") as attempts:
        attempts.write("begun\\n")
    if me == "1":
        while not os.path.exists(f"{{home}}/attempts-0") or len(open(f"{{home}}/attempts-0").readlines()) < len(
            open(f"{{home}}/attempts-1").readlines()
        ):
            time.sleep(0.02)
        raise SystemExit(3)
    time.sleep(600)
"""


def test_a_rank_that_fails_restarts_its_job_as_often_as_the_policy_says(shared: CommandLine, tmp_path: Path) -> None:
    job = plain_job("three-attempts", RESTARTED.format(home=tmp_path), nodes=2)
    job = job.replace("      replicatedJobs:", "      failurePolicy:\n        maxRestarts: 2\n      replicatedJobs:")
    (tmp_path / "job.yaml").write_text(job)
    shared("run", str(tmp_path / "job.yaml"), code=1)
    for rank in (0, 1):
        attempts = (tmp_path / f"attempts-{rank}").read_text().splitlines()
        assert attempts == ["begun"] * 3, f"rank {rank}: once, and twice more; never two alive at once"


STUBBORN = """
    import os, signal, time
    signal.signal(signal.SIGTERM, lambda *_: None)
    with open("{home}/pids", "a") as pids:
        pids.write(str(os.getpid()) + "\\n")
    print("begun", flush=True)
    if os.path.exists("{home}/enough"):
        raise SystemExit(0)
    time.sleep(600)
"""


def test_suspend_ends_processes_within_the_grace_and_resume_starts_them_again(
    shared: CommandLine, tmp_path: Path
) -> None:
    job = plain_job("stubborn", STUBBORN.format(home=tmp_path))
    job = job.replace(
        "restartPolicy: Never", "restartPolicy: Never\n                  terminationGracePeriodSeconds: 2"
    )
    (tmp_path / "job.yaml").write_text(job)
    shared("run", str(tmp_path / "job.yaml"), "--detach")
    eventually("it has begun", (tmp_path / "pids").exists, 30)

    def runs() -> bool:
        return any(str(tmp_path) in line for line in command_lines())

    assert runs()
    begun = time.monotonic()
    shared("suspend", "stubborn")
    eventually("its process has ended", lambda: not runs(), 20)
    took = time.monotonic() - begun
    assert 1.5 < took < 2 + 3, f"the grace is 2 s, and it took {took:.1f} s"
    (tmp_path / "enough").touch()
    shared("resume", "stubborn")
    assert "Complete" in shared("wait", "stubborn", "--timeout", "60s")
    assert len((tmp_path / "pids").read_text().splitlines()) == 2


def command_lines() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return [line for line in found if "signal.signal" in line]
