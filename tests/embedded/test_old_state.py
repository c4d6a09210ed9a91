"""A state directory of the version before runs had homes opens in this one, and nothing in it is lost.

`oldstate/before-runs.tar.gz` was recorded before `trainwright/runs` existed. Its TrainJobs are `done` (Complete),
`broken` (Failed), `paused` (suspended from the start) and `cut` (it ran when that version's `down` ended its
processes). Keys, certificates and tokens were left out: they are made anew where they are missing.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from commandline import CommandLine, plain_job
from waiting import eventually

RECORDED = Path(__file__).parent / "oldstate" / "before-runs.tar.gz"


@pytest.fixture
def old(trainwright: CommandLine) -> CommandLine:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(trainwright.directory, filter="tar")
    trainwright.directory.chmod(0o700)
    # Its port, so that tests which open the same directory at the same moment do not want the same one.
    (trainwright.directory / "operator" / "progress-port").unlink()
    trainwright("up", "--detach")
    return trainwright


def runs(trainwright: CommandLine) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in trainwright.parsed("runs", "-o", "json")}


def test_its_jobs_are_there_with_their_ends_and_their_lines(old: CommandLine) -> None:
    jobs = {job["metadata"]["name"]: job["status"]["state"] for job in old.parsed("get", "-o", "json")["items"]}
    assert (jobs["done"], jobs["broken"], jobs["paused"]) == ("Complete", "Failed", "Suspended")
    assert "[rank 0] an old line" in old("logs", "done")
    old("delete", "broken")
    assert "broken" not in old("get")


def test_its_jobs_get_records(old: CommandLine) -> None:
    eventually("four records", lambda: len(runs(old)) == 4)
    eventually("the end of the one that was cut off", lambda: runs(old)["cut"]["state"] == "Failed")
    found = runs(old)
    assert (found["done"]["state"], found["done"]["exit_code"]) == ("Complete", 0)
    assert (found["broken"]["state"], found["broken"]["exit_code"]) == ("Failed", 3)
    assert found["paused"]["state"] == "Suspended"


def test_a_job_suspended_then_goes_on_now_and_its_lines_stay(old: CommandLine) -> None:
    old("resume", "paused")
    eventually("the end", lambda: runs(old)["paused"]["state"] == "Complete")
    old("delete", "paused")
    kept = Path(runs(old)["paused"]["directory"]).glob("logs/*/*/0.log")
    assert any("resumed in the new version" in log.read_text() for log in kept)


def test_it_takes_new_runs_and_opens_again(old: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "done.yaml"
    file.write_text(plain_job("done", "print('a new line')"))
    assert "a new line" in old("run", str(file))
    old("down", "--force")
    old("up", "--detach")
    assert runs(old)["done"]["state"] == "Complete"
