"""One run of a probe's or a hook's handler, in processes of its own, so that nothing it does blocks the supervisor.

In: a `HandlerToRun` and the seconds it may take. Out: an `Outcome`, given to a callback: success, or a message in a
kubelet's words. A command runs inside the container (`execution`), every other handler in a process beside it.
Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol

from trainwright.embedded.node.pods.record import HandlerToRun
from trainwright.embedded.node.supervision import checks, keeper, syscalls
from trainwright.embedded.node.supervision.execution import Execution, Streams

LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    succeeded: bool
    message: str = ""


class Inside(Protocol):
    """A container, for commands that are run in it. They may be as soon as it `has_started`."""

    @property
    def has_started(self) -> bool: ...

    def execute(self, argv: list[str], streams: Streams, report: int) -> Execution: ...


class Attempt(ABC):
    """A handler that is running. Its callback is called once, when it has ended or `expire` has ended it."""

    def __init__(
        self,
        handler: HandlerToRun,
        seconds: float,
        selector: selectors.BaseSelector,
        done: Callable[[Outcome], None],
        now: float,
    ) -> None:
        self.began = now
        self.expires = now + seconds
        self._handler = handler
        self._selector = selector
        self._done = done

    @abstractmethod
    def child_ended(self, pid: int) -> None:
        """A child of the supervisor has been reaped: its pid is no longer ours."""

    @abstractmethod
    def cancel(self) -> None:
        """Ends it without an outcome."""

    def expire(self) -> None:
        """Its time is over."""
        self.cancel()
        self._done(Outcome(False, checks.timed_out(self._handler, self.expires - self.began)))


def begin(
    handler: HandlerToRun,
    seconds: float,
    selector: selectors.BaseSelector,
    done: Callable[[Outcome], None],
    *,
    container: Inside,
    now: float,
) -> Attempt:
    """Begins to run a handler. Raises OSError when the machine is out of processes or descriptors."""
    if "exec" in handler:
        return Command(handler, seconds, selector, done, container=container, now=now)
    return Check(handler, seconds, selector, done, now=now)


class Command(Attempt):
    """A command in the container. Its output, cut short, is the message if it fails."""

    def __init__(
        self,
        handler: HandlerToRun,
        seconds: float,
        selector: selectors.BaseSelector,
        done: Callable[[Outcome], None],
        *,
        container: Inside,
        now: float,
    ) -> None:
        super().__init__(handler, seconds, selector, done, now)
        self._said = {"report": b"", "output": b""}
        report, report_end = os.pipe()
        output, output_end = os.pipe()
        self._open = {"report": report, "output": output}
        try:
            self._execution = container.execute(
                handler["exec"], Streams(stdout=output_end, stderr=output_end), report_end
            )
        except OSError:
            os.close(report)
            os.close(output)
            raise
        finally:
            os.close(report_end)
            os.close(output_end)
        for name, descriptor in self._open.items():
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ, partial(self._read, name))

    def _read(self, name: str) -> None:
        if name not in self._open:  # closed by another callback of the same turn
            return
        try:
            data = os.read(self._open[name], 65536)
        except BlockingIOError:
            return
        if data:
            self._said[name] = (self._said[name] + data)[: 8 * LONGEST_MESSAGE]
            return
        self._close(name)
        if not self._open:
            self._done(self._outcome())

    def _outcome(self) -> Outcome:
        try:
            report = {
                key: value for line in self._said["report"].splitlines() for key, value in json.loads(line).items()
            }
        except ValueError:
            report = {}
        if "exit" not in report:
            return Outcome(False, report.get("error", "the command ended with its container"))
        code = os.waitstatus_to_exitcode(report["exit"])
        text = self._said["output"].decode(errors="replace").strip()[:LONGEST_MESSAGE]
        return Outcome(code == 0, text or f"the command ended with exit code {128 - code if code < 0 else code}")

    def _close(self, name: str) -> None:
        descriptor = self._open.pop(name)
        self._selector.unregister(descriptor)
        os.close(descriptor)

    def child_ended(self, pid: int) -> None:
        """Nothing to do: the container knows its commands."""

    def cancel(self) -> None:
        for name in list(self._open):
            self._close(name)
        self._execution.kill()


class Check(Attempt):
    """A check over the network, or a sleep, in a process beside the container."""

    def __init__(
        self,
        handler: HandlerToRun,
        seconds: float,
        selector: selectors.BaseSelector,
        done: Callable[[Outcome], None],
        *,
        now: float,
    ) -> None:
        super().__init__(handler, seconds, selector, done, now)
        self._said = b""
        self._is_closed = False
        self._report, writer = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, keeper.STARTING_SIGNALS)
        try:
            self._pid: int | None = os.fork()
            if self._pid == 0:
                _perform(handler, seconds, writer)
        except OSError:
            os.close(self._report)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, keeper.STARTING_SIGNALS)
            os.close(writer)
        os.set_blocking(self._report, False)
        selector.register(self._report, selectors.EVENT_READ, self._read)

    def _read(self) -> None:
        if self._is_closed:  # by another callback of the same turn
            return
        try:
            data = os.read(self._report, 65536)
        except BlockingIOError:
            return
        if data:
            self._said += data
            return
        self._close()
        try:
            self._done(Outcome(**json.loads(self._said)))
        except ValueError:  # it was killed before it could say anything
            self._done(Outcome(False, "the probe's process died"))

    def _close(self) -> None:
        self._is_closed = True
        self._selector.unregister(self._report)
        os.close(self._report)

    def child_ended(self, pid: int) -> None:
        if pid == self._pid:
            self._pid = None

    def cancel(self) -> None:
        self._close()
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)


def _perform(handler: HandlerToRun, seconds: float, report: int) -> NoReturn:
    """The attempt's own process."""
    try:
        signal.set_wakeup_fd(-1)
        for number in keeper.STARTING_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, keeper.STARTING_SIGNALS)
        if sys.platform == "linux":
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        keeper.close_all_but({report})
        try:
            checks.check(handler, seconds)
            outcome = Outcome(True)
        except checks.CheckFailed as error:
            outcome = Outcome(False, str(error))
        except OSError as error:
            outcome = Outcome(False, str(error))
        text = {"succeeded": outcome.succeeded, "message": outcome.message[:LONGEST_MESSAGE]}
        os.write(report, json.dumps(text).encode())
    finally:
        os._exit(0)
