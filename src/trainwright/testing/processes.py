"""Runs a program for a test, with its output in a file. It ends with the test, even if that is killed.

In: an argument list. Out: a running process in its own session. It does not outlive its parent, however that ends: the
kernel sends SIGKILL when the starting thread dies (`PR_SET_PDEATHSIG`, Linux only).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1


class DidNotStart(Exception):
    """A program ended, or was not ready in time; the message has its last lines."""


def free_port() -> int:
    """A port that was free a moment ago, for programs that do not accept port 0."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """One program. It may be started again after `stop`."""

    def __init__(self, name: str, argv: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.argv = [str(part) for part in argv]
        self.log = log
        self.env = dict(env or {})
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._running is None:
            raise DidNotStart(f"{self.name} is not running")
        return self._running.pid

    def is_alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        if self.is_alive():
            return
        with self.log.open("ab") as output:
            self._running = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env},
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Waits until `ready` returns true. `ready` may raise OSError while the program does not listen yet."""
        end = time.monotonic() + seconds
        while True:
            if not self.is_alive():
                code = self._running.returncode if self._running else None
                raise DidNotStart(f"{self.name} ended with exit code {code}:\n{self.tail()}")
            try:
                if ready():
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise DidNotStart(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def send(self, signal_number: signal.Signals) -> None:
        os.kill(self.pid, signal_number)

    def stop(self, grace: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds (at once if 0). Returns when the process is reaped."""
        if self._running is None:
            return
        if self._running.poll() is None and grace > 0:
            self._running.terminate()
            try:
                self._running.wait(grace)
            except subprocess.TimeoutExpired:
                pass
        if self._running.poll() is None:
            self._running.kill()
        self._running.wait()
        self._running = None

    def tail(self, lines: int = 25) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
