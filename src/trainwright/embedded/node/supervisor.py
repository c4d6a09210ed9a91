"""One pod's supervisor: `python -m trainwright.embedded.node.supervisor <pod directory>`.

In: `pod.json`, and SIGTERM after `terminate.json` was written. Out: `record.json` after every change, the containers'
logs, and the pod's UID on the node's pipe whenever the record changed. It runs in a session of its own and is not a
child of the control plane, so it outlives the control plane; a node that starts again reads the pod's state from the
record.

Invariants: a pod UID is started only once, ever (the claim file). When this process ends, in whatever way, so do its
containers. When the record says `done`, nothing of the pod runs. Standard library only, so that a pod costs ten
megabytes and fifty milliseconds.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainwright.embedded.node import identity, keeper, syscalls
from trainwright.embedded.node.container import Container
from trainwright.embedded.node.record import ContainerRecord, PodDirectory, PodRecord, PodToRun, now

BACK_OFF_SECONDS = 1.0
"""The first back-off before a container is restarted; it doubles each time. A kubelet's is 10 s, or 1 s with its
feature gate ReduceDefaultCrashLoopBackOffDecay, which suits a machine with one user."""

MAX_BACK_OFF_SECONDS = 60.0

FLUSH_SECONDS = 0.5
"""How long an unfinished line of output is held back before it is logged as a part."""

KEEPER_SECONDS = 1.0
"""How long a keeper has to kill its container before it is killed itself, which ends the container too."""


class Supervisor:
    """Runs a pod: init containers one after the other, then all containers, restarts by policy, termination when
    asked.
    """

    def __init__(self, directory: PodDirectory, pod: PodToRun) -> None:
        me = identity.of(os.getpid())
        assert me is not None
        self.directory = directory
        self.pod = pod
        self.selector = selectors.DefaultSelector()
        self.init_containers = [Container(spec, pod, directory, self.selector) for spec in pod["initContainers"]]
        self.containers = [Container(spec, pod, directory, self.selector) for spec in pod["containers"]]
        self.kill_at: float | None = None
        self._asked_to_end = False
        self._record: PodRecord = {
            "uid": pod["uid"],
            "supervisor": list(me),
            "startedAt": now(),
            "initContainers": {},
            "containers": {},
            "done": False,
        }

    def begin(self) -> None:
        """Installs signal handlers and writes the first record: from here on the pod can be terminated."""
        self._listen_to_signals()
        for waiting in (*self.init_containers, *self.containers):
            waiting.wait("PodInitializing" if self.init_containers else "ContainerCreating")
        self._write_record()

    def run(self) -> None:
        if self.directory.grace_period() is not None:
            self._asked_to_end = True
        while not self._is_over():
            self._advance()
            self._write_record()
            if self._is_over():
                break
            for key, _ in self.selector.select(self._seconds_to_wait()):
                callback: Callable[[], None] = key.data
                callback()
            self._keep_deadlines()
        keeper.kill_descendants()
        self._record["done"] = True
        self._write_record()

    def _listen_to_signals(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in keeper.STARTING_SIGNALS:
            signal.signal(number, lambda *_: None)
        self.selector.register(reader, selectors.EVENT_READ, lambda: self._on_signals(os.read(reader, 4096)))

    def _on_signals(self, received: bytes) -> None:
        if signal.SIGTERM in received or signal.SIGINT in received:
            self._asked_to_end = True
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            for container in (*self.init_containers, *self.containers):
                container.keeper_ended(pid)

    def _advance(self) -> None:
        """Starts the containers that may start now, and begins the termination if it was asked for."""
        if self._asked_to_end:
            self._asked_to_end = False
            self._terminate(self.directory.grace_period())
        if self.kill_at is not None:
            return
        for container in self.init_containers:
            if not container.has_succeeded:
                self._start_by_policy(container, init=True)
                return
        for container in self.containers:
            self._start_by_policy(container, init=False)

    def _start_by_policy(self, container: Container, *, init: bool) -> None:
        """Starts a container that never ran, or restarts it when the policy says so and its back-off is over."""
        if container.is_running:
            return
        if container.has_run:
            policy = self.pod["restartPolicy"]
            # An init container that succeeded is finished under every policy.
            if policy == "Never" or (container.has_succeeded and (init or policy == "OnFailure")):
                return
            if container.start_at is None:
                back_off = min(BACK_OFF_SECONDS * 2**container.restart_count, MAX_BACK_OFF_SECONDS)
                container.back_off(back_off)
            assert container.start_at is not None
            if time.monotonic() < container.start_at:
                return
        container.start()

    def _terminate(self, grace_period: float | None) -> None:
        grace = self.pod["terminationGracePeriodSeconds"] if grace_period is None else grace_period
        first = self.kill_at is None
        kill_at = time.monotonic() + grace
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        if first:
            for container in (*self.init_containers, *self.containers):
                container.terminate()

    def _keep_deadlines(self) -> None:
        present = time.monotonic()
        for container in (*self.init_containers, *self.containers):
            container.flush_output(older_than=present - FLUSH_SECONDS)
            if self.kill_at is not None and present >= self.kill_at:
                container.kill(keeper_too=present >= self.kill_at + KEEPER_SECONDS)

    def _seconds_to_wait(self) -> float | None:
        """Seconds until the next deadline: an unfinished line, a back-off, the end of the grace period. None: there is
        no deadline.
        """
        everyone = (*self.init_containers, *self.containers)
        deadlines = [at + FLUSH_SECONDS for container in everyone if (at := container.unfinished_since) is not None]
        if self.kill_at is None:
            deadlines += [at for container in everyone if (at := container.start_at) is not None]
        else:
            overdue = time.monotonic() >= self.kill_at
            deadlines.append(self.kill_at + KEEPER_SECONDS if overdue else self.kill_at)
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _is_over(self) -> bool:
        everyone = (*self.init_containers, *self.containers)
        if any(container.is_running for container in everyone):
            return False
        if self.kill_at is not None:
            return True
        policy = self.pod["restartPolicy"]
        if policy == "Never" and any(container.has_failed for container in self.init_containers):
            return True
        if policy == "Always":
            return False
        return all(c.has_run and (policy == "Never" or c.has_succeeded) for c in self.containers)

    def _write_record(self) -> None:
        init: dict[str, ContainerRecord] = {c.name: c.record() for c in self.init_containers}
        main: dict[str, ContainerRecord] = {c.name: c.record() for c in self.containers}
        done = self._record["done"]
        if not done and init == self._record["initContainers"] and main == self._record["containers"]:
            return
        self._record = {**self._record, "initContainers": init, "containers": main}
        self.directory.write_record(self._record)
        notify(self.pod)


def notify(pod: PodToRun) -> None:
    """Tells the node, if one runs, that the record changed. If that is lost, the node finds out by its own checks."""
    try:
        pipe = os.open(pod["notify"], os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no node runs now
        return
    try:
        os.write(pipe, pod["uid"].encode() + b"\n")
    except (BlockingIOError, BrokenPipeError):
        pass
    finally:
        os.close(pipe)


def main(path: str) -> int:
    directory = PodDirectory(Path(path))
    pod = directory.pod()
    if pod is None:
        print(f"{path}: there is no pod.json in this directory", file=sys.stderr)
        return 2
    if not directory.claim():
        print(f"{path}: this pod has been started already", file=sys.stderr)
        return 3
    # The node waits for this process, which exits when there is a record; the supervisor itself is then a child of
    # init, so the node does not have to reap it.
    recorded, recorded_end = os.pipe()
    if os.fork():
        os.close(recorded_end)
        os.read(recorded, 1)
        return 0
    os.close(recorded)
    os.setsid()
    if sys.platform == "linux":
        syscalls.become_subreaper()
    gc.collect()
    gc.freeze()
    supervisor = Supervisor(directory, pod)
    supervisor.begin()
    os.close(recorded_end)
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
