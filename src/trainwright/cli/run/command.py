"""`trainwright run`: runs a script, a module, a command or a TrainJob from a file, to its end.

Checks what was typed, then uses the cluster that is meant, or starts a local one for the run and stops it at the end.
`making` does the rest; it is imported while the cluster starts, since the user waits for both. A file that looks right
and turns out wrong ends the cluster that has begun to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trainwright.cli.clusters.target import Target
from trainwright.cli.console.stopwatch import Stopwatch
from trainwright.cli.failure import Failure
from trainwright.cli.launch.choice import Choice, variables
from trainwright.cli.launch.interpreter import interpreter
from trainwright.cli.launch.program import program_of
from trainwright.cli.machine.up import Starting, begin, stop

if TYPE_CHECKING:
    from trainwright.cli.run.making import Source

NO_WORKDIR = "none"


def run(
    *,
    target: Target,
    namespace: str,
    file: str | None,
    module: str | None,
    arguments: Sequence[str],
    detach: bool,
    dry_run: bool,
    env: Sequence[str],
    workdir: str | None,
    quiet: bool,
    **flags: Any,
) -> int:
    program = program_of(file, module, arguments)
    choice = Choice(env=variables(env, os.environ), workdir=_workdir(workdir, target), **flags)
    source: Source | None = None
    if program is None:
        _refuse_flags(env=bool(env), workdir=workdir, arguments=bool(arguments), **flags)
        if not _has_train_job(file or ""):
            from trainwright.cli.run.making import FromFile

            source = FromFile(file or "", namespace)  # which most likely says what is wrong with it
    else:
        choice.resources()
        if target.is_local:
            interpreter(choice.python, os.environ)
            if choice.output_claim:
                raise Failure(
                    "--output-claim is for other clusters; here $TRAINWRIGHT_OUTPUT is a directory of the run",
                    2,
                )
    with ClusterForRun(target, wanted=not dry_run) as cluster:
        if quiet:
            cluster.say = lambda _: None
        from trainwright.cli.clusters.connection import carry_out
        from trainwright.cli.run.making import FromFile, FromProgram, Making
        from trainwright.client.errors import Unreachable

        if program is not None:
            source = FromProgram(program, choice, target, namespace)
        elif source is None:
            source = FromFile(file or "", namespace)
        cluster.announce()
        making = Making(target, source, cluster.watch, quiet=quiet)
        cluster.say = making.say
        if dry_run:
            return carry_out(making.show())
        cluster.wait_until_ready()
        try:
            code = carry_out(making.go(detach=detach))
        except Failure as failure:
            if detach or not isinstance(failure.__cause__, Unreachable):
                raise
            advice = "with --detach the run is kept, and created when the cluster answers"
            raise Failure(f"{failure.message}; {advice}") from failure
        finally:
            cluster.job, cluster.stays = making.name, making.runs_on
    if not detach:
        cluster.say(f"took {cluster.watch}")
    return code


def _workdir(asked: str | None, target: Target) -> Path | None:
    """The working directory. `none` is for other clusters alone: nothing travels, and the image's own is used."""
    if asked == NO_WORKDIR and not target.is_local:
        return None
    path = Path(asked or ".").expanduser().absolute()
    if not path.is_dir():
        raise Failure(f"--workdir {asked}: there is no such directory", 2)
    return path


def _refuse_flags(**flags: Any) -> None:
    """A file says all of this itself."""
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value and name != "arguments"]
    if flags["arguments"]:
        given.append("arguments after --")
    if given:
        raise Failure(f"{', '.join(given)}: for scripts, modules and commands; a file says it in its TrainJob", 2)


def _has_train_job(file: str) -> bool:
    """Whether a file is likely to be right, so that a cluster may start while its reader is imported."""
    try:
        with open(file, "rb") as stream:  # not standard input, which can be read only once
            return file != "-" and b"TrainJob" in stream.read(65536)
    except OSError:
        return False


class ClusterForRun:
    """The cluster of one run: the one that is up, or a local one that is started for it and stopped at its end."""

    def __init__(self, target: Target, *, wanted: bool) -> None:
        self._cluster = target.directory
        self._wanted = wanted and target.is_local
        self._starting: Starting | None = None
        self.watch = Stopwatch()
        self.say: Callable[[str], None] = partial(print, flush=True)
        self.job = ""
        """The run's TrainJob."""
        self.stays = False
        """Whether a cluster that was started for the run is left running."""

    def __enter__(self) -> Self:
        if self._wanted and self._cluster.running_pid() is None:
            self._starting = begin(self._cluster, for_a_run=True)
        return self

    def announce(self) -> None:
        """Says that a cluster starts, once nothing speaks against the run."""
        if self._starting is not None:
            self.say("starting a local cluster for this run")

    def wait_until_ready(self) -> None:
        if self._starting is not None:
            self._starting.wait()
            self.watch.lap("control plane")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        starting = self._starting
        if starting is None or self.stays:
            return
        if not starting.is_ready:
            starting.abandon()
        elif self._cluster.running_pid() == starting.pid and not self._is_used_by_others():
            stop(self._cluster)
            self.watch.lap("shutting down")

    def _is_used_by_others(self) -> bool:
        from trainwright.cli.machine.down import running_jobs

        others = [str(job) for job in running_jobs(self._cluster) or () if job.name != self.job]
        if others:
            self.say(
                f"the local cluster stays up, since other jobs run on it: {', '.join(others)}. Stop it with:"
                f" trainwright down{self._cluster.flag()}"
            )
        return bool(others)
