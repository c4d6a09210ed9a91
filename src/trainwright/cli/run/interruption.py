"""What the user wants of a job that is being followed: Ctrl-C, a closed terminal, and the question in between.

    Ctrl-C on a terminal     asks once: leave it running, suspend it, delete it, or continue
    Ctrl-C again             deletes it, as the question says
    SIGINT without terminal  deletes it, as does SIGTERM anywhere
    once more                does not wait until its processes have ended
    SIGHUP                   the terminal was closed: leaves it running; the next command says so

A command that was started with `nohup` ignores SIGHUP, as it should.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from enum import Enum

from trainwright.cli.console.terminal import Terminal

QUESTION = """
TrainJob {name} is still running. l = leave it running, s = suspend it, d = delete it, c = continue here.
Ctrl-C again deletes it. [l/s/d/c] """
HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none


class Wish(Enum):
    CONTINUE = "c"
    LEAVE = "l"
    SUSPEND = "s"
    DELETE = "d"
    HANG_UP = "hang up"


class Interruption:
    """The user's wish so far. Inside `with`, signals change it and `announce` is called each time."""

    def __init__(self, terminal: Terminal, announce: Callable[[], None]) -> None:
        self._terminal = terminal
        self._announce = announce
        self._is_interactive = terminal.is_live and sys.stdin.isatty()
        self._news = asyncio.Event()
        self._taken: list[signal.Signals] = []
        self.wish: Wish | None = None
        self.must_ask = False
        self.is_impatient = False
        """Whether the user does not want to wait for the end of the deletion."""

    @property
    def is_pending(self) -> bool:
        return self.must_ask or self.wish is not None

    def __enter__(self) -> Interruption:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, HANG_UP):
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                try:
                    loop.add_signal_handler(number, self._hear, number)
                except NotImplementedError:  # Windows: Ctrl-C ends the command and leaves the job running
                    break
                self._taken.append(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._taken:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _hear(self, number: signal.Signals) -> None:
        if number == HANG_UP:
            self._terminal.hang_up()
            self.wish = Wish.HANG_UP
        elif self.wish is Wish.DELETE:
            self.is_impatient = True
        elif number == signal.SIGINT and self._is_interactive and not self.must_ask and self.wish is None:
            self.must_ask = True
        else:
            self.wish = Wish.DELETE
        self._news.set()
        self._announce()

    async def until_impatient(self) -> None:
        while not self.is_impatient:
            self._news.clear()
            await self._news.wait()

    async def ask(self, name: str) -> Wish:
        """The answer to the question, or what another signal says meanwhile."""
        while self.wish is None:
            self._terminal.prompt(QUESTION.format(name=name))
            answer = await self._answer()
            if answer is None:  # a signal came instead, on the question's own line
                self._terminal.say()
                break
            self.wish = next((wish for wish in Wish if answer[:1].lower() == wish.value), None)
        self.must_ask = False
        wish = self.wish or Wish.CONTINUE
        if wish is Wish.CONTINUE:
            self.wish = None
        return wish

    async def _answer(self) -> str | None:
        """One line from the keyboard; None when a signal came first."""
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[str] = loop.create_future()
        keyboard = sys.stdin.fileno()

        def read() -> None:
            loop.remove_reader(keyboard)
            data = os.read(keyboard, 4096).decode(errors="replace")
            typed.set_result(data.strip() if data else Wish.LEAVE.value)  # the end of input answers nothing else

        self._news.clear()
        loop.add_reader(keyboard, read)
        signalled = asyncio.create_task(self._news.wait())
        signalled.add_done_callback(lambda _: typed.done() or typed.cancel())
        try:
            return await typed
        except asyncio.CancelledError:
            if self._news.is_set():
                return None
            raise
        finally:
            loop.remove_reader(keyboard)
            signalled.cancel()
