"""Sentences on a screen of 80 columns, and in a pipe."""

from __future__ import annotations

import pytest

from trainwright.cli.console.terminal import Terminal

LONG = (
    "rank 1 failed: FileNotFoundError: [Errno 2] No such file or directory: '/data/imagenet/train-00000-of-01024.tar'."
    " Check the path: trainwright exec mnist -- ls /data"
)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    terminal.is_live = True
    return terminal


def test_a_phase_does_not_break_inside_a_word(screen: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    screen.phase("mnist", "Failed", LONG)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mnist  Failed  rank 1 failed: ")
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) == 3
    assert " ".join(line.strip() for line in lines) == f"mnist  Failed  {LONG}"


def test_a_word_that_is_longer_than_the_screen_stays_whole(
    screen: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/{'x' * 100}"
    screen.phase("mnist", "Failed", f"no file {path} there")
    assert path in capsys.readouterr().out


def test_prose_goes_on_below_its_first_word(screen: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    screen.sentence(f"  {LONG}")
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("  ") and not line.startswith("   ") for line in lines)


def test_in_a_pipe_a_sentence_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    terminal.phase("mnist", "Failed", LONG)
    terminal.sentence(LONG)
    assert capsys.readouterr().out.splitlines() == [f"mnist  Failed  {LONG}", LONG]


def test_no_row_of_a_table_is_wider_than_the_screen(screen: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    screen.table(("NAME", "WHAT IT DOES"), [("mnist", LONG), ("other", "trains")])
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines[1:]) <= 80, "not by spaces that nobody sees, either: they make empty lines"
    assert lines[-1].split() == ["other", "trains"]
