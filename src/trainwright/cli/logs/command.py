"""`trainwright logs`: the output of a TrainJob's ranks, merged.

A run of this machine is read from its directory: all attempts, with or without a cluster. With `-f`, and on another
cluster, the lines come from the pods; a run whose TrainJob is gone there has the lines that `run` saw.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import no_such_job
from trainwright.cli.jobview.view import JobView
from trainwright.cli.logs.audience import Audience, People, Programs, Said
from trainwright.cli.logs.kept import attempt_before_last, said
from trainwright.cli.logs.lines import LogLines
from trainwright.cli.logs.selection import Selection, ranks_of, since_of
from trainwright.client.errors import NotFound
from trainwright.runs import BrokenRecord, Record, RunsHome
from trainwright.runs.logs import log_files
from trainwright.schema.jsonobject import Json

DRAIN_SECONDS = 5.0
BATCH = 1000


def logs(
    name: str,
    follow: bool,
    rank: str | None,
    tail: int | None,
    since: str | None,
    previous: bool,
    timestamps: bool,
    output: str,
    target: Target,
    namespace: str,
) -> int:
    if follow and previous:
        raise Failure("--previous and -f exclude each other: an earlier attempt is over", 2)
    selection = Selection(
        ranks=ranks_of(rank) if rank is not None else None,
        tail=tail,
        since=since_of(since, time.time()) if since is not None else None,
        previous=previous,
    )
    audience: Audience = (
        Programs(ranks=selection.ranks)
        if output == "json"
        else People(Terminal(), ranks=selection.ranks, timestamps=timestamps)
    )
    command = _Logs(target, namespace, name, selection, audience)
    if command.run is not None and target.is_local and not (follow and command.may_go_on):
        command.show_kept(command.run)
    else:
        carry_out(command.show_live(follow=follow))
    return 0


class _Logs:
    def __init__(self, target: Target, namespace: str, name: str, selection: Selection, audience: Audience) -> None:
        self._target = target
        self._namespace = namespace
        self._name = name
        self._selection = selection
        self._audience = audience
        self._home = RunsHome(target.directory.path)
        self.run = self._find()

    @property
    def may_go_on(self) -> bool:
        """Whether the run is not over, and its cluster is there to say more."""
        return not (self.run and self.run.is_finished) and self._target.directory.running_pid() is not None

    def _find(self) -> Record | None:
        """The record of the run on this target that is meant, if there is one."""
        context = None if self._target.is_local else self._target.kubeconfig().context
        try:
            found = self._home.find(self._name, self._namespace)
        except BrokenRecord as error:
            raise Failure(str(error)) from error
        if found is None:
            return None
        return found if (found.is_local if context is None else found.context == context) else None

    def show_kept(self, run: Record) -> None:
        """Shows the lines in the run's directory."""
        files = log_files(self._home.of(run.id))
        if self._selection.previous:
            files = attempt_before_last(files)
            if not files:
                raise Failure(f"run {run.id} of TrainJob {run.name} has no earlier attempt")
        self._tell(self._selection.of(said(files)))

    def _tell(self, lines: Iterable[Said]) -> None:
        iterator = iter(lines)
        while batch := list(islice(iterator, BATCH)):
            self._audience.hear(batch)
        self._audience.end()

    async def show_live(self, *, follow: bool) -> None:
        """Shows the lines of the pods."""
        job, namespace = self.run.name if self.run else self._name, self._namespace
        pods = await self._pods(job)
        if pods is None:
            if self.run is None:
                raise await self._not_there()
            self.show_kept(self.run)
            return
        lines = LogLines(
            self._target,
            namespace,
            self._audience,
            follow=follow,
            selection=self._selection,
            kept=self._home.of(self.run.id) if self.run and self._target.is_local else None,
        )
        async with lines:
            lines.follow(pods)
            if lines.is_empty and not follow:
                missing = (
                    "has no earlier attempt that the cluster knows"
                    if self._selection.previous
                    else (f"has no lines; see why with: trainwright get trainjobs {job}{self._target.flag()}")
                )
                raise Failure(f"TrainJob {job} {missing}")
            if follow:
                await _until_the_end(JobView(self._target, namespace, job), lines)
            await lines.drain(DRAIN_SECONDS if follow else None)

    async def _not_there(self) -> Failure:
        async with self._target.client() as client:
            failure = await no_such_job(client, self._name, self._namespace)
        return Failure(failure.message.replace("no TrainJob named", "no TrainJob and no run named", 1))

    async def _pods(self, job: str) -> list[Json] | None:
        """The job's pods; None when there is no such job."""
        async with self._target.client() as client:
            try:
                await client.get(TRAIN_JOBS, job, self._namespace)
            except NotFound:
                return None
            return (await client.list(PODS, self._namespace, label_selector=f"{JOBSET_NAME}={job}")).items or []


async def _until_the_end(view: JobView, lines: LogLines) -> None:
    seen = False
    async with view:
        while True:
            await view.changed()
            seen = seen or view.job is not None
            if view.phase is not None:
                lines.follow(view.pods)
                if view.phase.is_final:
                    return
            elif seen and view.connected:
                return
