"""Progress of a training, told by two lines of its code:

    from trainwright import progress
    ...
    progress(step, total, loss=loss)

All ranks may call it; rank 0 reports. A call only takes note: a thread in the background sends the newest note to the
TrainJob's status, at most once a second. A call never waits and never fails, and outside of a TrainJob it does nothing.

While nobody takes reports (no network, no operator, no API server) they are kept here, and sent in their order when
somebody does. There are never more than `MOST_KEPT`: then every second one is given up, so that the first and the last
stay and those between are further apart. They end with the process, which waits for them for `LAST_SECONDS` at most.

This file needs Python's standard library alone. It may be copied as `trainwright.py` to where a training's code lies;
pods of the local cluster find such a copy by themselves.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import Any, NamedTuple

URL = "KUBEFLOW_TRAINER_SERVER_URL"
CA_FILE = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN_FILE = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable that names a file
"""The variables by which a TrainJob's containers find where to report, and with what."""

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX")
"""Variables that say a process's rank; the first that is set counts."""

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 5.0
LAST_SECONDS = 2.0
"""How long the end of the process waits for the last report at most."""

MOST_KEPT = 240
"""The operator takes five a second of one TrainJob: after an outage the newest is there within a minute."""
REFUSED = range(400, 500)
AGAIN = (408, 429)
"""Answers that say something about a report, but for these two: then it is not sent again."""

LONGEST = 64
MOST_METRICS = 250


class _Note(NamedTuple):
    step: Any
    total: Any
    metrics: dict[str, Any]
    wall: float
    monotonic: float


def progress(step: Any, total: Any = None, **metrics: Any) -> None:
    """Takes note that `step` of `total` steps are done, and of the last values of metrics.

    Numbers and tensors with one element are fine; a tensor is read in the background. `total` may be left out.
    """
    reporter = _reporter()
    if reporter is not None:
        reporter.take(_Note(step, total, metrics, time.time(), time.monotonic()))


class _Reporter:
    """Sends the newest note. Its thread is a daemon, and starts with the first note."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._note: _Note | None = None
        self._first: tuple[float, float] | None = None
        """The step and time of the first note: what came before it, such as a checkpoint, took no time here."""
        self._kept: list[tuple[int, dict[str, Any]]] = []
        """Reports that nobody has taken yet, oldest first, counted since the first of them; the thread's own."""
        self._count, self._stride = 0, 1
        self._has_news = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="trainwright progress", daemon=True)

    def start(self) -> None:
        self._thread.start()
        atexit.register(self._finish)

    def take(self, note: _Note) -> None:
        for name, value in note.metrics.items():
            if hasattr(value, "detach"):  # a tensor: without this it would keep its whole graph until the next note
                note.metrics[name] = value.detach()
        self._note = note
        self._has_news.set()

    def _finish(self) -> None:
        self._is_over.set()
        self._has_news.set()
        self._thread.join(LAST_SECONDS)

    def _work(self) -> None:
        noted: _Note | None = None
        while True:
            self._has_news.wait(INTERVAL_SECONDS if self._kept else None)
            self._has_news.clear()
            is_over = self._is_over.is_set()  # before the note is read, so that the last one is sent
            note = self._note
            if note is not None and note is not noted:
                self._keep(self._report(note))
                noted = note
            if is_over:
                self._send_last(time.monotonic() + LAST_SECONDS / 2)
                return
            self._send_kept()
            self._is_over.wait(INTERVAL_SECONDS)

    def _keep(self, report: dict[str, Any]) -> None:
        """Keeps the newest, and every `_stride`th before it."""
        if not self._kept:
            self._count, self._stride = 0, 1
        elif self._kept[-1][0] % self._stride:
            del self._kept[-1]
        self._kept.append((self._count, report))
        self._count += 1
        if len(self._kept) > MOST_KEPT:
            self._stride *= 2
            newest = self._kept.pop()
            self._kept[:] = [*(item for item in self._kept if item[0] % self._stride == 0), newest]

    def _send_kept(self) -> None:
        """Sends what is kept, oldest first, until nobody takes it or a newer note is due."""
        end = time.monotonic() + INTERVAL_SECONDS
        while self._kept and self._send(self._kept[0][1]):
            del self._kept[0]
            if self._is_over.is_set() or time.monotonic() > end:
                return

    def _send_last(self, end: float) -> None:
        """Sends what is kept while there is time, and in any case the last."""
        while self._kept:
            if time.monotonic() > end:
                del self._kept[:-1]
            if not self._send(self._kept.pop(0)[1]):
                return

    def _report(self, note: _Note) -> dict[str, Any]:
        step, total = _number(note.step), _number(note.total)
        report: dict[str, Any] = {"lastUpdatedTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(note.wall))}
        if step is not None and total is not None and total > 0:
            report["progressPercentage"] = int(min(100.0, max(0.0, 100 * step / total)))
            remaining = self._remaining(step, total, note.monotonic)
            if remaining is not None:
                report["estimatedRemainingSeconds"] = remaining
        values = {**note.metrics, "step": note.step, "total": note.total}
        texts = [(str(name)[:LONGEST], _text(value)) for name, value in values.items() if value is not None]
        report["metrics"] = [{"name": name, "value": text} for name, text in texts if name and text][:MOST_METRICS]
        return report

    def _remaining(self, step: float, total: float, now: float) -> int | None:
        """Seconds until the end at the speed since the first note; None when that is not known yet."""
        if self._first is None or step < self._first[0]:
            self._first = (step, now)
        done, seconds = step - self._first[0], now - self._first[1]
        if done <= 0 or seconds <= 0:
            return None
        return int(min(2**31 - 1, max(0.0, (total - step) * seconds / done)))

    def _send(self, report: dict[str, Any]) -> bool:
        """Sends a report. False if it should be sent again: nobody was there, or could store it."""
        import http.client
        import json
        import ssl
        import urllib.error
        import urllib.request

        try:
            with open(os.environ[TOKEN_FILE], encoding="ascii") as file:  # renewed now and then: read it anew
                token = file.read().strip()
            request = urllib.request.Request(  # noqa: S310 - the address is the TrainJob's own
                self._url,
                json.dumps({"trainerStatus": report}).encode(),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
            if self._url.startswith("https:"):
                trust = ssl.create_default_context(cafile=os.environ[CA_FILE])
                handlers.append(urllib.request.HTTPSHandler(context=trust))
            opener = urllib.request.build_opener(*handlers)
            opener.open(request, timeout=TIMEOUT_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code in REFUSED and error.code not in AGAIN
        except (OSError, http.client.HTTPException):
            return False
        except (ValueError, KeyError):
            return True  # no address, no token: nobody could ever take it
        return True


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - foreign code: whatever a value does, training goes on
        return None
    return number if abs(number) < 2**53 else None  # neither infinite nor not a number


def _text(value: Any) -> str:
    """A value in a few characters: `0.123457`, `42`."""
    try:
        if isinstance(value, (str, int)):
            return str(value)[:LONGEST]
        return f"{float(value):.6g}"
    except Exception:  # noqa: BLE001 - foreign code: whatever a value does, training goes on
        return ""


_lock = threading.Lock()
_made: list[_Reporter | None] = []
"""The one reporter of this process, once it is decided whether there is one."""


def _reporter() -> _Reporter | None:
    if _made:
        return _made[0]
    with _lock:
        if not _made:
            reporter = _Reporter(os.environ[URL]) if os.environ.get(URL) and _is_first_rank() else None
            if reporter is not None:
                try:
                    reporter.start()
                except RuntimeError:  # no more threads, or the interpreter is ending
                    reporter = None
            _made.append(reporter)
    return _made[0]


def _is_first_rank() -> bool:
    said = next((os.environ[name] for name in RANKS if os.environ.get(name)), "0")
    return said == "0"


def _forget() -> None:
    """The fork of a process that reports has no thread, and does not speak for the training."""
    if _made:
        _made[:] = [None]


def _show_stacks_when_asked() -> None:
    """Lets the local node see where this process is when it hangs: on a signal that nobody uses, Python prints its
    stacks. Only in a pod of the local node, and only where nobody handles that signal already.
    """
    if "TRAINWRIGHT_POD" not in os.environ:
        return
    try:
        import faulthandler
        import signal

        number = signal.SIGRTMIN + 7
        if signal.getsignal(number) == signal.SIG_DFL:
            faulthandler.register(number, all_threads=False)
    except (AttributeError, ImportError, OSError, RuntimeError, ValueError):
        pass  # no such signal here, or no standard error: then there are no stacks


_show_stacks_when_asked()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

if __name__ == "trainwright":  # a copy of this file: whatever of an installed Trainwright there is stays importable
    from pkgutil import extend_path

    __path__: list[str] = list(extend_path([], __name__))
