"""Completion as the shells themselves carry it out: bash always, zsh and fish where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.cli.completion.words import all_commands
from trainwright.runs import RunsHome

WHERE = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, with one run in it and a kubeconfig with two contexts."""
    (RunsHome(tmp_path / "trainwright").path / "mnist-abc12").mkdir(parents=True)
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("contexts: [{name: prod}, {name: staging}]\n")
    (tmp_path / "job.yaml").write_text("")
    path = f"{WHERE}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PATH": path, "TERM": "dumb"}


CASES = [
    ("trainwright ge", {"get"}),
    ("trainwright su", {"submit", "suspend"}),
    ("trainwright get -o ya", {"yaml"}),
    ("trainwright get --outp", {"--output"}),
    ("trainwright get ru", {"runtimes"}),
    ("trainwright logs mni", {"mnist-abc12"}),
    ("trainwright run train.py --context st", {"staging"}),
    ("trainwright validate jo", {"job.yaml"}),
    ("trainwright init xg", {"xgboost"}),
    ("trainwright run --dry-run -- jo", {"job.yaml"}),
]


def ask(shell: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        shell, env=environment, cwd=environment["HOME"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout


def answers(output: str) -> list[set[str]]:
    """What the shell offers for each line that it was asked about."""
    return [{line.split("\t")[0] for line in part.splitlines() if line} for part in output.split("==\n")[1:]]


def test_bash_completes_commands_flags_values_and_names(environment: dict[str, str]) -> None:
    script = "source <(trainwright completion bash)\n"
    for line, _ in CASES:
        words = " ".join(f"'{word}'" for word in line.split())
        script += f"""
            echo ==; COMP_WORDS=({words}); COMP_CWORD={len(line.split()) - 1}; _trainwright
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
    assert answers(ask(["bash", "-c", script], environment)) == [expected for _, expected in CASES]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_flags_values_and_names(environment: dict[str, str]) -> None:
    script = "trainwright completion fish | source\n"
    script += "".join(f"echo ==; complete -C '{line}'\n" for line, _ in CASES)
    assert answers(ask(["fish", "-c", script], environment)) == [expected for _, expected in CASES]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_accepts_the_script_and_knows_every_command(environment: dict[str, str]) -> None:
    script = """
        autoload -Uz compinit; compinit -u -D
        source <(trainwright completion zsh)
        print -r -- ${_comps[trainwright]}
        function _describe { print -rl -- ${(P)4} }
        CURRENT=2 words=(trainwright '') _trainwright
        function _arguments { print -rl -- "$@" }
        CURRENT=3 words=(trainwright get '') _trainwright
    """
    found = ask(["zsh", "-f", "-c", script], environment).splitlines()
    assert "_trainwright" in found
    assert {line.partition(":")[0] for line in found} >= {command.name for command in all_commands()}
    assert any(
        line.startswith("(-o --output)--output=[") and line.endswith(":value:(table wide yaml json name)")
        for line in found
    )
