"""A command that runs inside a container beside the container's own: `kubectl exec`, probes and hooks.

In: the container's keeper, whose namespaces the command enters; what to run, with the container's variables and
working directory; its streams. Out, on the report pipe, what a keeper reports: `{"started": true}`, then
`{"exit": waitstatus}`, or `{"error": text}` when it could not start. The pipe ends when nothing of the command runs any
more.

    with its container    every process of it is killed when the container ends
    with its command      so is everything that the command left behind: background processes do not stay
    with whoever asked    `kill()`, or the end of the supervisor, kills all of it

As with a keeper there are two processes where there is a PID namespace: one outside, which entered the namespaces, and
one inside, which is a sub-reaper and ends what is left. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import NoReturn

from trainwright.embedded.node.pods.record import ContainerToRun, Isolation
from trainwright.embedded.node.supervision import keeper, syscalls
from trainwright.embedded.node.supervision.cgroups import Cgroup


@dataclass(frozen=True, slots=True)
class Streams:
    """Descriptors for the command, which stay the caller's own. None is /dev/null. A terminal may be all three: then
    it becomes the command's controlling terminal.
    """

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None


class Execution:
    """A command in a container. `ended(pid)` is to be called for every child that the supervisor has reaped."""

    def __init__(self, pid: int, control: int) -> None:
        self.pid = pid
        self._control: int | None = control
        self.is_over = False

    def kill(self) -> None:
        """Kills every process of the command, by closing the control pipe."""
        if self._control is not None:
            os.close(self._control)
            self._control = None

    def ended(self, pid: int) -> bool:
        """Whether the process that was reaped was this command's: then nothing of it runs."""
        if pid == self.pid:
            self.is_over = True
            self.kill()
        return pid == self.pid


def start(
    container: ContainerToRun,
    isolation: Isolation,
    kept_by: int,
    streams: Streams,
    report: int,
    cgroup: Cgroup | None = None,
) -> Execution:
    """Starts `container["argv"]` in the namespaces of the keeper `kept_by`, whose container must have started.

    Called by the supervisor. `report` is the writing end of a pipe, or a socket; it stays the caller's own too.
    """
    control_end, control = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    pipes = keeper.Pipes(
        stdin=streams.stdin,
        stdout=null if streams.stdout is None else streams.stdout,
        stderr=null if streams.stderr is None else streams.stderr,
        report=report,
        control=control_end,
    )
    signal.pthread_sigmask(signal.SIG_BLOCK, keeper.STARTING_SIGNALS)
    try:
        child = os.fork()
        if child == 0:
            _execute(container, isolation, kept_by, pipes, cgroup)
    except OSError:
        os.close(control)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, keeper.STARTING_SIGNALS)
        os.close(control_end)
        os.close(null)
    return Execution(child, control)


def _execute(
    container: ContainerToRun, isolation: Isolation, kept_by: int, pipes: keeper.Pipes, cgroup: Cgroup | None
) -> NoReturn:
    """Enters the namespaces, runs the command to its end in this process, which is freshly forked, and exits."""
    code = 1
    try:
        pipes.close_all_others()
        os.setsid()
        keeper.redirect_standard_streams(pipes)
        if cgroup is not None:
            cgroup.enter()
        if isolation["mount"]:
            user = isolation["user"] or "runAs" in container
            syscalls.enter(kept_by, user=user, pid_namespace=isolation["pid"])
        if isolation["pid"]:
            child = os.fork()
            if child == 0:
                syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
                _run(container, pipes)
            keeper.own_signal_handlers()  # which wake nobody: only the end of the child counts
            keeper.release_standard_streams()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        else:
            _run(container, pipes)
    except OSError as error:
        pipes.tell(error=str(error))
    finally:
        os._exit(code & 0xFF)


def _run(container: ContainerToRun, pipes: keeper.Pipes) -> NoReturn:
    code = 1
    try:
        wakeup = keeper.own_signal_handlers()
        if sys.platform == "linux":
            syscalls.become_subreaper()
        code = keeper.run(container, pipes, wakeup)
    except OSError as error:
        pipes.tell(error=str(error))
    finally:
        keeper.kill_descendants()
        os._exit(code)
