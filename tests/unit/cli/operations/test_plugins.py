"""`trainwright plugins` as a user meets it: no cluster, every plugin with where it is from, every fault by name."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.cli.main import main

SPOT = Path(__file__).parents[4] / "examples" / "plugins" / "spot" / "trainwright_spot.py"
WATCHER = """
from trainwright.api.resources import JOBS
from trainwright.pipeline import Watch

class Watcher:
    name = "Watcher"
    def build(self, info, job): return []
    def watches(self): yield Watch(JOBS)

PLUGINS = [Watcher]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(SPOT, folder / "20-spot.py")
    (folder / "20-spot.py").chmod(0o644)
    (folder / "10-watcher.py").write_text(WATCHER)
    (folder / "30-broken.py").write_text("class It:\n")
    return folder


def config(folder: Path, **plugins: Any) -> str:
    file = folder.parent / "config.yaml"
    file.write_text(json.dumps({"plugins": {"directory": str(folder), **plugins}}))
    return str(file)


def listed(capsys: pytest.CaptureFixture[str], *flags: str, code: int = 0) -> dict[str, dict[str, Any]]:
    assert main(["plugins", "-o", "json", *flags]) == code
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_built_in_plugins_are_listed_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, "--feature-gates", "TrainJobStatus=true")
    assert list(rows)[:2] == ["PlainML", "Torch"]
    assert [row["order"] for row in rows.values()] == list(range(1, len(rows) + 1))
    assert {row["origin"] for row in rows.values()} == {"built-in"}
    assert rows["JobSet"]["points"] == ["sync_template", "build", "validate", "status", "watches"]
    assert rows["JobSet"]["watches"] == [
        {"resource": "jobsets.jobset.x-k8s.io", "workload": True},
        {"resource": "jobs.batch", "workload": False},
    ]
    assert "TrainJobStatus" in rows


def test_files_are_listed_with_their_path_and_what_is_broken_with_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(capsys, "--config", config(folder), code=1)
    assert rows["Watcher"] == {
        "name": "Watcher",
        "state": "on",
        "origin": "file",
        "where": f"{folder}/10-watcher.py",
        "order": 12,
        "points": ["build", "watches"],
        "watches": [{"resource": "jobs.batch", "workload": False}],
        "why": "",
    }
    assert (rows["Spot"]["order"], rows["Spot"]["points"]) == (13, ["enforce_pod_spec", "validate"])
    assert rows["30-broken.py"]["state"] == "broken"
    assert rows["30-broken.py"]["why"].startswith("line 1: expected an indented block")
    assert main(["plugins", "--config", config(folder)]) == 1
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in table[-3:]] == [["12", "Watcher"], ["13", "Spot"], ["-", "30-broken.py"]]
    assert f"{folder}/10-watcher.py   build, watches" in table[-3]
    assert "broken: line 1: expected an indented block" in table[-1]


def test_what_is_disabled_and_what_is_missing_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "30-broken.py").unlink()
    choice = config(folder, disabledPlugins=["Spot", "Flux"], enabledPlugins=["Watcher", "*", "Later"])
    rows = listed(capsys, "--config", choice)
    assert (rows["Watcher"]["order"], rows["PlainML"]["order"]) == (1, 2)
    assert [name for name, row in rows.items() if row["state"] == "disabled"] == ["Flux", "Spot"]
    assert rows["Flux"]["order"] is None
    assert rows["Flux"]["watches"], "what it would watch is told all the same"
    assert (rows["Later"]["state"], rows["Later"]["why"]) == (
        "missing",
        "the configuration names it, and no plugin has the name",
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    info = tmp_path / "extra-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(
        "[trainwright.plugins]\nbad = no_such_module_here:X\nstamp = extra_listed_plugin:Stamp\n"
    )
    source = (
        "class Stamp:\n    name = 'Stamp'\n    def build(self, info, job): return []\n    def watches(self): 1 / 0\n"
    )
    (tmp_path / "extra_listed_plugin.py").write_text(source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "extra_listed_plugin", raising=False)
    return tmp_path


def test_entry_points_are_listed_with_their_distribution_and_a_broken_one_is_named(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = listed(capsys, code=1)
    assert rows["Stamp"]["where"] == "stamp = extra_listed_plugin:Stamp of extra 2.5"
    assert (rows["Stamp"]["origin"], rows["Stamp"]["order"]) == ("entry point", 12)
    assert (rows["Stamp"]["state"], rows["Stamp"]["why"]) == (
        "broken",
        "plugin Stamp failed in watches: division by zero",
    )
    assert rows["bad"]["why"].startswith("no_such_module_here:X cannot be imported: ModuleNotFoundError")


def test_other_commands_tell_of_a_broken_file_and_go_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
        "metadata: {name: demo, labels: {example.com/spot: 'true'}}\n"
        "spec: {runtimeRef: {name: torch-distributed}}\n"
    )
    choice = config(folder, enabledPlugins=["Later"])
    assert main(["render", "-f", str(job), "--config", choice]) == 0
    ran = capsys.readouterr()
    assert "SPOT_GRACE_SECONDS" in ran.out
    assert f"Warning: plugin file {folder}/30-broken.py: line 1: expected an indented block" in ran.err
    assert "Warning: there is no plugin Later, which the configuration names" in ran.err


def test_a_configuration_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("plugins: {directories: x}")
    assert main(["plugins", "--config", str(file)]) == 2
    assert "unknown field `directories`" in capsys.readouterr().err
    file.write_text("plugins: {enabledPlugins: [Nope]}")
    assert main(["plugins", "--config", str(file)]) == 1
    assert "plugin Nope: there is no such plugin" in capsys.readouterr().err
