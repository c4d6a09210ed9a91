"""The homes of runs: records that survive, are found, and are deleted only on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from trainwright.api.runid import derived_id, fresh_id, is_run_id
from trainwright.api.times import rfc3339
from trainwright.runs import Asked, BrokenRecord, Record, RunExists, RunsHome, State
from trainwright.runs.limits import Limits, SettingsInvalid, limits_of

NOW = 1_700_000_000.0
DAY = 86400.0


def finished(id: str, days_ago: float, **fields: object) -> Record:
    when = rfc3339(NOW - days_ago * DAY)
    return msgspec.convert(
        {"id": id, "name": id, "created": when, "ended": when, "state": "Complete", **fields}, Record
    )


def fill(home: RunsHome, run: Record, size: int = 0) -> None:
    directory = home.create(run)
    (directory.output / "model.pt").write_bytes(b"x" * size)


# Ids


@pytest.mark.parametrize("text", ["a", "train-k3x9f", "a.b", "0" * 72, "a..b"])
def test_ids_that_may_name_a_directory(text: str) -> None:
    assert is_run_id(text)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "../a", "a/b", "a\n", "A", "-a", "a-", ".a", "a.", "a\0b", "é", "0" * 73, "a b", "/etc"]
)
def test_a_path_is_never_made_from_what_is_no_id(text: str, tmp_path: Path) -> None:
    assert not is_run_id(text)
    with pytest.raises(ValueError, match="not the id of a run"):
        RunsHome(tmp_path).of(text)


@pytest.mark.parametrize("name", ["train", "a" * 63, "a" * 300, "a-" * 33])
def test_chosen_and_derived_ids_are_ids_whatever_the_name(name: str) -> None:
    assert is_run_id(fresh_id(name))
    assert is_run_id(derived_id(name, "0F9C2B1E-1111-2222-3333-444455556666"))
    assert is_run_id(derived_id(name, "0f9c2b1e-1111-2222-3333-444455556666", letters=32))


def test_two_runs_of_one_name_have_two_ids() -> None:
    assert len({fresh_id("train") for _ in range(50)}) == 50


# Records


def test_a_new_run_is_found_by_its_id_and_by_its_name(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    directory = home.create(Record(id="train-k3x9f", name="train"), documents="kind: TrainJob\n")
    assert directory.trainjob.read_text() == "kind: TrainJob\n"
    assert directory.output.is_dir()
    assert home.find("train-k3x9f") == home.find("train") == Record(id="train-k3x9f", name="train", serial=1)
    assert home.find("other") is None


def test_a_name_means_its_newest_run(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    for id, created in (
        ("a-old", "2026-01-01T00:00:00Z"),
        ("a-new", "2026-01-03T00:00:00Z"),
        ("a-mid", "2026-01-02T00:00:00Z"),
    ):
        home.create(Record(id=id, name="a", created=created))
    newest = home.find("a")
    assert newest is not None
    assert newest.id == "a-new"
    assert [run.id for run in home.records()] == ["a-new", "a-mid", "a-old"]


def test_of_two_runs_of_the_same_second_the_later_one_is_the_newest(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    for id in ("b", "a", "c", "0"):
        home.create(Record(id=id, name="x", created="2026-01-01T00:00:00Z"))
    assert [run.id for run in home.records()] == ["0", "c", "a", "b"]


def test_the_caller_s_environment_is_private_and_goes_when_told(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    directory = home.create(Record(id="a"), environment={"HF_TOKEN": "secret"})
    assert json.loads(directory.environment.read_bytes()) == {"HF_TOKEN": "secret"}
    assert directory.environment.stat().st_mode & 0o777 == 0o600
    assert directory.path.stat().st_mode & 0o777 == 0o700
    home.forget_environment("a")
    home.forget_environment("a")
    assert not directory.environment.exists()


def test_an_id_is_given_once(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a", name="first"))
    with pytest.raises(RunExists):
        home.create(Record(id="a", name="second"))
    found = home.read("a")
    assert found is not None
    assert found.name == "first"


def test_an_end_is_a_latch() -> None:
    run = Record(id="a").ended_as(State.FAILED, "2026-01-01T00:00:00Z", message="why", exit_code=3)
    assert run.ended_as(State.COMPLETE, "2026-01-02T00:00:00Z") == run
    assert (run.state, run.exit_code, run.message) == ("Failed", 3, "why")


def test_updates_of_many_processes_are_all_kept(tmp_path: Path) -> None:
    RunsHome(tmp_path).create(Record(id="a"))
    program = (
        "import sys, msgspec; from pathlib import Path; from trainwright.runs import RunsHome\n"
        "for _ in range(20):\n"
        "    home = RunsHome(Path(sys.argv[1]))\n"
        "    home.update('a', lambda run: msgspec.structs.replace(run, attempts=run.attempts + 1))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = RunsHome(tmp_path).read("a")
    assert found is not None
    assert found.attempts == 60


def test_a_record_of_another_version_is_read(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a"))
    home.of("a").record.write_text(
        '{"name": "x", "future": {"y": 1}, "nodes": null, "message": null, "state": "Paused"}'
    )
    assert home.read("a") == Record(id="a", name="x", state="Paused")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nodes": "many"}', '{"name": 5}', "\xff", '{"progress": []}'])
def test_a_broken_record_is_one_entry_and_hides_no_other(text: str, tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="good"))
    home.create(Record(id="bad"))
    home.of("bad").record.write_bytes(text.encode("latin-1"))
    whole, broken = home.all()
    assert isinstance(whole, Record)
    assert isinstance(broken, BrokenRecord)
    assert broken.id == "bad"
    assert "bad" in str(broken)
    assert home.delete("bad", "told to", NOW), "and it can be deleted"


def test_what_cannot_be_read_at_all_is_an_entry_too(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a"))
    home.of("a").record.unlink()
    home.of("a").record.mkdir()
    [broken] = home.all()
    assert isinstance(broken, BrokenRecord)
    (tmp_path / "file").write_text("")
    assert RunsHome(tmp_path / "file").all() == []


def test_what_is_not_a_run_is_neither_listed_nor_touched(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.json").write_text("{}")
    (home.path / "link").symlink_to(outside)
    (home.path / "Notes").mkdir()
    assert [run.id for run in home.records()] == ["a"]
    home.prune(0, 0, NOW)
    assert (outside / "run.json").exists()


def test_a_kill_at_any_moment_leaves_a_whole_record_and_no_lock(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a"))
    program = (
        "import sys, msgspec; from pathlib import Path; from trainwright.runs import RunsHome\n"
        "home, number = RunsHome(Path(sys.argv[1])), 0\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    number += 1\n"
        "    home.update('a', lambda run: msgspec.structs.replace(run, attempts=number, message='x' * number))\n"
    )
    for delay in (1, 3, 7):
        with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            before = home.read("a")
            assert before is not None
            while (home.read("a") or before).attempts < delay:
                pass
            writer.kill()
        found = home.read("a")
        assert found is not None
        assert found.message == "x" * found.attempts
        assert home.update("a", lambda run: msgspec.structs.replace(run, attempts=0, message="")) == Record(
            id="a", serial=1
        )


def test_lines_after_one_that_was_cut_off_are_read(tmp_path: Path) -> None:
    directory = RunsHome(tmp_path).create(Record(id="a"))
    directory.append_event({"reason": "one"})
    with directory.events.open("ab") as file:
        file.write(b'{"reason": "cu')
    directory.append_event({"reason": "two"})
    assert [event["reason"] for event in directory.read_events()] == ["one", "two"]


# Claims


def test_a_trainjob_claims_the_run_that_was_made_for_it(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="train-k3x9f", name="train", source="train.py"))
    claimed = home.claim(Record(name="train", uid="uid-1"), "train-k3x9f")
    assert claimed is not None
    assert (claimed.id, claimed.uid, claimed.source, claimed.state) == ("train-k3x9f", "uid-1", "train.py", "Pending")
    assert home.claim(Record(name="train", uid="uid-1"), "train-k3x9f") == claimed, "again and again"


@pytest.mark.parametrize(
    "other",
    [
        Record(name="other", uid="uid-2"),
        Record(name="train", uid="uid-2"),
        Record(name="train", namespace="elsewhere", uid="uid-2"),
    ],
)
def test_nobody_claims_a_run_of_somebody_else_by_naming_its_id(other: Record, tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="theirs", name="train"), environment={"HF_TOKEN": "secret"})
    home.claim(Record(name="train", uid="uid-1"), "theirs")
    claimed = home.claim(other, "theirs")
    assert claimed is not None
    assert claimed.id == derived_id(other.name, other.uid)
    assert not home.of(claimed.id).environment.exists()


def test_a_run_that_is_not_submitted_yet_is_for_its_own_name_only(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="theirs", name="train"))
    claimed = home.claim(Record(name="other", uid="uid-2"), "theirs")
    assert claimed is not None
    assert claimed.id != "theirs"


def test_a_run_on_another_cluster_is_never_claimed_here(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="remote", name="train", context="prod"))
    claimed = home.claim(Record(name="train", uid="uid-1"), "remote")
    assert claimed is not None
    assert claimed.id == derived_id("train", "uid-1")


@pytest.mark.parametrize("chosen", ["../../etc", "A", "", None])
def test_what_is_no_id_counts_as_none(chosen: str | None, tmp_path: Path) -> None:
    claimed = RunsHome(tmp_path).claim(Record(name="train", uid="12345678-aaaa"), chosen)
    assert claimed is not None
    assert claimed.id == "train-12345"


def test_two_trainjobs_whose_short_ids_are_equal_have_two_runs(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    one = home.claim(Record(name="train", uid="12345678-aaaa"), None)
    two = home.claim(Record(name="train", uid="12345999-bbbb"), None)
    assert one is not None
    assert two is not None
    assert one.id != two.id


def test_a_run_said_not_to_be_submitted_is_taken_back_when_its_trainjob_is_there(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a", name="train").ended_as(State.FAILED, "2026-01-01T00:00:00Z", reason="NotSubmitted"))
    claimed = home.claim(Record(name="train", uid="uid-1"), "a")
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.ended) == ("a", "Pending", None)


def test_a_run_that_was_deleted_is_not_made_again(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.claim(Record(name="train", uid="uid-1"), "a")
    assert home.delete("a", "told to", NOW)
    assert home.claim(Record(name="train", uid="uid-1"), "a") is None
    assert home.records() == []
    assert home.update("a", lambda run: run) is None


# Deleting


def test_deleting_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    fill(home, finished("a", 1, uid="uid-1"), 1000)
    assert home.delete("a", "told to", NOW)
    assert not home.delete("a", "told to", NOW)
    [gone] = home.deletions()
    assert (gone.id, gone.uid, gone.why) == ("a", "uid-1", "told to")
    assert gone.size >= 1000
    assert not [left for left in os.listdir(home.path) if "a" in left.split("-")]


def test_the_oldest_finished_runs_go_first_and_only_as_many_as_needed(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    for id, days in (("old", 3), ("older", 4), ("new", 1)):
        fill(home, finished(id, days), 100_000)
    gone = home.prune(250_000, 90, NOW)
    assert [deletion.id for deletion in gone] == ["older"]
    assert "0.3 MB" in gone[0].why
    assert {run.id for run in home.records()} == {"old", "new"}


def test_a_run_that_is_not_over_is_never_deleted_by_a_limit(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    fill(home, Record(id="running", created=rfc3339(NOW - 400 * DAY), state="Running"), 100_000)
    fill(home, Record(id="suspended", created=rfc3339(NOW - 400 * DAY), state="Suspended"), 100_000)
    assert home.prune(0, 0, NOW) == []
    assert len(home.records()) == 2


def test_runs_that_ended_long_ago_go_whatever_their_size(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    fill(home, finished("ancient", 91))
    fill(home, finished("recent", 89))
    [gone] = home.prune(10**10, 90, NOW)
    assert (gone.id, gone.why) == ("ancient", "it ended more than 90 days ago")


def test_what_a_killed_process_left_half_made_is_swept(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    home.create(Record(id="a"))
    for left in (".new-b-xyz", ".deleted-c-xyz"):
        (home.path / left / "logs").mkdir(parents=True)
    os.utime(home.path / ".new-b-xyz", (NOW - 2 * DAY, NOW - 2 * DAY))
    home.prune(10**10, 90, NOW)
    assert sorted(entry for entry in os.listdir(home.path) if not entry.startswith((".lock", ".serial"))) == ["a"]


# Settings


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", Limits(10_000_000_000, 90)),
        ('[runs]\nlimit = "500 MB"\n', Limits(500_000_000, 90)),
        ('[runs]\nlimit = "1GiB"\ndays = 7\n', Limits(2**30, 7)),
        ("[runs]\nlimit = 1000\ndays = 0.5\n", Limits(1000, 0.5)),
        ("[other]\nx = 1\n", Limits(10_000_000_000, 90)),
    ],
)
def test_limits_are_settings(text: str, limits: Limits, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(text)
    assert limits_of(tmp_path) == limits


@pytest.mark.parametrize(
    "text",
    ["runs = 1", "[runs]\nlimit = 'much'", "[runs]\ndays = 'all'", "[runs]\nday = 3", "[runs", "[runs]\nlimit = -1"],
)
def test_a_wrong_setting_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(SettingsInvalid, match=r"settings\.toml"):
        limits_of(tmp_path)


def test_who_follows_a_run_is_seen_until_it_dies(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    directory = home.create(Record(id="a", asked=Asked(by="Ctrl-C")))
    assert not directory.is_followed
    program = (
        "import sys, time; from pathlib import Path; from trainwright.runs import RunsHome\n"
        "with RunsHome(Path(sys.argv[1])).followed('a'):\n"
        "    print('follows', flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        assert directory.is_followed
        follower.kill()
    assert not directory.is_followed
