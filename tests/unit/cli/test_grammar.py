"""What was typed wrongly is told in one line, with what was meant, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.cli import commands
from trainwright.cli.arguments import overview, parser_of
from trainwright.cli.main import main

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "torch-ddp" / "trainjob.yaml")


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    try:
        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("gett", "there is no command gett; did you mean get?"),
        ("--verison", "there is no flag --verison; did you mean --version?"),
        ("get --outptu json", "there is no flag --outptu; did you mean --output?"),
        ("runs lst", "there is no 'lst'; did you mean list?"),
        ("logs mnist -o jsn", "there is no 'jsn'; did you mean json?"),
        ("up --port abc", "--port: 'abc' is not a whole number from 0 to 65535"),
        ("up --port 70000", "--port: '70000' is not a whole number from 0 to 65535"),
        ("run train.py --nodes 0", "--nodes: '0' is not a whole number of 1 or more"),
        ("run train.py --lr 0.1", "arguments of your program go after --: trainwright run … -- --lr 0.1"),
        ("run a.yaml -f b.yaml", "one file is enough"),
        ("wait mnist --timeout soon", "--timeout: 'soon' is not a number of seconds"),
        ("status --dir README.md", "--dir: README.md is not a directory"),
        ("get --local --dir README.md", "--dir: README.md is not a directory"),
        ("render", "no file is given"),
        ("explain", "no file is given"),
        ("explain a.yaml b c", "explain takes one path, not 2"),
        ("", "which command?"),
    ],
)
def test_a_mistake_is_one_line_with_what_was_meant(capsys: pytest.CaptureFixture[str], words: str, said: str) -> None:
    code, out, err = typed(capsys, *words.split())
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert "_" not in err, "no name of our own code"


@pytest.mark.parametrize("command", ["validate", "render", "explain"])
def test_a_file_is_given_as_a_word_or_with_f(capsys: pytest.CaptureFixture[str], command: str) -> None:
    by_word, by_flag = typed(capsys, command, EXAMPLE), typed(capsys, command, "-f", EXAMPLE)
    assert by_word == by_flag
    assert by_word[0] == 0


def test_run_takes_its_file_with_f_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = ("run", "--dir", str(tmp_path / "state"), "--dry-run")
    code, out, _ = typed(capsys, *run, "-f", EXAMPLE)
    assert code == 0
    assert "kind: TrainJob" in out


def test_explain_takes_its_path_before_or_behind_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    ways = [("-f", EXAMPLE, "spec.suspend"), ("spec.suspend", "-f", EXAMPLE), (EXAMPLE, "spec.suspend")]
    answers = {typed(capsys, "explain", *words) for words in ways}
    assert len(answers) == 1
    assert "suspend: false" in answers.pop()[1]


def test_every_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for name in commands.names():
        command = commands.find(name)
        assert command is not None
        text = parser_of(command).format_help()
        assert "examples:" in text
        assert all(f"trainwright {name}" in words for words, _ in command.examples)
    assert all(f"\n  {name} " in overview() for name in commands.names())
    code, out, err = typed(capsys, "help", "logs")
    assert (code, err) == (0, "")
    assert out == typed(capsys, "logs", "--help")[1]


def test_only_the_group_of_the_command_is_imported() -> None:
    """The start of a command stays light."""
    import subprocess
    import sys

    code = (
        "import sys; from trainwright.cli.arguments import parse; parse(['up']);"
        "print([name for name in sys.modules if name.startswith('trainwright.cli.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "machine" in done.stdout
    assert "jobs" not in done.stdout


def test_an_editor_reads_errors_with_their_lines_and_hints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import json

    file = tmp_path / "job.yaml"
    text = Path(EXAMPLE).read_text().replace("numNodes", "numNode").replace("torch-distributed", "torch-distribted")
    file.write_text(text)
    code, out, err = typed(capsys, "validate", str(file), "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    (document,) = found["documents"]
    assert (found["refused"], document["admitted"], document["file"]) == (1, False, str(file))
    hints = {error["hint"]: error["line"] for error in document["errors"]}
    lines = text.splitlines()
    assert "numNode:" in lines[hints['did you mean "numNodes"?'] - 1]
    assert hints['did you mean "torch-distributed"?']
    code, out, _ = typed(capsys, "validate", EXAMPLE, "-o", "json")
    assert (code, json.loads(out)["refused"]) == (0, 0)
