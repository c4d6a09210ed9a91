"""`trainwright diff` between files: what would change in the objects that a cluster gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.cli.main import main

EXAMPLE = Path(__file__).parents[4] / "examples" / "torch-ddp" / "trainjob.yaml"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(EXAMPLE.read_text())
    new.write_text(EXAMPLE.read_text().replace("numNodes: 2", "numNodes: 3"))
    return str(old), str(new)


def test_the_same_is_0_and_a_difference_1(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = files
    assert main(["diff", old, "--against", old]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", "-f", new, "--against", old]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"--- JobSet/torch-ddp ({old})" in lines
    assert "-        parallelism: 2" in lines
    assert "+        parallelism: 3" in lines
    assert main(["diff", new, "--against", old, "--quiet"]) == 1
    assert capsys.readouterr().out == ""


def test_what_is_wrong_with_a_file_is_an_error_not_a_difference(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, _ = files
    broken = tmp_path / "broken.yaml"
    broken.write_text(EXAMPLE.read_text().replace("torch-distributed", "no-such-runtime"))
    assert main(["diff", str(broken), "--against", old]) == 2
    assert "is refused" in capsys.readouterr().err
    assert main(["diff", str(tmp_path / "missing.yaml"), "--against", old]) == 2
    assert main(["diff", old]) == 2
    assert "no local cluster is running" in capsys.readouterr().err
