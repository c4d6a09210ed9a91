"""What the views are told: commands to copy, curves, comparisons."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trainwright.dashboard.assets import STATIC, Assets
from trainwright.dashboard.curves import MOST_POINTS, Curve, Curves
from trainwright.dashboard.history import compared, described
from trainwright.dashboard.jobpage import commands_of
from trainwright.pipeline.reasons.table import AREAS
from trainwright.runs import Record, RunsHome
from trainwright.runs.surroundings import Surroundings


def test_all_files_of_the_page_are_small_and_have_no_inline_script() -> None:
    assets = Assets()
    assert assets.compressed_size <= 60_000
    assert b"<script>" not in assets.page.plain
    assert b"style=" not in assets.page.plain
    assert b"http://" not in assets.page.plain
    assert b"https://" not in assets.page.plain


def test_a_view_is_a_page_of_code() -> None:
    for file in (STATIC / "views").glob("*.js"):
        lines = file.read_text().splitlines()
        assert len(lines) <= 110, f"{file.name}: {len(lines)} lines"
        assert max(map(len, lines)) <= 160, (
            f"{file.name}: line {max(range(len(lines)), key=lambda at: len(lines[at])) + 1}"
        )


def test_the_commands_of_a_mend_can_be_typed() -> None:
    told = "Mend the code, then run it again; all lines before it: trainwright logs mnist"
    assert commands_of(told, " --dir /x", "team") == ["trainwright logs mnist -n team --dir /x"]
    told = "Create it in the job's namespace: kubectl create configmap"
    assert commands_of(told, " --dir /x", "default") == ["kubectl create configmap"]
    two = "Name one that exists: trainwright get runtimes, or create it"
    assert commands_of(two, "", "default") == ["trainwright get runtimes"]


def test_every_mend_that_names_a_command_gives_it() -> None:
    for _, causes in AREAS:
        for cause in causes:
            if ": trainwright " in cause.mend or ": kubectl " in cause.mend:
                assert commands_of(cause.mend, "", "default"), cause.mend


def test_a_curve_keeps_its_ends_when_it_is_thinned() -> None:
    curve = Curve()
    for step in range(3 * MOST_POINTS):
        curve.add(float(step), step, {"loss": 1 / (step + 1), "note": "text", "bad": float("nan")})
    columns = curve.columns()
    assert len(columns["time"]) <= MOST_POINTS + 1
    assert (columns["time"][0], columns["time"][-1]) == (0.0, 3 * MOST_POINTS - 1.0)
    assert list(columns["metrics"]) == ["loss"]
    assert not curve.add(5.0, 5, {"loss": 1.0}), "an older report is not a new one"
    spark = curve.spark()
    assert spark is not None
    assert spark["name"] == "loss"
    assert len(spark["points"]) <= 33


def test_the_curve_of_a_job_begins_with_what_its_run_has_kept(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    directory = home.create(Record(id="mnist-abcde", name="mnist"))
    directory.append_metrics({"time": "2026-01-01T00:00:00Z", "step": 1, "metrics": {"loss": "2.0"}})
    status = {"lastUpdatedTime": "2026-01-01T00:00:09Z", "metrics": [{"name": "loss", "value": "1.5"}]}
    job = {
        "metadata": {"name": "mnist", "uid": "u", "annotations": {"trainwright.dev/run": "mnist-abcde"}},
        "status": {"trainerStatus": status},
    }
    curve = Curves(home).note(job)
    assert curve is not None
    assert curve.columns()["metrics"] == {"loss": [2.0, 1.5]}


def test_a_comparison_tells_names_of_variables_and_never_values(tmp_path: Path) -> None:
    home = RunsHome(tmp_path)
    for id, lr in (("a-abcde", "0.1"), ("b-abcde", "0.2")):
        text = f"kind: TrainJob\nspec:\n  trainer:\n    args: [--lr, '{lr}']\n    env: [{{name: TOKEN, value: hush}}]\n"
        directory = home.create(Record(id=id, name=id[0], python="/usr/bin/python3"), documents=text)
        Surroundings.of("", {"TOKEN": "hush", "PATH": "/bin"}).write(directory)
    told = compared(home, ["a-abcde", "b-abcde"])
    sections = {section["title"]: section["rows"] for section in told["sections"]}
    assert {row["name"]: row["values"] for row in sections["TrainJob"]}["trainer.args"] == ["--lr 0.1", "--lr 0.2"]
    assert [row["name"] for row in sections["Variables (names only)"]] == ["PATH", "TOKEN"]
    assert b"hush" not in msgspec.json.encode(told)
    one = described(home, "b-abcde")
    assert one is not None
    assert one["environment"]["variables"] == ["PATH", "TOKEN"]


def test_surroundings_are_read_from_an_environment(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in ("torch-2.13.0.dist-info", "numpy-2.4.6.dist-info", "not_a_package"):
        (library / name).mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    found = Surroundings.of(str(tmp_path / "bin" / "python"), {"A": "1"})
    assert found == Surroundings("3.12.4", {"numpy": "2.4.6", "torch": "2.13.0"}, ["A"])
