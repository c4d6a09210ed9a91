"""`trainwright exec`: a command in a rank of a TrainJob, with this terminal's streams."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.ranks.rankpods import pod_of
from trainwright.client.streams import STDERR, PodCommand, execute

READ_BYTES = 32 * 1024


def run(
    name: str,
    rank: int | None,
    container: str | None,
    stdin: bool,
    tty: bool,
    arguments: list[str],
    target: Target,
    namespace: str,
) -> int:
    if not arguments and not sys.stdin.isatty():
        raise Failure("no command is given: trainwright exec JOB -- COMMAND", 2)
    if not arguments:  # a shell, for whoever sits at a terminal
        arguments, stdin, tty = ["sh"], True, True
    if tty and not sys.stdin.isatty():
        raise Failure("-t needs a terminal as standard input", 2)
    if tty and not _has_terminals():
        raise Failure("-t needs a Unix terminal; without it: trainwright exec -i JOB -- COMMAND", 2)
    return carry_out(_execute(target, namespace, name, rank, container, arguments, stdin=stdin, tty=tty))


def _has_terminals() -> bool:
    try:
        import termios  # noqa: F401 - only Unix has it
    except ImportError:
        return False
    return True


async def _execute(
    target: Target,
    namespace: str,
    name: str,
    rank: int | None,
    container: str | None,
    argv: list[str],
    *,
    stdin: bool,
    tty: bool,
) -> int:
    async with target.client() as client:
        pod = (await pod_of(client, target, namespace, name, rank))["metadata"]["name"]
        session = execute(client, namespace, pod, argv, container=container, stdin=stdin, tty=tty)
        async with session as command:
            with _raw_terminal() if tty else _nothing():
                if tty:
                    await _follow_size(command)
                if stdin:
                    _pass_input_on(command)
                async for stream, data in command.output():
                    await asyncio.to_thread(_write, 2 if stream == STDERR else 1, data)
        return command.exit_code


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _pass_input_on(command: PodCommand) -> None:
    """Reads standard input in a thread that nobody waits for: it may be blocked in a read when the command has ended.
    Each piece is sent before the next is read.
    """
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            while data := os.read(0, READ_BYTES):
                asyncio.run_coroutine_threadsafe(command.write(data), loop).result()
            asyncio.run_coroutine_threadsafe(command.end_input(), loop).result()
        except (OSError, RuntimeError, asyncio.CancelledError):
            pass  # the command has ended, and the loop with it

    threading.Thread(target=read, daemon=True).start()


async def _follow_size(command: PodCommand) -> None:
    async def tell() -> None:
        try:
            width, height = os.get_terminal_size(0)  # COLUMNS and LINES would be those of the start
            await command.resize(width, height)
        except (ConnectionError, OSError):
            pass

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, lambda: asyncio.ensure_future(tell()))
    await tell()


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """What is typed goes to the command, Ctrl-C included."""
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSANOW)  # without losing what was typed before
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
