"""What the operator does at this moment, for whoever may ask: the stacks of its tasks, and a profile.

    /debug/stacks     every task of the event loop and every thread, with its stack
    /debug/profile    ten seconds (?seconds=1 to 60) of samples, one line for each stack: `a;b;c 42`, as flame graphs
                      and speedscope read them

Both are served beside the metrics and only where those ask who scrapes (`metrics.auth.enabled`): the API server must
let the caller GET the path. Nothing of it runs until somebody asks. SIGUSR1 writes the stacks into the log.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
import time
import traceback
from collections import Counter
from types import FrameType
from urllib.parse import parse_qs

from trainwright.http.application import Request
from trainwright.http.response import Response, text

log = logging.getLogger(__name__)

SECONDS, MOST_SECONDS = 10.0, 60.0
PAUSE_SECONDS = 0.005
LIMIT = 60
"""Frames of a stack that are told."""


def stacks() -> str:
    """Tasks first: an operator that hangs mostly waits in one of them. From a task of the event loop only."""
    told = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        told.write(f"task {task.get_name()}\n")
        told.writelines(f"  {line}\n" for line in _waiting(task))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        told.write(f"thread {names.get(ident, ident)}\n")
        told.writelines(f"  {line}\n" for line in _lines(frame))
    return told.getvalue()


def _waiting(task: asyncio.Task[object]) -> list[str]:
    """Where a task waits: the whole chain of coroutines, outermost first."""
    found: list[str] = []
    step: object = task.get_coro()
    while step is not None and len(found) < LIMIT:
        frame = getattr(step, "cr_frame", None) or getattr(step, "gi_frame", None) or getattr(step, "ag_frame", None)
        if frame is not None:
            found.append(_place(frame))
        step = getattr(step, "cr_await", None) or getattr(step, "gi_yieldfrom", None) or getattr(step, "ag_await", None)
    return found


def _lines(frame: FrameType) -> list[str]:
    return [_place(each) for each, _ in traceback.walk_stack(frame)][:LIMIT]


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"


def log_stacks() -> None:
    log.warning("asked for its stacks by SIGUSR1:\n%s", stacks())


class Profiler:
    """One profile at a time: two would measure each other."""

    def __init__(self) -> None:
        self._busy = False

    async def stacks(self, request: Request) -> Response:
        return text(stacks())

    async def profile(self, request: Request) -> Response:
        seconds = _seconds(request.query)
        if seconds is None:
            return text(f"seconds: a number between 1 and {MOST_SECONDS:g}", 400)
        if self._busy:
            return text("a profile is being taken; ask again when it is done", 429)
        self._busy = True
        try:
            return text(await asyncio.to_thread(_sample, threading.get_ident(), seconds))
        finally:
            self._busy = False


def _seconds(query: str) -> float | None:
    given = parse_qs(query).get("seconds")
    if not given:
        return SECONDS
    try:
        seconds = float(given[-1])
    except ValueError:
        return None
    return seconds if 1 <= seconds <= MOST_SECONDS else None


def _sample(thread: int, seconds: float) -> str:
    """How often each stack of that thread was seen."""
    seen: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        frame = sys._current_frames().get(thread)
        if frame is not None:
            names = [f"{each.f_globals.get('__name__', '?')}.{each.f_code.co_name}" for each, _ in _walk(frame)]
            seen[";".join(reversed(names))] += 1
        time.sleep(PAUSE_SECONDS)
    return "".join(f"{stack} {count}\n" for stack, count in seen.most_common())


def _walk(frame: FrameType) -> list[tuple[FrameType, int]]:
    return list(traceback.walk_stack(frame))
