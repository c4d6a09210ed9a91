"""What can be typed after each command: its flags with their values, and its words. Read from argparse."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from trainwright.cli import commands
from trainwright.cli.arguments import parser_of
from trainwright.cli.commands.command import Command

FILES, DIRECTORIES, ANYTHING = "files", "directories", "anything"
"""Values that a shell completes by itself, or not at all."""
JOBS, RUNS, RUNTIMES, CONTEXTS, KINDS, COMMANDS = "jobs", "runs", "runtimes", "contexts", "kinds", "commands"
"""Values that `trainwright completion --list` lists."""
DYNAMIC = (JOBS, RUNS, RUNTIMES, CONTEXTS, KINDS, COMMANDS)

_FLAGS = {"--runtime": RUNTIMES, "--context": CONTEXTS, "--workdir": DIRECTORIES, "--python": FILES}
_WORDS = {"ids": (RUNS,), "file": (FILES,), "paths": (FILES,), "uri": (FILES,), "name": (JOBS, RUNS)}
_COMMANDS = {"get": (KINDS, JOBS), "describe": (KINDS, JOBS), "explain": (FILES,), "run": (FILES,)}


class Value(NamedTuple):
    """What stands behind a flag or as a word: choices, and sources of names."""

    choices: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class Flag(NamedTuple):
    names: tuple[str, ...]
    help: str
    value: Value | None
    """None for a flag that takes none."""
    repeats: bool


class Completed(NamedTuple):
    """One command."""

    name: str
    help: str
    flags: tuple[Flag, ...]
    words: Value


def all_commands() -> Iterator[Completed]:
    for group in commands.GROUPS:
        for command in commands.of_group(group):
            yield completed(command)


def completed(command: Command) -> Completed:
    parser = parser_of(command)
    flags, choices, sources = [], list[str](), dict[str, None]()
    for action in parser._actions:
        if action.option_strings:
            flags.append(_flag(action))
        elif action.choices:
            choices += map(str, action.choices)
        else:
            sources |= dict.fromkeys(_COMMANDS.get(command.name) or _WORDS.get(action.dest, (JOBS,)))
    return Completed(command.name, command.help, tuple(flags), Value(tuple(choices), tuple(sources)))


def _flag(action: argparse.Action) -> Flag:
    names = tuple(action.option_strings)
    repeats = isinstance(action, argparse._AppendAction)
    if action.nargs == 0:
        return Flag(names, action.help or "", None, repeats)
    value = Value(tuple(map(str, action.choices)), ()) if action.choices else Value((), (_source(action),))
    return Flag(names, action.help or "", value, repeats)


def _source(action: argparse.Action) -> str:
    for name in action.option_strings:
        if name in _FLAGS:
            return _FLAGS[name]
    if action.metavar in ("FILE", "UPDATE"):
        return FILES
    return DIRECTORIES if action.metavar == "DIR" else ANYTHING
