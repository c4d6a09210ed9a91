"""A launcher reaches the job's other pods by ssh on the local cluster, with no sshd installed and no network used.

`mpirun` here is a shell script that does what every MPI does: it calls `ssh NODE COMMAND` for each line of its hostfile
and waits. `make test-training` has the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commandline import CommandLine, processes_of_pods
from waiting import eventually

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: mpi
spec:
  mlPolicy:
    mpi: {mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpiuser/.ssh, runLauncherAsNode: true}
  template:
    spec:
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
        - name: node
          template:
            spec:
              template:
                spec:
                  containers:
                    - name: node
                      image: mpi
                      command: [/usr/sbin/sshd]
                      args: [-De, -f, /home/mpiuser/.sshd_config]
                      securityContext: {runAsUser: 4242}
                      readinessProbe: {periodSeconds: 1, tcpSocket: {port: 2222}}
        - name: launcher
          dependsOn: [{name: node, status: Ready}]
          template:
            metadata:
              labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
            spec:
              backoffLimit: 0
              template:
                spec:
                  restartPolicy: Never
                  containers:
                    - {name: node, image: mpi}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: hello
spec:
  runtimeRef: {kind: TrainingRuntime, name: mpi}
  trainer:
    numNodes: 3
    command: [sh, -c]
    args:
      - |
        COMMAND
"""

MPIRUN = """\
#!/bin/sh
[ "$1" = --only-here ] && { shift; exec "$@"; }
while read host slots; do ssh -x $host "$*" < /dev/null & done < /etc/mpi/hostfile
code=0
for job in $(jobs -p) 1 2 3; do wait $job 2> /dev/null || code=$?; done
wait
"""


Run = Callable[[str, int], str]


@pytest.fixture
def run(trainwright: CommandLine, tmp_path: Path) -> Run:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").write_text(MPIRUN)
    (tmp_path / "bin" / "mpirun").chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def run_command(command: str, code: int) -> str:
        (tmp_path / "job.yaml").write_text(JOB.replace("COMMAND", command))
        return trainwright("run", str(tmp_path / "job.yaml"), code=code, env=path)

    return run_command


@pytest.mark.timeout(120)
def test_every_node_of_the_hostfile_runs_the_command_and_its_exit_code_comes_back(run: Run) -> None:
    output = run('mpirun echo "I am" \'$(hostname)\'; ssh hello-node-0-1.hello "id -u; exit 7"; echo code $?', 0)
    for name in ("hello-node-0-0", "hello-node-0-1", "hello-launcher-0-0"):
        assert f"[launcher-0] I am {name}\n" in output, output
    assert "[launcher-0] 4242\n" in output, "the user that the pod's spec names"
    assert "[launcher-0] code 7\n" in output
    assert "Complete" in output


@pytest.mark.timeout(120)
def test_a_launcher_that_leaves_nodes_out_fails_and_says_so_unless_it_was_asked_to(run: Run) -> None:
    output = run("mpirun --only-here true", 1)
    said = "only 1 of the job's 3 nodes took part; nobody reached hello-node-0-0, hello-node-0-1"
    assert said in output, output
    assert "Complete" in run("mpirun --only-here true -n 1; mpirun -n 1 true; true", 0)


@pytest.mark.timeout(120)
def test_what_a_dead_caller_started_ends_and_so_does_what_pods_leave_behind(run: Run, trainwright: CommandLine) -> None:
    script = (
        'ssh hello-node-0-0 "echo begun; exec sleep 1000" & '
        "sleep 1; kill -9 $!; sleep 0.5; ssh hello-node-0-0 'pgrep -x sleep || echo none is left'"
    )
    output = run(script, 0)
    assert "begun" in output
    assert "none is left" in output, output
    eventually("nothing of the pods runs", lambda: not processes_of_pods(trainwright.directory))
