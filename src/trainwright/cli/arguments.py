"""The parser of the command line: what was typed becomes flags, and a mistake one line that says what was meant.

argparse does the work. Ours are the messages (one line, exit code 2, `did you mean`), the examples in every help, and
that words may stand between flags. Only the parser of the command that is called is built.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from trainwright.cli import commands
from trainwright.cli.commands.command import Arguments, Command
from trainwright.cli.console.nearness import near
from trainwright.version import __version__

PROGRAM = "trainwright"
ABOUT = "Distributed ML training from one YAML file: on a Kubernetes cluster or on this machine alone."
USAGE_ERROR = 2


class Parser(Arguments):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        print(f"{self.prog}: {message}{end} See: {self.prog} --help", file=sys.stderr)
        raise SystemExit(USAGE_ERROR)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            advice = near(str(value), known) or f"; choose from {', '.join(known)}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{advice}")

    def parse(self, words: Sequence[str], *, has_rest: bool) -> dict[str, Any]:
        """The flags. Words may stand before, between and behind them."""
        for number, word in enumerate(words):
            if word == "--":
                break
            if word.startswith("--") and not self._knows(word):  # before the words behind it are taken for others
                self._refuse(words[number:], has_rest=has_rest)
        found, unknown = self.parse_known_intermixed_args(list(words))
        if unknown:
            self._refuse(unknown, has_rest=has_rest)
        return vars(found)

    def _knows(self, word: str) -> bool:
        """Whether it is a long flag, or the beginning of one."""
        return any(flag.startswith(word.partition("=")[0]) for flag in self._option_string_actions)

    def _refuse(self, unknown: Sequence[str], *, has_rest: bool) -> NoReturn:
        flag = next((word.partition("=")[0] for word in unknown if word.startswith("-") and word != "-"), "")
        what = f"there is no flag {flag}" if flag else f"more words than it takes: {shlex.join(unknown)}"
        advice = near(flag, [known for known in self._option_string_actions if known.startswith("--")], 0.75)
        if has_rest and not advice:
            advice = f"; arguments of your program go after --: {self.prog} … -- {shlex.join(unknown)}"
        self.error(f"{what}{advice}")


def parser_of(command: Command) -> Parser:
    """The parser of one command, with its examples below the flags."""
    parser = Parser(
        prog=f"{PROGRAM} {command.name}",
        description=f"{command.help[0].upper()}{command.help[1:]}.",
        epilog=_epilog(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.declare(parser)
    return parser


def _epilog(command: Command) -> str:
    width = max(len(example.words) for example in command.examples)
    lines = ["examples:", *(f"  {words:{width}}  # {meaning}" for words, meaning in command.examples)]
    if command.codes:
        lines += ["", "exit codes:", *(f"  {code:<4} {meaning}" for code, meaning in command.codes)]
    return "\n".join(lines)


def parse(words: Sequence[str]) -> tuple[Command, dict[str, Any]]:
    """The command that was typed, and its flags. What is typed after `--` is the program's own where there is one."""
    command = commands.find(words[0]) if words else None
    if command is None:
        _answer_without_command(words)
    rest, arguments = list(words[1:]), []
    if command.has_rest and "--" in rest:
        at = rest.index("--")
        rest, arguments = rest[:at], rest[at + 1 :]
    found = parser_of(command).parse(rest, has_rest=command.has_rest)
    if command.has_rest:
        found["arguments"] = arguments
    return command, found


def _answer_without_command(words: Sequence[str]) -> NoReturn:
    """`--help`, `--version`, or a word that is no command."""
    root = Parser(prog=PROGRAM, usage=f"{PROGRAM} [-h] [--version] COMMAND …", add_help=False)
    word = words[0] if words else ""
    if word in ("-h", "--help", "help"):
        command = commands.find(words[1]) if word == "help" and len(words) > 1 else None
        print(parser_of(command).format_help() if command else overview(), end="")
        raise SystemExit(0)
    if word == "--version":
        print(f"{PROGRAM} {__version__}")
        raise SystemExit(0)
    if not word:
        root.error(f"which command? One of {', '.join(commands.names())}")
    what = "flag" if word.startswith("-") else "command"
    known = ["--help", "--version"] if what == "flag" else commands.names()
    root.error(f"there is no {what} {word}{near(word, known)}")


def overview() -> str:
    """The help of the program: its commands by group."""
    width = max(map(len, commands.names()))
    lines = [f"usage: {PROGRAM} [-h] [--version] COMMAND …", "", ABOUT]
    for group in commands.GROUPS:
        lines += ["", f"{group.title}:"]
        lines += [f"  {command.name:{width}}  {command.help}" for command in commands.of_group(group)]
    lines += [
        "",
        f"{PROGRAM} COMMAND --help shows the flags of a command, and examples.",
        "Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 130 Ctrl-C; a command's help names its own.",
    ]
    return "\n".join(lines) + "\n"
