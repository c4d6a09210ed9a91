"""`trainwright runs` on records alone: what a person reads of them with no cluster up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright.api.times import rfc3339
from trainwright.cli.main import main
from trainwright.runs import Asked, Progress, Record, RunsHome, State


@pytest.fixture
def home(tmp_path: Path) -> RunsHome:
    return RunsHome(tmp_path)


class Shown:
    def __init__(self, home: RunsHome, capsys: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        assert main(["runs", *words, "--dir", str(self._home.state)]) == code
        captured = self._capsys.readouterr()
        return captured.out + captured.err


@pytest.fixture
def shown(home: RunsHome, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(home, capsys)


def ago(seconds: float) -> str:
    return rfc3339(time.time() - seconds)


def record(id: str, **fields: object) -> Record:
    values = {"name": id, "created": ago(600), "started": ago(600), "state": State.RUNNING, "nodes": 2, **fields}
    return Record(id=id, **values)  # type: ignore[arg-type]


def test_no_runs_are_no_error(shown: Shown) -> None:
    assert "no runs in" in shown()
    assert json.loads(shown("-o", "json")) == []


def test_a_line_has_state_age_duration_nodes_exit_and_the_last_report(home: RunsHome, shown: Shown) -> None:
    report = Progress(step=80, total=100, metrics={"loss": 0.12, "acc": "0.9", "lr": 0.1, "more": 1})
    home.create(record("good", state=State.COMPLETE, ended=ago(300), exit_code=0, progress=report))
    home.create(record("bad", state=State.FAILED, ended=ago(540), exit_code=7, message="rank 1 gave up"))
    listed = shown()
    assert re.search(r"good +Complete +10m +5m +2 +0 +step 80 of 100, loss=0.12, acc=0.9, lr=0.1, and 1 more", listed)
    assert re.search(r"bad +Failed +10m +60s +2 +7 +rank 1 gave up", listed)


def test_runs_on_other_clusters_say_where(home: RunsHome, shown: Shown) -> None:
    home.create(record("here"))
    assert "CLUSTER" not in shown()
    home.create(record("there", context="prod", server="https://prod:6443"))
    assert re.search(r"there +prod +Running", shown())
    assert "context prod at https://prod:6443" in shown("describe", "there")


def test_what_is_not_known_without_a_control_plane_is_said(home: RunsHome, shown: Shown) -> None:
    home.create(record("open"))
    home.create(record("remote", context="prod"))
    home.create(record("done", state=State.COMPLETE))
    listed = shown()
    assert "the state of open is the last known one" in listed
    assert f"trainwright up --detach --dir {home.state}" in listed


def test_what_a_limit_deleted_is_said_for_a_week_and_what_the_user_deleted_is_not(home: RunsHome, shown: Shown) -> None:
    for id, days in (("ancient", 400), ("recent", 1)):
        home.create(record(id, state=State.COMPLETE, ended=ago(days * 86400)))
    home.prune(10**10, 90, time.time())
    shown("delete", "recent")
    listed = shown()
    assert "1 run was deleted by the limits in the last 7 days: ancient (it ended more than 90 days ago)" in listed
    assert "settings.toml" in listed


def test_describe_tells_who_asked_and_where_things_are(home: RunsHome, shown: Shown) -> None:
    asked = Asked(by="Ctrl-C", time="2026-01-01T00:00:00Z")
    directory = home.create(record("gone", name="job", state=State.DELETED, asked=asked, message="deleted by Ctrl-C"))
    directory.append_event({"time": "t", "type": "Phase", "reason": "Deleted", "object": "TrainJob/job", "message": ""})
    text = shown("describe", "job")
    assert "Deleted: deleted by Ctrl-C" in text
    assert f"Outputs:      {directory.output}" in text
    assert "TrainJob/job" in text


def test_json_has_every_field_and_the_paths(home: RunsHome, shown: Shown) -> None:
    directory = home.create(record("a", ended=None))
    [run] = json.loads(shown("-o", "json"))
    assert run["exit_code"] is None
    assert run["directory"] == str(directory.path)
    assert 595 < run["duration_seconds"] < 700


def test_a_run_that_may_not_be_over_needs_force(home: RunsHome, shown: Shown) -> None:
    home.create(record("remote", context="prod"))
    home.create(record("open"))
    assert "trainwright delete remote --context prod" in shown("delete", "remote", code=1)
    assert "see what became of it with: trainwright up" in shown("delete", "open", code=1)
    assert "no finished runs" in shown("delete", "--finished")
    shown("delete", "remote", "open", "--force")
    assert home.records() == []


@pytest.mark.parametrize(
    "words", [("delete",), ("delete", "a", "--finished"), ("describe",), ("describe", "a", "b"), ("list", "a")]
)
def test_a_wrong_call_says_how_to_write_it(shown: Shown, words: tuple[str, ...]) -> None:
    assert "trainwright runs" in shown(*words, code=2)


@pytest.mark.parametrize("name", ["../..", "/etc", "nobody", ""])
def test_a_run_that_is_not_there_is_one_message(shown: Shown, name: str) -> None:
    for action in ("describe", "delete"):
        assert "there is no run" in shown(action, name, code=1)


def test_one_typo_among_ids_deletes_none(home: RunsHome, shown: Shown) -> None:
    home.create(record("a", state=State.COMPLETE))
    assert "there is no run" in shown("delete", "a", "typo", code=1)
    assert home.find("a") is not None


def test_flags_may_stand_between_the_action_and_the_id(home: RunsHome, capsys: pytest.CaptureFixture[str]) -> None:
    home.create(record("early", state=State.COMPLETE))
    assert main(["runs", "describe", "--dir", str(home.state), "early"]) == 0
    assert "early" in capsys.readouterr().out


def test_a_reader_that_leaves_is_no_error(home: RunsHome) -> None:
    for number in range(3):
        home.create(record(f"run-{number}", state=State.COMPLETE))
    command = [sys.executable, "-m", "trainwright.cli.main", "runs", "--dir", str(home.state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
