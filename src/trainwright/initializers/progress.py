"""How far an initializer is, for a person or a log.

On a terminal one line is written over itself; elsewhere a plain line appears every few seconds. Bytes that were there
before (kept by an earlier run, or in the cache) count as done and not into the rate.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

from trainwright.clock import Clock

LIVE_SECONDS = 0.2
PLAIN_SECONDS = 10.0
_WINDOW_SECONDS = 10.0
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts files and bytes of one step (`dataset` or `model`) and tells of them on `out`."""

    def __init__(self, step: str, out: TextIO, clock: Clock, *, live: bool) -> None:
        self._step = step
        self._out = out
        self._clock = clock
        self._live = live
        self._started = clock.now()
        self._files = self._files_done = 0
        self._total: int | None = 0
        self._done = 0
        self.fetched = 0
        self._samples: deque[tuple[float, int]] = deque([(self._started, 0)])
        self._last_said = ""
        self._line_is_open = False

    def expect(self, files: int, size: int | None) -> None:
        """What there is to do, from the beginning; a size of None is not known."""
        self._files, self._total = files, size
        self._files_done = self._done = 0

    def had(self, count: int) -> None:
        """Bytes that need not be fetched."""
        self._done += count

    def got(self, count: int) -> None:
        """Bytes that arrived."""
        self._done += count
        self.fetched += count

    def lost(self, count: int) -> None:
        """Bytes that arrived, or were there, and have to be fetched again."""
        self._done -= count

    def finished_file(self) -> None:
        self._files_done += 1

    def say(self, sentence: str) -> None:
        """A line of its own. The same one is not said twice in a row: several connections meet the same trouble."""
        if sentence != self._last_said:
            self._last_said = sentence
            self._print(f"{self._step}: {sentence}\n")

    def line(self) -> str:
        """Where it stands, in one line without an end."""
        now = self._clock.now()
        self._samples.append((now, self.fetched))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _WINDOW_SECONDS:
            self._samples.popleft()
        (since, before), (_, fetched) = self._samples[0], self._samples[-1]
        rate = (fetched - before) / (now - since) if now > since else 0.0
        files = f"{self._files_done} of {plural(self._files, 'file')}"
        if self._total is None:
            return f"{self._step}: {files}, {amount(self._done)}, {amount(rate)}/s"
        percent = min(100, 100 * self._done // self._total) if self._total else 100
        text = f"{self._step}: {files}, {amount(self._done)} of {amount(self._total)} ({percent} %), {amount(rate)}/s"
        left = self._total - self._done
        return f"{text}, {duration(left / rate)} left" if rate > 0 and left > 0 else text

    def summary(self, target: str) -> None:
        """The last line: what is there now and what it took."""
        seconds = self._clock.now() - self._started
        text = f"{plural(self._files, 'file')} with {amount(self._done)} in {target}"
        if self.fetched:
            rate = amount(self.fetched / max(seconds, 0.001))
            text += f"; fetched {amount(self.fetched)} in {duration(seconds)} ({rate}/s)"
        else:
            text += "; nothing had to be fetched"
        self.say(text)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Tell of it from time to time while the block lasts."""
        showing = asyncio.ensure_future(self._show())
        try:
            yield
        finally:
            showing.cancel()
            if self._line_is_open:
                self._print("")

    async def _show(self) -> None:
        while True:
            await self._clock.sleep(LIVE_SECONDS if self._live else PLAIN_SECONDS)
            if not self._files:
                continue  # the source is still being listed
            if self._live:
                self._print(self.line()[: shutil.get_terminal_size().columns - 1])
                self._line_is_open = True
            else:
                self._print(f"{self.line()}\n")

    def _print(self, text: str) -> None:
        self._out.write(f"{_CLEAR if self._line_is_open else ''}{text}")
        self._out.flush()
        self._line_is_open = False


def amount(size: float) -> str:
    """A number of bytes for people: 17 B, 3.4 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def duration(seconds: float) -> str:
    """Seconds for people: 0.4 s, 2:07 min, 1:03:00 h."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
