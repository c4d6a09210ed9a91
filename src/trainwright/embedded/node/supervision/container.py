"""One container of a pod inside its supervisor: starts it, watches its health, restarts and ends it.

In: a `ContainerToRun` and the time. Out: a `ContainerRecord` with Kubernetes' states and reasons. A run of it is an
`Instance`; its probes and hooks are in `health`. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import cast

from trainwright.embedded.node.pods.record import ContainerRecord, ContainerToRun, PodDirectory, PodToRun, now
from trainwright.embedded.node.supervision import attempts, lastwords, memory, restarts
from trainwright.embedded.node.supervision.attempts import Attempt, Outcome
from trainwright.embedded.node.supervision.execution import Execution, Streams
from trainwright.embedded.node.supervision.health import Health
from trainwright.embedded.node.supervision.instance import Instance
from trainwright.embedded.node.supervision.journal import Journal
from trainwright.embedded.node.supervision.memory import MemoryLimit
from trainwright.schema.jsonobject import Json

START_ERROR_EXIT_CODE = 128
"""The exit code that container runtimes report for a command that could not be started."""

KEEPER_SECONDS = 1.0
"""How long a keeper has to kill its container before it is killed itself, which ends the container too."""

AFTER_HOOK_SECONDS = 2.0
"""What is left at least for SIGTERM when a preStop hook used up the grace period."""


class Container:
    """A container that is waiting, running or terminated. `start_at` is set while it is in back-off."""

    def __init__(
        self,
        spec: ContainerToRun,
        pod: PodToRun,
        directory: PodDirectory,
        selector: selectors.BaseSelector,
        journal: Journal,
        *,
        init: bool = False,
    ) -> None:
        self.spec = spec
        self.pod = pod
        self.directory = directory
        self.selector = selector
        self.name = spec["name"]
        self.init = init
        self.is_sidecar = restarts.is_sidecar(spec, init=init)
        self.restart_count = 0
        self.start_at: float | None = None
        self.state: Json = {"waiting": {"reason": "ContainerCreating"}}
        self.last_state: Json = {}
        self.health = Health(spec, selector, journal, self)
        self._journal = journal
        self._instance: Instance | None = None
        self._began = 0.0
        self._kill_at: float | None = None
        self._asked_kill_at = 0.0
        self._hook: Attempt | None = None
        by_kernel = "memory" in (pod.get("cgroups") or {"controllers": []})["controllers"]
        self._memory = MemoryLimit(spec["memoryLimit"]) if spec.get("memoryLimit") and not by_kernel else None
        self._back_off = restarts.BackOff()

    @property
    def is_running(self) -> bool:
        """Whether a process of the container may still run or write."""
        return self._instance is not None

    @property
    def has_started(self) -> bool:
        """Whether its command runs, so that others can be run beside it."""
        return self._instance is not None and self._instance.has_started

    @property
    def has_run(self) -> bool:
        return "terminated" in self.state or "terminated" in self.last_state

    @property
    def exit_code(self) -> int | None:
        return cast(int | None, self.state.get("terminated", {}).get("exitCode"))

    @property
    def has_succeeded(self) -> bool:
        return self.exit_code == 0

    @property
    def is_finished(self) -> bool:
        """Whether it has ended and its policy says that it stays so."""
        if self.is_running or self.exit_code is None:
            return False
        return not restarts.is_restarted(self.spec, self.pod["restartPolicy"], self.exit_code, init=self.init)

    @property
    def has_failed(self) -> bool:
        return self.is_finished and not self.has_succeeded

    @property
    def is_being_ended(self) -> bool:
        return self._kill_at is not None

    def record(self) -> ContainerRecord:
        return {
            "state": self.state,
            "lastState": self.last_state,
            "restartCount": self.restart_count,
            "ready": self.health.ready,
            "started": self.health.started,
            "keeper": self._instance.keeper if self._instance is not None else None,
        }

    def wait(self, reason: str, message: str = "") -> None:
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def start_when_due(self) -> None:
        """Starts a container that never ran, or restarts it when its policy says so and its back-off is over."""
        if self.is_running or self.is_finished:
            return
        if self.exit_code is not None:
            self._back_off_from(time.monotonic())
        if self.start_at is None or time.monotonic() >= self.start_at:
            self._start()

    def _back_off_from(self, present: float) -> None:
        """Plans the restart: at once, or after a while in CrashLoopBackOff."""
        seconds = self._back_off.seconds(present - self._began)
        self.last_state = self.state
        if not seconds:
            self.state = {}  # and started at once
            return
        self.start_at = present + seconds
        pod = f"{self.pod['name']}_{self.pod['namespace']}({self.pod['uid']})"
        message = f"back-off {_go_duration(seconds)} restarting failed container={self.name} pod={pod}"
        self.wait("CrashLoopBackOff", message)
        self._journal.tell(
            "Warning", "BackOff", f"Back-off restarting failed container {self.name} in pod {pod}", self.name
        )

    def _start(self) -> None:
        if self.has_run:
            self.restart_count += 1
        self.start_at = self._kill_at = None
        if self._memory is not None:
            self._memory.exceeded_by = None
        self._began = time.monotonic()
        started_at = now()
        try:
            self._instance = Instance(
                self.spec, self.pod, self.directory, self.selector, self.restart_count, self._ended
            )
        except OSError as error:  # the machine is out of processes, descriptors or disk: reported in the pod's status
            self.state = _terminated(START_ERROR_EXIT_CODE, "StartError", started_at, message=str(error))
            return
        self.state = {"running": {"startedAt": started_at}}
        self.health.begin(self._began)

    def execute(self, argv: list[str], streams: Streams, report: int) -> Execution:
        """Runs another command in the container, which must have started; see `Instance.execute`."""
        assert self._instance is not None
        return self._instance.execute(argv, streams, report)

    def child_ended(self, pid: int) -> None:
        """Handles the end of process `pid`, if it is one of this container's."""
        self.health.child_ended(pid)
        if self._hook is not None:
            self._hook.child_ended(pid)
        if self._instance is not None:
            self._instance.child_ended(pid)

    def _ended(self, report: Json) -> None:
        """Everything in the container has ended: records how."""
        self._instance = None
        self.health.end()
        if self._hook is not None:
            self._hook.cancel()
            self._hook = None
        started_at = self.state["running"]["startedAt"]
        if "error" in report:
            self.state = _terminated(START_ERROR_EXIT_CODE, "StartError", started_at, message=report["error"])
            return
        # Without a report the keeper itself was killed, and the container with it.
        status = report.get("exit", signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        words = ""
        if code != 0:
            log = self.directory.log(self.name, self.restart_count)
            words = lastwords.of_log(log, was_killed=code in (-signal.SIGKILL, 1, 128 + signal.SIGKILL))
        if killed := report.get("outOfMemory"):
            message = memory.killed_by_kernel(killed["limit"], killed["peak"])
            self.state = _terminated(137, "OOMKilled", started_at, number=signal.SIGKILL, message=message)
        elif self._memory is not None and self._memory.exceeded_by is not None:
            message = self._memory.message()
            self.state = _terminated(137, "OOMKilled", started_at, number=signal.SIGKILL, message=message)
        elif code < 0:
            self.state = _terminated(128 - code, "Error", started_at, number=-code, message=words)
        else:
            self.state = _terminated(code, "Completed" if code == 0 else "Error", started_at, message=words)

    def end(self, kill_at: float) -> None:
        """Runs the preStop hook and sends SIGTERM; at `kill_at` everything of the container is killed.

        A container that is not running will not be started any more until it is asked to. Asked again, an earlier time
        counts.
        """
        self.start_at = None
        if self._instance is None:
            return
        if self._kill_at is not None:
            if kill_at < self._asked_kill_at:
                self._asked_kill_at = self._kill_at = kill_at
            return
        self._asked_kill_at = self._kill_at = kill_at
        self.health.ending()
        present = time.monotonic()
        grace_period = kill_at - present
        handler = self.spec.get("preStop")
        if handler is None or grace_period <= 0 or ("exec" in handler and not self.has_started):
            self._instance.terminate()
            return
        try:
            self._hook = attempts.begin(
                handler, grace_period, self.selector, self._hook_ended, container=self, now=present
            )
        except OSError as error:
            self._hook_ended(Outcome(False, str(error)))

    def _hook_ended(self, outcome: Outcome) -> None:
        self._hook = None
        if not outcome.succeeded:
            self._journal.tell("Warning", "FailedPreStopHook", f"PreStopHook failed: {outcome.message}", self.name)
        if self._instance is not None and self._kill_at is not None:
            self._kill_at = max(self._kill_at, time.monotonic() + AFTER_HOOK_SECONDS)
            self._instance.terminate()

    def keep_deadlines(self, present: float, flush_before: float) -> None:
        """Does what is due: probes, output that has waited, the end of a container that is unhealthy or overdue."""
        if self._instance is None:
            return
        self._instance.flush_output(older_than=flush_before)
        if self._hook is not None and present >= self._hook.expires:
            self._hook.expire()
        self.health.advance(present)
        if self._uses_too_much_memory(present):
            self._instance.kill(keeper_too=False)
        if (failed := self.health.failed) is not None:
            message, grace = failed
            self._journal.tell("Normal", "Killing", message, self.name)
            self.end(present + (self.pod["terminationGracePeriodSeconds"] if grace is None else grace))
        if self._kill_at is not None and present >= self._kill_at:
            self._instance.kill(keeper_too=present >= self._kill_at + KEEPER_SECONDS)

    def _uses_too_much_memory(self, present: float) -> bool:
        assert self._instance is not None
        limit, kept_by = self._memory, self._instance.keeper
        if limit is None or kept_by is None or limit.exceeded_by is not None:
            return False
        return limit.look(kept_by, present)

    def deadlines(self, flush_seconds: float) -> list[float]:
        """The times at which `keep_deadlines` or a start is due."""
        if self._instance is None:
            return [] if self.start_at is None else [self.start_at]
        found = [] if (at := self._instance.unfinished_since) is None else [at + flush_seconds]
        found += [] if (at := self.health.next_at) is None else [at]
        if self._memory is not None and self._memory.exceeded_by is None:
            found.append(self._memory.next_at)
        found += [] if self._hook is None else [self._hook.expires]
        if self._kill_at is not None:
            overdue = time.monotonic() >= self._kill_at
            found.append(self._kill_at + KEEPER_SECONDS if overdue else self._kill_at)
        return found


def _go_duration(seconds: float) -> str:
    """As Go prints it: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _terminated(code: int, reason: str, started_at: str, *, number: int = 0, message: str = "") -> Json:
    state: Json = {"exitCode": code, "reason": reason, "startedAt": started_at, "finishedAt": now()}
    if number:
        state["signal"] = number
    if message:
        state["message"] = message
    return {"terminated": state}
