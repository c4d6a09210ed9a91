"""One container of a pod inside its supervisor: starts it, logs its output, restarts and ends it.

In: a `ContainerToRun`, its keeper's reports, its output. Out: a `ContainerRecord` with Kubernetes' states and reasons,
and a log file for each run. A container is over when its keeper has reported the end and its output has been read to
the last byte. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import cast

from trainwright.embedded.node import keeper
from trainwright.embedded.node.crilog import LogFile, OutputStream
from trainwright.embedded.node.record import (
    ContainerRecord,
    ContainerToRun,
    Mount,
    PodDirectory,
    PodToRun,
    now,
)
from trainwright.schema.jsonobject import Json

START_ERROR_EXIT_CODE = 128
"""The exit code that container runtimes report for a command that could not be started."""

READ_BYTES = 256 * 1024


class Container:
    """A container that is waiting, running or terminated. `start_at` is set while it is in back-off."""

    def __init__(
        self, spec: ContainerToRun, pod: PodToRun, directory: PodDirectory, selector: selectors.BaseSelector
    ) -> None:
        self.spec = spec
        self.pod = pod
        self.directory = directory
        self.selector = selector
        self.name = spec["name"]
        self.restart_count = 0
        self.start_at: float | None = None
        self.state: Json = {"waiting": {"reason": "ContainerCreating"}}
        self.last_state: Json = {}
        self._keeper: int | None = None
        self._control: int | None = None
        self._open: set[int] = set()
        self._report = b""
        self._log: LogFile | None = None
        self._streams: dict[int, OutputStream] = {}
        self._unfinished_since: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether a process of the container may still run or write."""
        return self._keeper is not None or bool(self._open)

    @property
    def has_run(self) -> bool:
        return "terminated" in self.state or "terminated" in self.last_state

    @property
    def _exit_code(self) -> int | None:
        return cast(int | None, self.state.get("terminated", {}).get("exitCode"))

    @property
    def has_succeeded(self) -> bool:
        return self._exit_code == 0

    @property
    def has_failed(self) -> bool:
        return self._exit_code not in (None, 0)

    @property
    def unfinished_since(self) -> float | None:
        """The time since which an unfinished line of output has been held back."""
        return self._unfinished_since

    def record(self) -> ContainerRecord:
        return {
            "state": self.state,
            "lastState": self.last_state,
            "restartCount": self.restart_count,
            "ready": "running" in self.state,
        }

    def wait(self, reason: str, message: str = "") -> None:
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def back_off(self, seconds: float) -> None:
        """Puts the container into CrashLoopBackOff until its next start."""
        self.start_at = time.monotonic() + seconds
        self.last_state = self.state
        message = f"back-off {seconds:g}s restarting failed container={self.name} pod={self.pod['name']}"
        self.wait("CrashLoopBackOff", message)

    def start(self) -> None:
        if self.has_run:
            self.restart_count += 1
            if "terminated" in self.state:
                self.last_state = self.state
        self.start_at = None
        started_at = now()
        try:
            self._fork()
        except OSError as error:  # the machine is out of processes, descriptors or disk: reported in the pod's status
            self.state = _terminated(START_ERROR_EXIT_CODE, "StartError", started_at, message=str(error))
            return
        self.state = {"running": {"startedAt": started_at}}

    def _fork(self) -> None:
        staging = self.directory.path / "root" / self.name
        staging.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            log = LogFile(self.directory.log(self.name, self.restart_count))
            undo.callback(log.close)
            out, stdout = _pipe(undo)
            err, stderr = _pipe(undo)
            report, report_end = _pipe(undo)
            control_end, control = _pipe(undo)
            signal.pthread_sigmask(signal.SIG_BLOCK, keeper.STARTING_SIGNALS)
            try:
                child = os.fork()
                if child == 0:
                    pipes = keeper.Pipes(stdout=stdout, stderr=stderr, report=report_end, control=control_end)
                    keeper.keep(self.spec, self.pod["isolation"], self.pod["hostname"], self._mounts(), staging, pipes)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, keeper.STARTING_SIGNALS)
            undo.pop_all()
        for theirs in (stdout, stderr, report_end, control_end):
            os.close(theirs)
        self._log, self._keeper, self._control, self._report = log, child, control, b""
        self._streams = {out: OutputStream("stdout", log), err: OutputStream("stderr", log)}
        for descriptor in (out, err):
            self._listen(descriptor, self._read_output)
        self._listen(report, self._read_report)

    def _mounts(self) -> list[Mount]:
        hosts: Mount = {"source": str(self.directory.hosts), "target": "/etc/hosts", "readOnly": False}
        return [hosts, *self.spec["mounts"]]

    def _listen(self, descriptor: int, callback: Callable[[int], None]) -> None:
        os.set_blocking(descriptor, False)
        self._open.add(descriptor)
        self.selector.register(descriptor, selectors.EVENT_READ, lambda: callback(descriptor))

    def _read_output(self, descriptor: int) -> None:
        stream = self._streams[descriptor]
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            stream.feed(data)
            if not stream.has_pending:
                self._unfinished_since = None
            elif self._unfinished_since is None:
                self._unfinished_since = time.monotonic()
            return
        stream.flush()
        self._close(descriptor)

    def _read_report(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._report += data
        else:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self.selector.unregister(descriptor)
        os.close(descriptor)
        self._open.discard(descriptor)
        self._end_if_over()

    def keeper_ended(self, pid: int) -> None:
        """Handles the end of process `pid`, if that is this container's keeper."""
        if pid == self._keeper:
            self._keeper = None
            self._close_control()
            self._end_if_over()

    def _end_if_over(self) -> None:
        """Everything in the container has ended: records how."""
        if self.is_running or "running" not in self.state:
            return
        assert self._log is not None
        self._log.close()
        self._unfinished_since = None
        started_at = self.state["running"]["startedAt"]
        reports = [json.loads(line) for line in self._report.splitlines()]
        report: Json = {key: value for line in reports for key, value in line.items()}
        if "error" in report:
            self.state = _terminated(START_ERROR_EXIT_CODE, "StartError", started_at, message=report["error"])
            return
        # Without a report the keeper itself was killed, and the container with it.
        status = report.get("exit", signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            self.state = _terminated(128 - code, "Error", started_at, number=-code)
        else:
            self.state = _terminated(code, "Completed" if code == 0 else "Error", started_at)

    def flush_output(self, older_than: float) -> None:
        if self._unfinished_since is not None and self._unfinished_since <= older_than:
            for stream in self._streams.values():
                stream.flush()
            self._unfinished_since = None

    def terminate(self) -> None:
        """Sends SIGTERM to the command. A container that is not running will not be started any more."""
        self.start_at = None
        if self._keeper is not None:
            os.kill(self._keeper, signal.SIGTERM)  # not yet reaped, so the pid is ours

    def kill(self, *, keeper_too: bool) -> None:
        """Kills every process of the container, by closing the control pipe: the keeper then sends SIGKILL."""
        self._close_control()
        if keeper_too and self._keeper is not None:
            os.kill(self._keeper, signal.SIGKILL)

    def _close_control(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None


def _pipe(undo: ExitStack) -> tuple[int, int]:
    """A pipe that `undo` closes if a later step fails."""
    reader, writer = os.pipe()
    undo.callback(os.close, reader)
    undo.callback(os.close, writer)
    return reader, writer


def _terminated(code: int, reason: str, started_at: str, *, number: int = 0, message: str = "") -> Json:
    state: Json = {"exitCode": code, "reason": reason, "startedAt": started_at, "finishedAt": now()}
    if number:
        state["signal"] = number
    if message:
        state["message"] = message
    return {"terminated": state}
