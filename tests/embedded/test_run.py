"""`trainwright run`, `up` and `down` as a user meets them: whole paths over HTTP with real processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

from commandline import CommandLine, plain_job, processes_of, processes_of_pods
from waiting import eventually


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_plain_job_runs_to_complete_on_a_cluster_of_its_own(trainwright: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path / "job.yaml", plain_job("hello", "print('hello from a node')", nodes=2))
    output = trainwright("run", file)
    assert "[rank 0] hello from a node" in output
    assert "[rank 1] hello from a node" in output
    assert re.search(r"Complete .*jobset completed successfully", output), output
    assert re.search(r"control plane +\d+\.\d s", output), "says how long each part took"
    assert "No local cluster is running" in trainwright("status", code=1), "and the cluster went with it"


def test_nodes_find_each_other_by_name(shared: CommandLine, tmp_path: Path) -> None:
    script = """
        import os, socket, time
        rank, port = int(os.environ["JOB_COMPLETION_INDEX"]), 20177
        first = "pair-node-0-0.pair"
        if rank == 0:
            server = socket.create_server(("", port))
            print("heard:", server.accept()[0].recv(100).decode())
        else:
            for _ in range(200):
                try:
                    socket.create_connection((first, port)).sendall(socket.gethostname().encode())
                    break
                except OSError:
                    time.sleep(0.05)
    """
    output = shared("run", write(tmp_path / "pair.yaml", plain_job("pair", script, nodes=2)))
    assert "[rank 0] heard: pair-node-0-1" in output


def test_a_failing_rank_fails_the_job_with_its_last_lines_and_a_bad_exit(shared: CommandLine, tmp_path: Path) -> None:
    script = """
        import os, sys
        print("loading the data")
        if os.environ["JOB_COMPLETION_INDEX"] == "1":
            sys.exit("the data is not there")
    """
    output = shared("run", write(tmp_path / "bad.yaml", plain_job("bad", script, nodes=2)), code=1)
    assert re.search(r"Failed ", output)
    summary = output[output.index("its last lines") :]
    assert "exited with code 1" in output
    assert "the data is not there" in summary


def test_an_alarming_line_of_torchrun_at_the_end_of_a_good_run_is_said_to_be_harmless(
    shared: CommandLine, tmp_path: Path
) -> None:
    line = "E1118 07:25:45 2 torch/distributed/elastic/agent/server/api.py:1008] Error waiting on exit barrier."
    good = plain_job("farewell", f"print({line!r})", nodes=1)
    assert "exit barrier is harmless" in shared("run", write(tmp_path / "good.yaml", good))
    bad = plain_job("bad-farewell", f"import sys; print({line!r}); sys.exit(3)", nodes=1)
    assert "harmless" not in shared("run", write(tmp_path / "bad.yaml", bad), code=1)


def test_an_unknown_runtime_is_told_so_with_the_list_of_those_there_are(shared: CommandLine, tmp_path: Path) -> None:
    job = plain_job("lost", "pass").split("---\n")[1].replace("kind: TrainingRuntime", "kind: ClusterTrainingRuntime")
    output = shared("run", write(tmp_path / "lost.yaml", job), code=1)
    assert 'no ClusterTrainingRuntime named "lost-runtime"' in output
    assert "torch-distributed" in output


def test_ctrl_c_deletes_the_job_and_leaves_no_process(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    script = """
        import subprocess, time
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        print("up and running")
        time.sleep(600)
    """
    with trainwright.start("run", write(tmp_path / "long.yaml", plain_job("long", script, nodes=2))) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "up and running" in line:
                break
        run.send_signal(signal.SIGINT)
        rest = run.stdout.read()
        assert run.wait(60) == 130, rest
    assert "deleted" in rest
    assert "long" not in trainwright("get")
    assert not processes_of_pods(trainwright.directory)


def test_training_outlives_a_kill_of_the_control_plane(trainwright: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    marks = tmp_path / "starts"
    script = f"""
        import os, pathlib, time
        with open({str(marks)!r}, "a") as file:
            file.write("started\\n")
        while not pathlib.Path({str(go)!r}).exists():
            time.sleep(0.05)
        print("went on to the end")
        with open({str(marks)!r}, "a") as file:
            file.write("ended\\n")
    """
    trainwright("up", "--detach")
    with trainwright.start("run", write(tmp_path / "job.yaml", plain_job("survivor", script, nodes=2))) as run:
        eventually("both nodes to start", lambda: marks.exists() and marks.read_text().count("started") == 2)
        trainwright.kill_control_plane()
        go.touch()
        eventually("both nodes to end while nobody is in charge", lambda: marks.read_text().count("ended") == 2)
        trainwright("up", "--detach")
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    assert "Complete" in output
    assert marks.read_text().count("started") == 2, "no node was started twice"
    assert "Complete" in trainwright("get")


def test_a_second_up_says_that_one_is_running(trainwright: CommandLine) -> None:
    trainwright("up", "--detach")
    assert f"already running on {trainwright.directory} (pid {trainwright.pid})" in trainwright("up", code=1)
    assert "is up" in trainwright("status")
    assert "is down" in trainwright("down")
    assert not processes_of(trainwright.directory)


def test_the_kubeconfig_is_private_and_carries_ca_and_token(shared: CommandLine) -> None:
    assert shared.kubeconfig.stat().st_mode & 0o777 == 0o600
    text = shared.kubeconfig.read_text()
    assert "certificate-authority-data" in text
    assert "token" in text
    assert "https://127.0.0.1:" in text


def test_logs_and_delete_work_on_a_finished_job(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    trainwright("run", write(tmp_path / "job.yaml", plain_job("done", "print('the last word')")))
    assert "[rank 0] the last word" in trainwright("logs", "done")
    assert "deleted" in trainwright("delete", "done")
    assert "[rank 0] the last word" in trainwright("logs", "done"), "its run keeps what it said"
    pods = Path(trainwright.directory / "pods")
    eventually("the pods' files to go", lambda: not pods.exists() or not any(pods.iterdir()))


def test_running_a_finished_job_again_replaces_it_and_a_running_one_is_refused(
    shared: CommandLine, tmp_path: Path
) -> None:
    file = write(tmp_path / "again.yaml", plain_job("replaced", "print('once more')"))
    shared("run", file)
    assert "replaces" in shared("run", file)
    slow = write(tmp_path / "slow.yaml", plain_job("busy", "import time; print('go', flush=True); time.sleep(600)"))
    with shared.start("run", slow) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "] go" in line:
                break
        assert "is still running" in shared("run", slow, code=1)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)


def test_a_file_that_looks_right_and_is_not_leaves_no_cluster_behind(trainwright: CommandLine, tmp_path: Path) -> None:
    output = trainwright("run", write(tmp_path / "job.yaml", "kind: TrainJob\nspec: ["), code=1)
    assert "not valid YAML" in output
    assert "starting a local cluster" not in output
    assert "No local cluster is running" in trainwright("status", code=1)
    assert processes_of(trainwright.directory) == []


def test_broken_input_is_one_clear_sentence(trainwright: CommandLine, tmp_path: Path) -> None:
    for text, expected in (
        ("kind: [", "not valid YAML"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "no TrainJob"),
        (plain_job("a", "pass") + "---\n" + plain_job("b", "pass"), "2 TrainJobs"),
    ):
        output = trainwright("run", write(tmp_path / "in.yaml", text), code=None)
        assert expected in output
    assert "no-such-file.yaml" in trainwright("run", "no-such-file.yaml", code=None)


def test_status_is_folded_back_into_the_trainjob(shared: CommandLine, tmp_path: Path) -> None:
    shared("run", write(tmp_path / "job.yaml", plain_job("folded", "pass", nodes=2)))
    got = json.loads(shared("get", "trainjobs", "folded", "-o", "json"))
    assert got["status"]["jobsStatus"] == [
        {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    ]
    [condition] = got["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Complete", "AllJobsCompleted")
    assert got["status"]["state"] == "Complete"


def test_render_needs_no_cluster(trainwright: CommandLine, tmp_path: Path) -> None:
    output = trainwright("render", "-f", write(tmp_path / "job.yaml", plain_job("seen", "pass", nodes=3)))
    assert "kind: JobSet" in output
    assert "parallelism: 3" in output
    assert subprocess.run(["ls", str(trainwright.directory)], capture_output=True, check=False).returncode != 0
