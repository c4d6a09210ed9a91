"""One pod's supervisor: `python -m trainwright.embedded.node.supervision.supervisor <pod directory>`.

In: `pod.json`, and SIGTERM after `terminate.json` was written. Out: `record.json` after every change, the containers'
logs, and the pod's UID on the node's pipe whenever the record changed. It runs in a session of its own and is not a
child of the control plane, so it outlives the control plane; a node that starts again reads the pod's state from the
record.

Invariants: a pod UID is started only once, ever (the claim file). When this process ends, in whatever way, so do its
containers. When the record says `done`, nothing of the pod runs. Standard library only, so that a pod costs ten
megabytes and fifty milliseconds.
"""

from __future__ import annotations

import errno
import gc
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainwright.embedded.node.pods import identity
from trainwright.embedded.node.pods.record import (
    RECORD_VERSION,
    ContainerRecord,
    ContainerToRun,
    PodDirectory,
    PodRecord,
    PodToRun,
    now,
)
from trainwright.embedded.node.supervision import keeper, podnetwork, syscalls
from trainwright.embedded.node.supervision.container import Container
from trainwright.embedded.node.supervision.execsocket import ExecSocket
from trainwright.embedded.node.supervision.journal import Journal
from trainwright.embedded.node.supervision.passage import Passage

FLUSH_SECONDS = 0.5
"""How long an unfinished line of output is held back before it is logged as a part."""

RETRY_SECONDS = 1.0
"""How often a record that could not be written is tried again."""

SIDECAR_SECONDS = 2.0
"""What is left at least for sidecars when the other containers used up the grace period."""


class Supervisor:
    """Runs a pod: init containers one after the other, sidecars among them, then all containers; restarts by policy;
    ends the pod when it was asked to, or when its containers are finished: sidecars last, in reverse order.
    """

    def __init__(self, directory: PodDirectory, pod: PodToRun, passage: Passage | None = None) -> None:
        me = identity.of(os.getpid())
        assert me is not None
        self.directory = directory
        self.pod = pod
        self.passage = passage
        self.selector = selectors.DefaultSelector()
        self.journal = Journal()
        self.init_containers = [self._container(spec, init=True) for spec in pod["initContainers"]]
        self.containers = [self._container(spec, init=False) for spec in pod["containers"]]
        self.everyone = (*self.init_containers, *self.containers)
        self.kill_at: float | None = None
        self._grace = float("inf")
        self._asked_to_end = False
        self._has_initialized = False
        self._written: PodRecord | None = None
        self._retry_at: float | None = None
        self._record: PodRecord = {
            "version": RECORD_VERSION,
            "uid": pod["uid"],
            "supervisor": list(me),
            "startedAt": now(),
            "initContainers": {},
            "containers": {},
            "done": False,
        }

    def _container(self, spec: ContainerToRun, *, init: bool) -> Container:
        return Container(spec, self.pod, self.directory, self.selector, self.journal, init=init)

    def begin(self) -> None:
        """Installs signal handlers and writes the first record: from here on the pod can be terminated."""
        self._listen_to_signals()
        self._exec_socket = ExecSocket(self.directory.path, self._named, self.selector)
        for waiting in self.everyone:
            waiting.wait("PodInitializing" if self.init_containers else "ContainerCreating")
        if not self._write_record():
            raise OSError(errno.ENOSPC, f"{self.directory.path}: the record could not be written")

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
            self._exec_socket.advance()
        keeper.kill_descendants()
        if self.passage is not None:
            self.passage.close()
        self._record = {**self._record, "done": True}
        while not self._write_record():
            time.sleep(RETRY_SECONDS)

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
            for container in self.everyone:
                container.child_ended(pid)
            self._exec_socket.ended(pid)

    def _named(self, name: str) -> Container | None:
        return next((found for found in self.everyone if found.name == name), None)

    def _advance(self) -> None:
        """Starts the containers that may start now, and ends the pod if that was asked for or its work is done."""
        if self._asked_to_end:
            self._asked_to_end = False
            self._terminate(self.directory.grace_period())
        if self.kill_at is None and self._is_finished():
            self._terminate(None)
        if self.kill_at is not None:
            self._end_in_order()
            return
        for container in self.init_containers:
            if container.is_sidecar or not container.has_succeeded:
                container.start_when_due()
            if not self._has_initialized and not _lets_others_start(container):
                return
        self._has_initialized = True
        for container in self.containers:
            container.start_when_due()

    def _is_finished(self) -> bool:
        """Whether nothing is left to run but sidecars: all containers are finished, or an init container failed."""
        if any(container.has_failed for container in self.init_containers if not container.is_sidecar):
            return True
        return all(container.is_finished for container in self.containers)

    def _terminate(self, grace_period: float | None) -> None:
        grace = self.pod["terminationGracePeriodSeconds"] if grace_period is None else grace_period
        self._grace = min(self._grace, grace)
        kill_at = time.monotonic() + grace
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def _end_in_order(self) -> None:
        """Ends the containers; when they have ended, the sidecars, the last one first."""
        assert self.kill_at is not None
        others = [container for container in self.everyone if not container.is_sidecar]
        for container in others:
            container.end(self.kill_at)
        if any(container.is_running for container in others):
            return
        for sidecar in reversed(self.init_containers):
            if sidecar.is_sidecar and sidecar.is_running:
                if not sidecar.is_being_ended:
                    self.kill_at = max(self.kill_at, time.monotonic() + min(self._grace, SIDECAR_SECONDS))
                sidecar.end(self.kill_at)
                return

    def _keep_deadlines(self) -> None:
        present = time.monotonic()
        for container in self.everyone:
            container.keep_deadlines(present, flush_before=present - FLUSH_SECONDS)

    def _seconds_to_wait(self) -> float | None:
        """Seconds until something is due: an unfinished line, a back-off, a probe, the end of the grace period. None:
        nothing is.
        """
        deadlines = [at for container in self.everyone for at in container.deadlines(FLUSH_SECONDS)]
        deadlines += [] if self._retry_at is None else [self._retry_at]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _is_over(self) -> bool:
        if any(container.is_running for container in self.everyone):
            return False
        return self.kill_at is not None or self._is_finished()

    def _write_record(self) -> bool:
        """Writes the record if it has changed. A full disk is no reason to end: then it is tried again. False: it has
        to be.
        """
        init: dict[str, ContainerRecord] = {c.name: c.record() for c in self.init_containers}
        main: dict[str, ContainerRecord] = {c.name: c.record() for c in self.containers}
        record: PodRecord = {**self._record, "initContainers": init, "containers": main}
        if happenings := self.journal.entries:
            record["happenings"] = happenings
        if record == self._written:
            return True
        self._record = record
        try:
            self.directory.write_record(record)
        except OSError:
            if not self.directory.path.exists():  # removed by force: nobody will read it
                return True
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return False
        self._written, self._retry_at = record, None
        notify(self.pod)
        return True


def _lets_others_start(container: Container) -> bool:
    """Whether the containers after this init container may start."""
    return container.health.started if container.is_sidecar else container.has_succeeded


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
    passage, joining = None, None
    if network := pod.get("network"):
        try:
            passage = Passage()
            joining = podnetwork.join(Path(network), pod["uid"], pod["address"], user=pod["isolation"]["user"])
            passage.open(pod.get("reachable", []))
            directory.name_services.write_text(podnetwork.NO_NAMES_BUT_FILES)
        except OSError as error:
            print(f"the pod got no network of its own: {error}", file=sys.stderr)
            return 4
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
    if joining is not None:
        joining.announce(pod["uid"])
    if sys.platform == "linux":
        syscalls.become_subreaper()
    gc.collect()
    gc.freeze()
    if cpus := pod.get("cpus"):
        os.sched_setaffinity(0, cpus)  # and so are all that it starts
    supervisor = Supervisor(directory, pod, passage)
    supervisor.begin()
    os.close(recorded_end)
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
