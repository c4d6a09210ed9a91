"""`trainwright initialize`: a dataset or a model into a directory, as the initializer pods of a TrainJob do.

Progress goes to standard output: one living line on a terminal, plain lines elsewhere. The exit code tells what went
wrong; see `initializers.errors`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from trainwright.cli.failure import Failure
from trainwright.clock import SystemClock
from trainwright.initializers.errors import InitializerError
from trainwright.initializers.progress import Progress
from trainwright.initializers.run import initialize as fetch
from trainwright.initializers.settings import Settings, Step, settings


def initialize(step: Step, uri: str | None, target: Path | None, cache: str | None, retry_seconds: float | None) -> int:
    try:
        given = settings(step, os.environ, uri=uri, target=target, cache=cache, retry_seconds=retry_seconds)
        with asyncio.Runner(loop_factory=_loop()) as runner:
            runner.run(_until_done(given))
    except InitializerError as error:
        raise Failure(f"{step}: {error}", error.code) from error
    return 0


async def _until_done(given: Settings) -> None:
    clock = SystemClock()
    progress = Progress(given.step, sys.stdout, clock, live=sys.stdout.isatty())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end_at_once, number, progress)
    await fetch(given, progress, clock)


def _end_at_once(number: int, progress: Progress) -> None:
    """As good as a clean-up: what is on disk is always such that the next run can go on with it.

    A handler is needed at all because the first process of a container is not ended by a signal it has no handler for.
    """
    progress.say(f"stopped by {signal.Signals(number).name}; run it again and it goes on from here")
    os._exit(128 + number)


def _loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where there is one: it moves the same bytes with less CPU."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
