"""One run of a container inside its supervisor: its keeper, its output, its log.

In: a `ContainerToRun`, its keeper's reports, its output. Out: a log file, and a call of `ended` with what the keeper
reported, when the keeper has ended and the output has been read to the last byte. Standard library only: the supervisor
imports this.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from trainwright.embedded.node.pods.record import ContainerToRun, Mount, PodDirectory, PodToRun, read_json
from trainwright.embedded.node.supervision import execution, keeper, rootfs
from trainwright.embedded.node.supervision.cgroups import Cgroup
from trainwright.embedded.node.supervision.crilog import MAX_FILES, LogFile, OutputStream
from trainwright.embedded.node.supervision.execution import Execution, Streams
from trainwright.schema.jsonobject import Json

READ_BYTES = 256 * 1024


class Instance:
    """A container that runs. Raises OSError if the machine is out of processes, descriptors or disk."""

    def __init__(
        self,
        spec: ContainerToRun,
        pod: PodToRun,
        directory: PodDirectory,
        selector: selectors.BaseSelector,
        restart: int,
        ended: Callable[[Json], None],
    ) -> None:
        self.spec = spec
        self.pod = pod
        self.directory = directory
        self.selector = selector
        self._ended = ended
        self._open: set[int] = set()
        self._report = b""
        self._unfinished_since: float | None = None
        self._executions: list[Execution] = []
        self._cgroup = self._make_cgroup(restart)
        self._fork(restart)

    @property
    def unfinished_since(self) -> float | None:
        """The time since which an unfinished line of output has been held back."""
        return self._unfinished_since

    @property
    def keeper(self) -> int | None:
        """The pid of the keeper, while it has not been reaped: until then it is ours."""
        return self._keeper

    @property
    def has_started(self) -> bool:
        """Whether its command runs: its namespaces are there, and others may enter them."""
        return self._keeper is not None and b'"started"' in self._report

    def execute(self, argv: list[str], streams: Streams, report: int) -> Execution:
        """Runs another command in the container, which must have started, as `execution` says.

        It has the container's variables and working directory. The descriptors stay the caller's own. When the
        container ends, so does the command.
        """
        assert self._keeper is not None
        spec = self._complete_spec()
        if streams.stdin is not None and os.isatty(streams.stdin):
            spec = {**spec, "env": {"TERM": "xterm", **spec["env"]}}
        started = execution.start(
            {**spec, "argv": argv}, self.pod["isolation"], self._keeper, streams, report, self._cgroup
        )
        self._executions.append(started)
        return started

    def _make_cgroup(self, restart: int) -> Cgroup | None:
        """A cgroup of its own, where the kernel is to keep a limit of it."""
        use = self.pod.get("cgroups") or {"directory": "", "controllers": []}
        memory = self.spec.get("memoryLimit") if "memory" in use["controllers"] else None
        milli_cpus = self.spec.get("milliCpuLimit") if "cpu" in use["controllers"] else None
        if not use["directory"] or (memory is None and milli_cpus is None):
            return None
        name = f"trainwright-{self.pod['uid']}-{self.spec['name']}-{restart}"
        return Cgroup(use["directory"], name, memory=memory, milli_cpus=milli_cpus)

    def _fork(self, restart: int) -> None:
        staging = self.directory.path / "root" / self.spec["name"]
        staging.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            kept = self.pod.get("logFiles", MAX_FILES)
            log = LogFile(self.directory.log(self.spec["name"], restart), max_files=kept)
            undo.callback(log.close)
            out, stdout = _pipe(undo)
            err, stderr = _pipe(undo)
            report, report_end = _pipe(undo)
            control_end, control = _pipe(undo)
            spec = self._complete_spec()
            signal.pthread_sigmask(signal.SIG_BLOCK, keeper.STARTING_SIGNALS)
            try:
                child = os.fork()
                if child == 0:
                    pipes = keeper.Pipes(stdout=stdout, stderr=stderr, report=report_end, control=control_end)
                    tree = rootfs.Tree(
                        self._mounts(),
                        self.pod.get("ownMemory", []),
                        staging,
                        self.pod.get("hidden", ""),
                        self.pod.get("shown", []),
                    )
                    keeper.keep(spec, self.pod["isolation"], self.pod["hostname"], tree, pipes, self._cgroup)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, keeper.STARTING_SIGNALS)
            undo.pop_all()
        for theirs in (stdout, stderr, report_end, control_end):
            os.close(theirs)
        self._log = log
        self._keeper: int | None = child
        self._control: int | None = control
        self._streams = {out: OutputStream("stdout", log), err: OutputStream("stderr", log)}
        for descriptor in (out, err):
            self._listen(descriptor, self._read_output)
        self._listen(report, self._read_report)

    def _complete_spec(self) -> ContainerToRun:
        return self._with_paths(self._with_callers_environment())

    def _with_callers_environment(self) -> ContainerToRun:
        """The container with the environment of whoever started the run under its own variables."""
        file = self.pod.get("environment")
        callers = read_json(Path(file)) if file else None
        if not isinstance(callers, dict):
            return self.spec
        own, replaceable = self.spec["env"], set(self.spec.get("replaceable", ()))
        added = {
            name: value
            for name, value in callers.items()
            if isinstance(value, str) and (name not in own or name in replaceable)
        }
        return {**self.spec, "env": {**own, **added}}

    def _with_paths(self, spec: ContainerToRun) -> ContainerToRun:
        """The container with the pod's directories before every other on PATH, and behind every other on PYTHONPATH."""
        env = dict(spec["env"])
        if directory := self.pod.get("pythonPath"):
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), directory]))
        if directories := self.pod.get("path"):
            env["PATH"] = os.pathsep.join([*directories, env.get("PATH", os.defpath)])
        return {**spec, "env": env}

    def _mounts(self) -> list[Mount]:
        hosts: Mount = {"source": str(self.directory.hosts), "target": "/etc/hosts", "readOnly": False}
        if not self.pod.get("network"):
            return [hosts, *self.spec["mounts"]]
        names: Mount = {"source": str(self.directory.name_services), "target": "/etc/nsswitch.conf", "readOnly": False}
        return [hosts, names, *self.spec["mounts"]]

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

    def child_ended(self, pid: int) -> None:
        """Handles the end of process `pid`, if that is this container's keeper or runs a command in it."""
        self._executions = [other for other in self._executions if not other.ended(pid)]
        if pid == self._keeper:
            self._keeper = None
            for other in self._executions:
                other.kill()
            self._close_control()
            self._end_if_over()

    def _end_if_over(self) -> None:
        if self._keeper is not None or self._open:
            return
        self._log.close()
        self._unfinished_since = None
        reports = [json.loads(line) for line in self._report.splitlines()]
        if self._cgroup is not None:
            if self._cgroup.was_out_of_memory():
                reports.append({"outOfMemory": {"limit": self._cgroup.memory, "peak": self._cgroup.peak()}})
            self._cgroup.remove()
        self._ended({key: value for line in reports for key, value in line.items()})

    def flush_output(self, older_than: float) -> None:
        if self._unfinished_since is not None and self._unfinished_since <= older_than:
            for stream in self._streams.values():
                stream.flush()
            self._unfinished_since = None

    def terminate(self) -> None:
        """Sends SIGTERM to the command."""
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
