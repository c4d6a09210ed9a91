"""`trainwright`: finds the command that was typed, and calls the function that does its work.

The table of commands is in `commands/`; the function's module is imported only when its command is called. A `Failure`
becomes one line on standard error and an exit code.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from trainwright.cli.arguments import parse
from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.clusters.leftbehind import say_what_was_left
from trainwright.cli.clusters.target import choose
from trainwright.cli.failure import Failure


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. An error ends in one message."""
    command, flags = parse(sys.argv[1:] if argv is None else list(argv))
    try:
        if command.settle is not None:
            command.settle(flags)
        if {"kubeconfig", "local"} <= flags.keys():  # the flags of a cluster
            _choose_target(flags)
        elif "directory" in flags:
            cluster = ClusterDirectory(flags["directory"])
            say_what_was_left(cluster.path, cluster.flag())
        code = _imported(command.work)(**flags)
    except Failure as failure:
        print(f"trainwright: {failure.message}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has left: not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _imported(work: str) -> Callable[..., int]:
    """The function of a command.

    While its module is imported there is nothing to clean up, so Ctrl-C ends the process at once. An exception that
    comes in the middle of an import can get lost there, and the command would go on.
    """
    module, function = work.split(":")
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        found: Callable[..., int] = getattr(import_module(f"trainwright.cli.{module}"), function)
    finally:
        if raises and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return found


def _choose_target(flags: dict[str, Any]) -> None:
    """Replaces the flags of a cluster by its `Target`. Says first where a command acts that leaves this machine."""
    names = ("kubeconfig", "context", "local", "directory")
    target = choose(**{name: flags.pop(name) for name in names})
    if target.where is not None:  # on standard error: what a command prints is often read by a program
        print(f"trainwright: on {target.where}", file=sys.stderr)
    say_what_was_left(target.directory.path, target.flag())
    flags["target"] = target
    flags["namespace"] = flags["namespace"] or target.namespace


if __name__ == "__main__":
    sys.exit(main())
