"""`trainwright logs` as a user types it: on jobs that run, that are over, and that are gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import CommandLine, in_process, plain_job
from waiting import eventually

TALK = """
    import os
    rank = os.environ["JOB_COMPLETION_INDEX"]
    for number in range(5):
        print(f"word {number} of {rank}")
"""


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A job of three ranks with five lines each, which is over, and so is its cluster."""
    directory = tmp_path_factory.mktemp("talked")
    (directory / "talk.yaml").write_text(plain_job("talk", TALK, nodes=3))
    with in_process(directory / "state") as line:
        line("run", str(directory / "talk.yaml"))
        yield line


def test_lines_can_be_chosen_when_no_cluster_is_up(talked: CommandLine) -> None:
    assert "No local cluster" in talked("status", code=1)
    whole = talked("logs", "talk").splitlines()
    assert sorted(whole) == sorted(f"[rank {rank}] word {n} of {rank}" for rank in range(3) for n in range(5))
    assert talked("logs", "talk", "--rank", "1").splitlines() == [f"[rank 1] word {n} of 1" for n in range(5)]
    assert sorted(talked("logs", "talk", "--tail", "1", "--rank", "0,2").splitlines()) == [
        "[rank 0] word 4 of 0",
        "[rank 2] word 4 of 2",
    ]
    assert talked("logs", "talk", "--since", "1h").splitlines() == whole
    assert talked("logs", "talk", "--since", "2099-01-01T00:00:00Z") == ""
    stamped = talked("logs", "talk", "--rank", "0", "--timestamps").splitlines()
    assert all(re.fullmatch(r"\[rank 0\] 20\d\d-\d\d-\d\dT[\d:.]+Z word \d of 0", line) for line in stamped)
    assert talked("logs", "-f", "talk", "--rank", "2").splitlines() == [f"[rank 2] word {n} of 2" for n in range(5)]


def test_a_program_reads_lines_as_json(talked: CommandLine) -> None:
    lines = [json.loads(line) for line in talked("logs", "talk", "-o", "json", "--rank", "2").splitlines()]
    assert [line["line"] for line in lines] == [f"word {n} of 2" for n in range(5)]
    assert {(line["rank"], line["container"], line["attempt"]) for line in lines} == {(2, "node", 1)}
    assert all(line["pod"].startswith("talk-node-0-2-") for line in lines)
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)


def test_flags_that_make_no_sense_say_what_to_write(talked: CommandLine) -> None:
    assert "--rank none: write a rank" in talked("logs", "talk", "--rank", "none", code=2)
    assert "such as 10m" in talked("logs", "talk", "--since", "soon", code=2)
    assert "exclude each other" in talked("logs", "talk", "-f", "--previous", code=2)
    assert "no earlier attempt" in talked("logs", "talk", "--previous", code=1)


def test_every_attempt_is_there_and_the_one_before_can_be_asked_for(shared: CommandLine, tmp_path: Path) -> None:
    once = tmp_path / "once"
    script = f"""
        import pathlib, sys
        once = pathlib.Path({str(once)!r})
        if once.exists():
            print("the second time is fine")
        else:
            once.touch()
            sys.exit("the first time is not")
    """
    job = plain_job("again", script).replace(
        "      replicatedJobs:", "      failurePolicy: {maxRestarts: 1}\n      replicatedJobs:"
    )
    (tmp_path / "again.yaml").write_text(job)
    output = shared("run", str(tmp_path / "again.yaml"))
    assert "[rank 0] the first time is not" in output
    assert "[rank 0] the second time is fine" in output
    both = ["[rank 0] the first time is not", "[rank 0] the second time is fine"]
    assert shared("logs", "again").splitlines() == both
    assert shared("logs", "again", "--previous").splitlines() == both[:1]


def test_a_running_job_is_followed_from_where_the_user_wants(shared: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"""
        import pathlib, time
        for number in range(100):
            print("early", number)
        while not pathlib.Path({str(go)!r}).exists():
            time.sleep(0.05)
        print("late")
    """
    (tmp_path / "slow.yaml").write_text(plain_job("slow", script))
    shared("run", str(tmp_path / "slow.yaml"), "--detach")
    eventually("the early lines", lambda: "early 99" in shared("logs", "slow", code=None))
    with shared.start("logs", "-f", "slow", "--tail", "2") as logs:
        assert logs.stdout is not None
        first = logs.stdout.readline()
        go.touch()
        rest = logs.stdout.read()
    assert (first + rest).splitlines() == ["[rank 0] early 98", "[rank 0] early 99", "[rank 0] late"]


def test_a_deleted_job_still_has_its_lines(shared: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_text(plain_job("gone", "print('the last word')"))
    shared("run", str(tmp_path / "gone.yaml"))
    shared("delete", "gone")
    assert shared("logs", "gone") == "[rank 0] the last word\n"
    assert 'no TrainJob and no run named "never"' in shared("logs", "never", code=1)
