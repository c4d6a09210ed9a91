"""The table of commands, one module for each group. A group is imported when one of its commands is called.

A new command: an entry in its group's module, its name in `GROUPS`, and a module in the folder that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trainwright.cli.commands.command import Command


class Group(NamedTuple):
    title: str
    module: str
    names: tuple[str, ...]


GROUPS = (
    Group(
        "TrainJobs",
        "jobs",
        ("run", "submit", "get", "describe", "why", "logs", "events", "wait", "suspend", "resume", "scale", "delete"),
    ),
    Group("One rank", "ranks", ("top", "exec", "cp", "port-forward")),
    Group("This machine", "machine", ("up", "down", "status", "ui", "runs", "backup", "restore", "doctor")),
    Group("Files", "files", ("render", "validate", "explain", "diff", "init", "convert")),
    Group(
        "For operators and shells",
        "operations",
        ("install", "uninstall", "upgrade-check", "plugins", "initialize", "operator", "dashboard", "completion"),
    ),
)


def names() -> list[str]:
    return [name for group in GROUPS for name in group.names]


def of_group(group: Group) -> Iterator[Command]:
    """The commands of a group, in the order of its names."""
    table = {command.name: command for command in import_module(f"{__name__}.{group.module}").COMMANDS}
    for name in group.names:
        yield table[name]


def find(name: str) -> Command | None:
    """The command of this name, and the import of its group alone."""
    for group in GROUPS:
        if name in group.names:
            return next(command for command in of_group(group) if command.name == name)
    return None
