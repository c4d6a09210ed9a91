"""A command on a terminal: what a person would see on the screen, and what they type.

`Screen` knows the few sequences that Trainwright itself writes; one that it does not know fails the test.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
COLUMNS = 160


class Screen:
    """The rows of a terminal, all that ever scrolled by included."""

    def __init__(self) -> None:
        self.rows = [""]
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            token = TOKEN.match(text, at)
            assert token is not None, f"not a sequence that we write: {text[at : at + 20]!r}"
            at = token.end()
            parameters, letter, move, plain = token.groups()
            if plain:
                row = self.rows[self._row].ljust(self._column)
                self.rows[self._row] = row[: self._column] + plain + row[self._column + len(plain) :]
                self._column += len(plain)
            elif move == "\r":
                self._column = 0
            elif move == "\n":
                self._row += 1
                if self._row == len(self.rows):
                    self.rows.append("")
            else:
                self._obey(letter, int(parameters or 1) if parameters.isdecimal() or not parameters else 1)

    def _obey(self, letter: str, number: int) -> None:
        if letter == "A":
            self._row = max(0, self._row - number)
        elif letter == "J":
            del self.rows[self._row + 1 :]
            self.rows[self._row] = self.rows[self._row][: self._column]
        else:
            assert letter == "m", f"not a sequence that we write: {letter}"

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows)


class OnTerminal:
    """A command that runs on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.raw = ""
        self.ever_seen: list[str] = []
        """The screen after each piece of output."""
        self._screen = Screen()
        self._master = master
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        held = ""
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            text = held + data.decode(errors="replace")
            cut = text.rfind("\x1b") if re.search(r"\x1b(\[[0-9;]*)?$", text) else len(text)
            text, held = text[:cut], text[cut:]
            self.raw += text
            self._screen.feed(text)
            self.ever_seen.append(self._screen.text)

    @property
    def screen(self) -> str:
        return self._screen.text

    def wait_for(self, what: str | Callable[[str], object], seconds: float = 60) -> None:
        """Waits until the screen shows a text, or fulfils a condition."""
        deadline = time.monotonic() + seconds
        while not (what(self.screen) if callable(what) else what in self.screen):
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{self.screen}"
            assert self.process.poll() is None or self._reader.is_alive(), f"ended without {what}:\n{self.screen}"
            time.sleep(0.02)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press_ctrl_c(self) -> None:
        self.type("\x03")

    def close_window(self) -> None:
        """What a terminal does when its window is closed: the line hangs up."""
        os.close(self._master)

    def wait(self, seconds: float = 60) -> int:
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code


def on_terminal(command: Sequence[str], **environment: str) -> AbstractContextManager[OnTerminal]:
    return on_screen(command, COLUMNS, environment)


@contextmanager
def on_screen(command: Sequence[str], columns: int, environment: Mapping[str, str]) -> Iterator[OnTerminal]:
    """The same on a screen of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield OnTerminal(process, master)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
