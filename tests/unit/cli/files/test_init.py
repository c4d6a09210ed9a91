"""`trainwright init` writes a TrainJob that can be used as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from trainwright.cli.commands.files import FRAMEWORKS
from trainwright.cli.files.init import FRAMEWORKS as STARTERS
from trainwright.cli.main import main


@pytest.mark.parametrize("with_runtime", [False, True], ids=["alone", "with its runtime"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_init_writes_is_admitted_and_rendered(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    framework: str,
    with_runtime: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--nodes", "3", *(["--with-runtime"] if with_runtime else [])]
    assert main(["init", framework, "job.yaml", *flags]) == 0
    assert "trainwright run job.yaml" in capsys.readouterr().out
    assert main(["validate", "job.yaml"]) == 0
    assert "warning" not in capsys.readouterr().out
    assert main(["render", "job.yaml"]) == 0
    jobset = next(item for item in yaml.safe_load_all(capsys.readouterr().out) if item["kind"] == "JobSet")
    pods = sum(job["template"]["spec"]["parallelism"] for job in jobset["spec"]["replicatedJobs"])
    assert pods == 3, "nodes"
    written = list(yaml.safe_load_all((tmp_path / "job.yaml").read_text()))
    assert [item["kind"] for item in written] == ["TrainJob", *(["TrainingRuntime"] if with_runtime else [])]
    assert "@" not in (tmp_path / "job.yaml").read_text().replace("x @ w", "").replace("points @", "").replace(
        " @ wanted", ""
    )


def test_a_file_that_is_there_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainjob.yaml").write_text("mine")
    assert main(["init"]) == 1
    assert "trainjob.yaml is there already" in capsys.readouterr().err
    assert (tmp_path / "trainjob.yaml").read_text() == "mine"
    assert main(["init", "--force", "-q"]) == 0
    assert "kind: TrainJob" in (tmp_path / "trainjob.yaml").read_text()
    assert main(["init", "--name", "Mine!"]) == 2


def test_every_framework_has_a_starter() -> None:
    assert tuple(STARTERS) == FRAMEWORKS
