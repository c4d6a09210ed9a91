"""The process that keeps one container: the supervisor forks it, it enters the pod's namespaces and runs the command.

With a PID namespace there are two keepers: the outer one waits outside; the inner one is process 1 inside, reaps
orphans, and ends every process of the namespace when it ends. Without one, the keeper is a sub-reaper and kills its
remaining descendants itself.

In: a `ContainerToRun`, the container's output pipes, and a control pipe whose other end the supervisor holds. Out, on
the report pipe, JSON lines: `{"started": true}`, then `{"exit": waitstatus}`; or `{"error": text}` when it could not
start. Invariants: SIGTERM goes to the command alone. When the control pipe closes, because the supervisor ends the
container or is dead, every process of the container is killed. When the command ends, so does everything it left
behind. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Set
from typing import NoReturn

from trainwright.embedded.node.pods.record import ContainerToRun, Isolation
from trainwright.embedded.node.supervision import rootfs, syscalls
from trainwright.embedded.node.supervision.cgroups import Cgroup

STARTING_SIGNALS = {signal.SIGTERM, signal.SIGCHLD, signal.SIGINT}
"""Signals that are blocked while a keeper is forked, until it has installed its own handlers."""


class Pipes:
    """The keeper's ends of the pipes: the container's output, the keeper's reports, the supervisor's control.

    A container has no standard input; a command that is run in it later may.
    """

    def __init__(self, *, stdout: int, stderr: int, report: int, control: int, stdin: int | None = None) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.report = report
        self.control = control

    def close_all_others(self) -> None:
        """Closes inherited descriptors. A sibling's control pipe kept open here would never close for that sibling."""
        close_all_but({self.stdin, self.stdout, self.stderr, self.report, self.control})

    def tell(self, **report: object) -> None:
        try:
            os.write(self.report, json.dumps(report).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the supervisor is dead, as the control pipe says too; or whoever ran a command has left


def close_all_but(kept: Set[int | None]) -> None:
    """Closes every descriptor but these and the standard ones."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError as error:
                if error.errno != errno.EBADF:  # the descriptor of the listing itself, closed by now
                    raise


def keep(
    container: ContainerToRun,
    isolation: Isolation,
    hostname: str,
    tree: rootfs.Tree,
    pipes: Pipes,
    cgroup: Cgroup | None = None,
) -> NoReturn:
    """Runs the container to its end in this process, which must be freshly forked, and exits."""
    code = 1
    try:
        pipes.close_all_others()
        os.setsid()
        redirect_standard_streams(pipes)
        wakeup = own_signal_handlers()
        if cgroup is not None:
            cgroup.enter()
        if isolation["mount"]:
            run_as = container.get("runAs")
            user = isolation["user"] or run_as is not None
            syscalls.unshare(user=user, pid=isolation["pid"], run_as=run_as)
            syscalls.set_hostname(hostname)
        if isolation["pid"]:
            code = _outside(container, tree, pipes, wakeup)
        else:
            if sys.platform == "linux":
                syscalls.become_subreaper()
            if isolation["mount"]:
                rootfs.show(tree)
            code = run(container, pipes, wakeup)
            kill_descendants()
    except OSError as error:
        pipes.tell(error=str(error))
        kill_descendants()
    finally:
        os._exit(code)


def redirect_standard_streams(pipes: Pipes) -> None:
    stdin = os.open(os.devnull, os.O_RDONLY) if pipes.stdin is None else pipes.stdin
    for source, target in ((stdin, 0), (pipes.stdout, 1), (pipes.stderr, 2)):
        os.dup2(source, target)
    for source in {stdin, pipes.stdout, pipes.stderr}:  # a terminal is all three
        os.close(source)


def release_standard_streams() -> None:
    """Lets go of the container's streams, so that they end with the last process that uses them."""
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.close(null)


def own_signal_handlers() -> int:
    """A pipe that wakes this process on signals. The one inherited by fork would wake the supervisor instead."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer)
    for number in STARTING_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STARTING_SIGNALS)
    return reader


def _outside(container: ContainerToRun, tree: rootfs.Tree, pipes: Pipes, wakeup: int) -> int:
    """Forks process 1 of the PID namespace and waits for it. Killing it kills the whole namespace."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STARTING_SIGNALS)
    child = os.fork()
    if child == 0:
        _inside(container, tree, pipes)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STARTING_SIGNALS)
    # Only the inner keeper may hold the container's streams, or the supervisor would never see them end.
    release_standard_streams()
    return _wait(child, pipes.control, wakeup)


def _inside(container: ContainerToRun, tree: rootfs.Tree, pipes: Pipes) -> NoReturn:
    """Process 1 of the container."""
    code = 1
    try:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        wakeup = own_signal_handlers()
        rootfs.show(tree)
        syscalls.mount_proc()
        code = run(container, pipes, wakeup)
    except OSError as error:
        pipes.tell(error=str(error))
    finally:
        os._exit(code)


def run(container: ContainerToRun, pipes: Pipes, wakeup: int) -> int:
    """Starts the command, waits for it, and reports how it ended."""
    problem, problem_end = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, STARTING_SIGNALS)
    child = os.fork()
    if child == 0:
        _exec(container, problem_end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STARTING_SIGNALS)
    os.close(problem_end)
    message = b""
    while chunk := os.read(problem, 65536):  # closed by a successful exec
        message += chunk
    os.close(problem)
    if message:
        os.waitpid(child, 0)
        pipes.tell(error=message.decode(errors="replace"))
        return 1
    pipes.tell(started=True)
    release_standard_streams()
    status = _wait(child, pipes.control, wakeup)
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left of the group (macOS says the latter)
        pass
    pipes.tell(exit=status)
    return 0


def _exec(container: ContainerToRun, problem: int) -> NoReturn:
    """Becomes the command. An error is written to `problem`, which a successful exec closes."""
    argv, env = container["argv"], container["env"]
    message = ""
    try:
        os.setsid()  # so that a signal to "its group" reaches neither keeper nor siblings
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # ^C and a change of size reach the command
        signal.set_wakeup_fd(-1)
        for number in STARTING_SIGNALS | {signal.SIGPIPE, signal.SIGXFSZ}:  # the interpreter ignores the last two
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STARTING_SIGNALS)
        if sys.platform == "linux":
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if container.get("runAs", [1])[0] == 0:
            syscalls.drop_capabilities()  # or it could take away what was mounted over the cluster's secrets
        try:
            os.chdir(container["cwd"])
        except OSError as error:
            message = f"working directory {container['cwd']}: {error.strerror}"
        else:
            os.execvpe(argv[0], argv, env)  # noqa: S606 - running the user's command is what a node is for
    except FileNotFoundError:
        where = "on this machine" if "/" in argv[0] else "in $PATH"
        message = f'exec: "{argv[0]}": executable file not found {where}'
    except OSError as error:
        message = f'exec: "{argv[0]}": {error.strerror}'
    except ValueError as error:  # a NUL in an argument or variable
        message = f'exec: "{argv[0]}": {error}'
    os.write(problem, message.encode())
    os._exit(127)


def _wait(child: int, control: int, wakeup: int) -> int:
    """Waits for `child` and returns its wait status. Meanwhile passes on SIGTERM, reaps orphans and watches the control
    pipe.
    """
    while True:
        ready, _, _ = select.select([control, wakeup], [], [])
        if wakeup in ready:
            received = os.read(wakeup, 4096)
            if signal.SIGTERM in received or signal.SIGINT in received:
                _kill(child, signal.SIGTERM)
            status = _reap(child)
            if status is not None:
                return status
        if control in ready and not os.read(control, 1):
            # The control pipe closed. A child that is process 1 of a namespace takes everything with it; other
            # descendants are killed by the caller, which is their sub-reaper.
            _kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]


def _reap(child: int) -> int | None:
    """Reaps every child that has ended. Returns the wait status of `child` when it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill_descendants() -> None:
    """Kills every descendant of the calling process, however it tried to escape, and reaps them.

    The caller is a sub-reaper: orphans become its children, so it is done when it has no more children. Without /proc
    descendants cannot be found; then only the command's process group is killed, by `run`.
    """
    if not os.path.isdir("/proc/self"):
        return
    while found := descendants(os.getpid()):
        for pid in found:
            _kill(pid, signal.SIGKILL)
        _reap(-1)
        time.sleep(0.001)


def descendants(ancestor: int) -> list[int]:
    """The pids of all processes below this one, parents first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    stat = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parent = int(stat[stat.rindex(b")") + 2 :].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [ancestor]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found
