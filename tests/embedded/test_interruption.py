"""What Ctrl-C and a closed window do to a job that is being followed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commandline import CommandLine, in_process, plain_job, processes_of_pods
from pseudoterminal import OnTerminal, on_terminal
from waiting import eventually

LONG = """
    import subprocess, time
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("up and running")
    for number in range(6000):
        print("still here", number)
        time.sleep(0.1)
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    (tmp_path / "long.yaml").write_text(plain_job("long", LONG))
    return str(tmp_path / "long.yaml")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A cluster that is up before and after the run. Each test leaves it without a job."""
    with in_process(tmp_path_factory.mktemp("interruption") / "cluster") as line:
        line("up", "--detach")
        yield line


@contextmanager
def running(trainwright: CommandLine, job: str) -> Iterator[OnTerminal]:
    with on_terminal(trainwright.command("run", job)) as run:
        run.wait_for("still here 3")
        yield run


def pods_of(trainwright: CommandLine) -> list[str]:
    """The processes of the cluster but for the control plane."""
    return processes_of_pods(trainwright.directory)


def test_ctrl_c_asks_and_the_job_can_be_left_running_with_its_cluster(trainwright: CommandLine, job: str) -> None:
    with running(trainwright, job) as run:
        run.press_ctrl_c()
        run.wait_for("[l/s/d/c]")
        run.type("l\n")
        assert run.wait() == 0, run.screen
    assert "runs on. Follow it with: trainwright logs -f long" in run.screen
    assert "Running" in trainwright("get"), "the cluster that was started for the run is still there"
    assert pods_of(trainwright)
    trainwright("delete", "long")


def test_the_answer_may_be_to_continue(trainwright: CommandLine, job: str) -> None:
    with running(trainwright, job) as run:
        run.press_ctrl_c()
        run.wait_for("[l/s/d/c]")
        run.type("what?\n")
        run.wait_for(lambda screen: screen.count("[l/s/d/c]") == 2)
        run.type("c\n")
        seen = run.screen.count("still here")
        run.wait_for(lambda screen: screen.count("still here") > seen + 5)
        numbers = [int(line.rsplit(" ", 1)[1]) for line in run.screen.splitlines() if "still here" in line]
        assert numbers == list(range(len(numbers))), "no line was lost while the question stood"
        run.press_ctrl_c()
        run.wait_for(lambda screen: screen.count("[l/s/d/c]") == 3)
        run.type("d\n")
        assert run.wait() == 130, run.screen
    assert "nothing of it is left" in run.screen


def test_a_suspended_job_keeps_its_place_and_no_process(cluster: CommandLine, job: str) -> None:
    with running(cluster, job) as run:
        run.press_ctrl_c()
        run.wait_for("[l/s/d/c]")
        run.type("s\n")
        assert run.wait() == 130, run.screen
    assert "is suspended; continue it with: trainwright resume long" in run.screen
    assert "Suspended" in cluster("get")
    assert not pods_of(cluster)
    cluster("delete", "long")


def test_the_second_ctrl_c_deletes_as_the_question_says(cluster: CommandLine, job: str) -> None:
    with running(cluster, job) as run:
        run.press_ctrl_c()
        run.wait_for("Ctrl-C again deletes it")
        run.press_ctrl_c()
        assert run.wait() == 130, run.screen
    assert "nothing of it is left" in run.screen
    assert "long" not in cluster("get")
    assert not pods_of(cluster)


def test_a_closed_window_leaves_the_job_running_and_the_next_command_says_so_once(
    trainwright: CommandLine, job: str
) -> None:
    with running(trainwright, job) as run:
        run.close_window()
        assert run.process.wait(30) == 129
    first = trainwright("get")
    assert "TrainJob long was left running when its terminal was closed" in first
    assert "trainwright logs -f long" in first
    assert "Running" in first
    assert pods_of(trainwright)
    assert "left running" not in trainwright("get")
    trainwright("delete", "long")


def test_a_killed_command_is_missed_by_the_next_one(cluster: CommandLine, job: str) -> None:
    with running(cluster, job) as run:
        run.process.send_signal(signal.SIGKILL)
        run.process.wait(10)
    assert "TrainJob long was left running" in cluster("status")
    cluster("delete", "long")


def test_without_a_terminal_an_interrupt_deletes_and_a_hang_up_leaves(cluster: CommandLine, job: str) -> None:
    for number, code in ((signal.SIGHUP, 129), (signal.SIGINT, 130)):
        with cluster.start("run", job) as run:
            assert run.stdout is not None
            assert any("up and running" in line for line in run.stdout)
            run.send_signal(number)
            run.communicate(timeout=60)
            assert run.returncode == code
        if number == signal.SIGHUP:
            assert "Running" in cluster("get")
            cluster("delete", "long")
    eventually("the job to be gone", lambda: "long" not in cluster("get"))
