"""Runs have a home: what a user finds again of every run, whatever became of its job and its cluster."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import CommandLine, plain_job, processes_of
from trainwright.runs import RunsHome
from waiting import eventually

WAITS = """
    import pathlib, sys, time
    print("begun", flush=True)
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.05)
    print("went on to the end")
"""


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def runs(trainwright: CommandLine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trainwright.parsed("runs", "-o", "json")
    return found


def run_of(trainwright: CommandLine, name: str) -> dict[str, Any]:
    """The newest run of a TrainJob."""
    return next(run for run in runs(trainwright) if run["name"] == name)


def lines_of(run: dict[str, Any]) -> str:
    """Everything that the run's containers wrote, from its directory."""
    return "".join(path.read_text() for path in sorted(Path(run["directory"]).glob("logs/*/*/*.log")))


def start_waiting(trainwright: CommandLine, tmp_path: Path, name: str = "long") -> Path:
    """A running job that ends when the returned file is made."""
    go = tmp_path / f"{name}.go"
    file = write(tmp_path / f"{name}.yaml", plain_job(name, WAITS.format(go=str(go))))
    trainwright("run", "--detach", file)
    eventually("the job to run", lambda: run_of(trainwright, name)["state"] == "Running")
    eventually("its first line", lambda: "begun" in lines_of(run_of(trainwright, name)))
    return go


def test_a_run_is_listed_with_its_end_when_no_cluster_is_up(trainwright: CommandLine, tmp_path: Path) -> None:
    script = """
        import os, pathlib
        pathlib.Path(os.environ["TRAINWRIGHT_OUTPUT"], "model.pt").write_text("weights")
        print("the last word")
    """
    trainwright("run", write(tmp_path / "good.yaml", plain_job("good", script, nodes=2)))
    trainwright("run", write(tmp_path / "bad.yaml", plain_job("bad", "raise SystemExit(7)")), code=1)
    assert "No local cluster" in trainwright("status", code=1)
    good, bad = run_of(trainwright, "good"), run_of(trainwright, "bad")
    assert (good["state"], good["exit_code"], good["nodes"]) == ("Complete", 0, 2)
    assert (bad["state"], bad["exit_code"]) == ("Failed", 7)
    assert "the last word" in lines_of(good)
    assert Path(good["output"], "model.pt").read_text() == "weights"
    table = trainwright("runs")
    assert re.search(rf"{good['id']} +Complete +\d+s +\d+s +2 +0", table), table
    described = trainwright("runs", "describe", "bad")
    assert "Failed, exit code 7" in described
    assert re.search(r"Warning +\w+ +Job/bad-node-0", described), "with its events"


def test_a_typo_in_the_file_touches_nothing_of_the_run_before(trainwright: CommandLine, tmp_path: Path) -> None:
    script = """
        import os, pathlib
        pathlib.Path(os.environ["TRAINWRIGHT_OUTPUT"], "model.pt").write_text("weights")
        print("hours of training")
    """
    text = plain_job("mine", script)
    trainwright("up", "--detach")
    trainwright("run", write(tmp_path / "job.yaml", text))
    before = run_of(trainwright, "mine")
    trainwright(
        "run", write(tmp_path / "job.yaml", text.replace("numNodes: 1\n    command", "numNode: 1\n    command")), code=1
    )
    assert "mine" in trainwright("get"), "the finished job is still there"
    assert "hours of training" in trainwright("logs", "mine")
    trainwright("run", write(tmp_path / "job.yaml", text))
    after = {run["id"]: run for run in runs(trainwright)}
    assert len([run for run in after.values() if run["state"] == "Complete"]) == 2
    assert after[before["id"]]["state"] == "Complete", "the rerun has a record of its own"
    assert "hours of training" in lines_of(before)
    assert Path(before["output"], "model.pt").read_text() == "weights"


def test_the_log_of_every_rank_stays_when_another_fails_and_when_the_job_is_deleted(
    shared: CommandLine, tmp_path: Path
) -> None:
    script = """
        import os, time
        print("rank", os.environ["JOB_COMPLETION_INDEX"], "speaks", flush=True)
        if os.environ["JOB_COMPLETION_INDEX"] == "1":
            time.sleep(0.5)
            raise SystemExit("broken")
        time.sleep(600)
    """
    shared("run", write(tmp_path / "job.yaml", plain_job("two", script, nodes=2)), code=1)
    shared("delete", "two")
    run = run_of(shared, "two")
    assert run["state"] == "Failed"
    assert "rank 0 speaks" in lines_of(run)
    assert "rank 1 speaks" in lines_of(run)


def test_ctrl_c_leaves_the_log_of_the_hang_it_ended(shared: CommandLine, tmp_path: Path) -> None:
    script = "print('about to hang', flush=True); __import__('time').sleep(600)"
    with shared.start("run", write(tmp_path / "hang.yaml", plain_job("hang", script))) as run:
        eventually("its line", lambda: any("about to hang" in lines_of(found) for found in runs(shared)))
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    eventually("the record of its end", lambda: run_of(shared, "hang")["state"] == "Deleted")
    found = run_of(shared, "hang")
    assert "Ctrl-C" in found["message"]
    assert "about to hang" in lines_of(found)


def test_suspend_and_resume_keep_the_lines_of_both_attempts(shared: CommandLine, tmp_path: Path) -> None:
    go = start_waiting(shared, tmp_path)
    shared("suspend", "long")
    eventually("the suspension", lambda: run_of(shared, "long")["state"] == "Suspended")
    shared("resume", "long")
    eventually("both beginnings", lambda: lines_of(run_of(shared, "long")).count("begun") == 2)
    go.touch()
    eventually("the end", lambda: run_of(shared, "long")["state"] == "Complete")
    described = shared.parsed("runs", "describe", "long", "-o", "json")
    assert sorted(log["attempt"] for log in described["logs"]) == [1, 2]


def test_a_kill_of_the_control_plane_leaves_a_true_record(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    go = start_waiting(trainwright, tmp_path)
    trainwright.kill_control_plane()
    eventually("the control plane to be gone", lambda: "No local cluster" in trainwright("status", code=None))
    listed = trainwright("runs")
    assert "Running" in listed
    assert "the last known one" in listed, "says that nobody can know at present"
    go.touch()
    eventually("the last line", lambda: "went on to the end" in lines_of(run_of(trainwright, "long")))
    trainwright("up", "--detach")
    eventually("the true end", lambda: run_of(trainwright, "long")["state"] == "Complete")
    assert run_of(trainwright, "long")["exit_code"] == 0


def test_down_refuses_where_nobody_can_be_asked_and_says_what_to_type(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    start_waiting(trainwright, tmp_path)
    refused = trainwright("down", code=1)
    assert "1 TrainJob runs: long" in refused
    assert f"trainwright down --suspend --dir {trainwright.directory}" in refused
    assert "is up" in trainwright("status"), "and nothing was stopped"


def test_down_with_force_ends_jobs_and_their_record_says_so(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    start_waiting(trainwright, tmp_path)
    assert "TrainJob long ended" in trainwright("down", "--force")
    run = run_of(trainwright, "long")
    assert (run["state"], run["message"]) == ("Deleted", "deleted by trainwright down")
    assert not processes_of(trainwright.directory)
    trainwright("up", "--detach")
    assert "long" not in trainwright("get"), "it does not come back"
    assert run_of(trainwright, "long")["message"] == "deleted by trainwright down"


def test_down_with_suspend_lets_training_go_on_another_day(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    go = start_waiting(trainwright, tmp_path)
    trainwright("down", "--suspend")
    run = run_of(trainwright, "long")
    assert (run["state"], run["message"]) == ("Suspended", "suspended by trainwright down")
    trainwright("up", "--detach")
    go.touch()
    trainwright("resume", "long")
    eventually("the end", lambda: run_of(trainwright, "long")["state"] == "Complete")


@pytest.mark.parametrize(
    ("answer", "state"), [("e\n", "Deleted"), ("s\n", "Suspended"), ("c\n", "Running"), ("\n", "Running")]
)
def test_down_asks_on_a_terminal(trainwright: CommandLine, tmp_path: Path, answer: str, state: str) -> None:
    trainwright("up", "--detach")
    start_waiting(trainwright, tmp_path)
    said = on_a_terminal(trainwright.command("down"), "What now?", answer)
    assert "1 TrainJob runs: long" in said
    assert run_of(trainwright, "long")["state"] == state
    up = "is up" in trainwright("status", code=None)
    assert up is (state == "Running")


def on_a_terminal(command: list[str], question: str, answer: str) -> str:
    """Runs a command on a terminal of its own, answers its question, and returns what it showed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        said, deadline = "", time.monotonic() + 60
        while time.monotonic() < deadline:
            ready, _, _ = select.select([ours], [], [], 0.2)
            try:
                said += os.read(ours, 4096).decode() if ready else ""
            except OSError:  # the terminal is closed
                break
            if answer and question in said:
                os.write(ours, answer.encode())
                answer = ""
        process.wait(60)
    os.close(ours)
    assert not answer, f"never asked: {said}"
    return said


def test_down_does_not_stop_what_does_not_answer_unless_forced(trainwright: CommandLine) -> None:
    trainwright("up", "--detach")
    config = trainwright.kubeconfig.read_text()
    trainwright.kubeconfig.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", config))
    refused = trainwright("down", code=1)
    assert f"trainwright down --force --dir {trainwright.directory}" in refused
    assert "is up" in trainwright("status")
    assert "is down" in trainwright("down", "--force")


def test_a_cluster_stopped_with_its_jobs_is_the_reason_in_their_record(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    trainwright("up", "--detach")
    start_waiting(trainwright, tmp_path)
    os.kill(trainwright.pid, signal.SIGTERM)  # as Ctrl-C in the terminal of `up` does
    eventually("the cluster to stop", lambda: "No local cluster" in trainwright("status", code=None))
    trainwright("up", "--detach")
    eventually("the end", lambda: run_of(trainwright, "long")["state"] == "Failed")
    assert run_of(trainwright, "long")["message"].startswith("the cluster was stopped at ")


def test_deleting_runs_takes_finished_ones_by_id_and_refuses_others(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    job = write(tmp_path / "job.yaml", plain_job("done", "print('done')"))
    trainwright("run", job)
    trainwright("run", job)
    start_waiting(trainwright, tmp_path)
    living = run_of(trainwright, "long")["id"]
    assert "is not over" in trainwright("runs", "delete", living, code=1)
    assert "has 2 runs" in trainwright("runs", "delete", "done", code=1)
    first = run_of(trainwright, "done")
    assert first["id"] in trainwright("runs", "delete", first["id"])
    assert not Path(first["directory"]).exists()
    trainwright("runs", "delete", "--finished")
    assert [run["id"] for run in runs(trainwright)] == [living]
    assert "no run" in trainwright("runs", "describe", "done", code=1)


def test_a_broken_record_is_a_line_and_can_be_deleted(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("run", write(tmp_path / "job.yaml", plain_job("done", "pass")))
    run = run_of(trainwright, "done")
    Path(run["directory"], "run.json").write_text("{")
    assert re.search(rf"{run['id']} +Unreadable", trainwright("runs"))
    assert "cannot be read" in trainwright("runs", "describe", run["id"], code=1)
    trainwright("runs", "delete", run["id"])
    assert "no runs" in trainwright("runs")


def test_the_limit_is_a_setting_and_what_it_deletes_is_said(trainwright: CommandLine, tmp_path: Path) -> None:
    job = write(
        tmp_path / "job.yaml",
        plain_job("big", "import os; open(os.environ['TRAINWRIGHT_OUTPUT'] + '/x', 'wb').write(b'x' * 400_000)"),
    )
    trainwright("up", "--detach")
    trainwright("run", job)
    oldest = run_of(trainwright, "big")["id"]
    (trainwright.directory / "settings.toml").write_text('[runs]\nlimit = "600 kB"\ndays = 100000\n')
    home = RunsHome(trainwright.directory)
    home.update(oldest, lambda run: msgspec.structs.replace(run, ended="2026-01-01T00:00:00Z"))
    trainwright("run", job)
    eventually("the older run to go", lambda: oldest not in [run["id"] for run in runs(trainwright)])
    assert len(runs(trainwright)) == 1
    listed = trainwright("runs")
    assert f"1 run was deleted by the limits in the last 7 days: {oldest}" in listed
    assert f"run {oldest} deleted" in (trainwright.directory / "control-plane.log").read_text()
