"""The making of a run: prepares its objects, records it, creates them with the TrainJob last, and follows it.

What stands in the way of the new TrainJob, a finished one of the same name, goes only when nothing can be refused any
more. A run that nobody is to follow is accepted while its cluster is away, too: it goes into the outbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Protocol

from trainwright.api.phases import condition
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.runid import is_run_id
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.stopwatch import Stopwatch
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.delete import delete_job
from trainwright.cli.jobview.view import JobView
from trainwright.cli.launch.choice import Choice
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.program import Program
from trainwright.cli.launch.submission import Submission, read_submission
from trainwright.cli.run.interruption import Interruption
from trainwright.cli.run.recording import Recording, discreet
from trainwright.client.client import Client
from trainwright.client.errors import (
    ClientError,
    NotFound,
    ServerError,
    TooManyRequests,
    UnknownOutcome,
    Unreachable,
)
from trainwright.runs.outbox import Outbox
from trainwright.schema.jsonobject import Json


class Source(Protocol):
    """Where a run comes from."""

    words: str
    """What the user typed, for the record."""
    namespace: str

    async def prepare(self, client: Client | None, seen: Sequence[Json] | None = None) -> Prepared:
        """The run's objects; `seen` are the runtimes of a cluster that is away."""


class FromFile:
    """A file with a TrainJob."""

    def __init__(self, file: str, namespace: str) -> None:
        self.words, self.namespace = file, namespace
        self._submission = read_submission(file, namespace)

    async def prepare(self, client: Client | None, seen: Sequence[Json] | None = None) -> Prepared:
        return Prepared(self._submission)


class FromProgram:
    """A program of the user."""

    def __init__(self, program: Program, choice: Choice, target: Target, namespace: str) -> None:
        self.words, self.namespace = program.source, namespace
        self._program, self._choice = program, choice
        self._local = target.is_local

    async def prepare(self, client: Client | None, seen: Sequence[Json] | None = None) -> Prepared:
        from trainwright.cli.launch.preparation import prepare  # which a file does not need

        return await prepare(
            self._choice, self._program, local=self._local, namespace=self.namespace, client=client, seen=seen
        )


class Making:
    """The making of one run."""

    def __init__(self, target: Target, source: Source, watch: Stopwatch, *, quiet: bool = False) -> None:
        self._target = target
        self._source = source
        self._records = Recording(target)
        self._terminal = Terminal(quiet=quiet)
        self._watch = watch
        self._prepared: Prepared | None = None
        self.name = ""
        """The TrainJob's, once it is known."""
        self.runs_on = False
        """Whether the job runs when the command ends, so that its cluster must stay."""

    def say(self, sentence: str) -> None:
        self._terminal.say(sentence)

    async def show(self) -> int:
        """Prints what would be created, and creates nothing."""
        from trainwright.cli.console.output import to_yaml

        up = not self._target.is_local or self._target.directory.running_pid() is not None
        async with self._target.client() if up else nullcontext() as client:
            prepared = await self._source.prepare(client)
        print(to_yaml([discreet(item) for item in prepared.submission.documents]), end="")
        return 0

    async def go(self, *, detach: bool) -> int:
        if not detach:
            return await self._go(detach=False)
        from trainwright.cli.run.lastseen import remember_runtimes, target_name

        silent = await remember_runtimes(self._target, self._source.namespace)
        if silent or Outbox(self._target.directory.path).waiting(target_name(self._target)):
            return await self._hand_over()  # in order: what waits already comes first
        try:
            return await self._go(detach=True)
        except (ClientError, Failure) as error:
            if not _is_outage(error):
                raise
            return await self._hand_over()

    async def _hand_over(self) -> int:
        """Gives the run to the outbox, as far as it is prepared: an earlier try may have made some of it already."""
        from trainwright.cli.run.handingover import hand_over, said_of_waiting
        from trainwright.cli.run.lastseen import last_seen

        if self._prepared is None:
            self._prepared = await self._source.prepare(None, last_seen(self._target))
        prepared = self._prepared
        self.name = prepared.submission.name
        result = await hand_over(prepared, self._target, self._source.words, replaces=True)
        for entry, why in result.refused:
            if entry.run == prepared.submission.run:
                raise Failure(why)
        self.runs_on = True
        if result.why_waiting:
            self._terminal.phase(self.name, "Kept", said_of_waiting(result, self._target).removeprefix("kept: "))
        else:
            self._terminal.phase(self.name, "Created", f"in namespace {prepared.submission.namespace}")
            self._say_how_to_go_on(self.name)
        return 0

    async def _go(self, *, detach: bool) -> int:
        async with self._target.client(self._terminal.warn) as client:
            prepared = self._prepared = await self._source.prepare(client)
            submission = prepared.submission
            name = self.name = submission.name
            view = JobView(self._target, submission.namespace, name)
            with Interruption(self._terminal, view.announce) as interruption:
                old = await self._predecessor(client, name, submission.namespace)
                async with view if old or not detach else nullcontext():
                    created = await self._submit(client, prepared, old, view, keeps=detach)
                    self._terminal.phase(name, "Created", f"in namespace {submission.namespace}")
                    if detach:
                        self._records.created(submission, created)
                        self.runs_on = True
                        self._say_how_to_go_on(name)
                        return 0
                    code = await self._follow(submission, created, view, interruption, client)
        await self._records.end(submission.run, name, submission.namespace)
        return code

    async def _follow(
        self, submission: Submission, created: Json, view: JobView, interruption: Interruption, client: Client
    ) -> int:
        from trainwright.cli.run.following import Following  # while the cluster is busy with the job's pods

        following = Following(
            self._target,
            submission.namespace,
            submission.name,
            self._terminal,
            self._watch,
            view=view,
            interruption=interruption,
            client=client,
            run=submission.run,
        )
        recording = asyncio.create_task(asyncio.to_thread(self._records.created, submission, created))
        try:
            return await following.to_the_end()
        finally:
            self.runs_on = following.leaves_it_running
            await recording

    async def _submit(
        self, client: Client, prepared: Prepared, old: Json | None, view: JobView, *, keeps: bool
    ) -> Json:
        """Creates the run's record, then its objects. What was there before goes last, when nothing can be refused.
        With `keeps` an outage ends nothing: the run will wait in the outbox.
        """
        submission = prepared.submission
        for note in prepared.notes:
            self._terminal.say(note)
        await submission.check_runtime(client)
        await submission.apply_companions(client)
        await submission.create_belongings(client)
        try:
            if old is not None or not is_run_id(submission.run):
                await submission.check(client)  # a name that no run can have is one that the server refuses
            self._records.begin(prepared, source=self._source.words)
            if old is not None:
                self._terminal.say(f"this replaces TrainJob {submission.name}, which has ended; its record stays")
                await delete_job(self._target, client, submission.name, submission.namespace, view=view)
            created = await submission.create(client)
        except Failure as failure:
            if keeps and _is_outage(failure):
                raise
            await submission.remove_belongings(client)
            self._records.refused(submission.run, failure.message)
            raise
        except ClientError as error:
            if keeps and _is_outage(error):
                raise
            self._records.lost(submission.run, f"the TrainJob may not have been created: {error}")
            raise
        for fault in await submission.own_belongings(client, created):
            self._terminal.warn(fault)
        return created

    async def _predecessor(self, client: Client, name: str, namespace: str) -> Json | None:
        """A finished job of the same name. Fails if one is still running."""
        try:
            old = await client.get(TRAIN_JOBS, name, namespace)
        except NotFound:
            return None
        if not (condition(old, "Complete") or condition(old, "Failed")):
            flag = self._target.flag()
            raise Failure(
                f"TrainJob {name} is still running; follow it with: trainwright logs -f {name}{flag}, or delete it"
                f" with: trainwright delete {name}{flag}"
            )
        return old

    def _say_how_to_go_on(self, name: str) -> None:
        flag = self._target.flag()
        self._terminal.say(f"it runs in the background; follow it with: trainwright logs -f {name}{flag}")
        if self._target.is_local:
            self._terminal.say(
                f"the local cluster stays up; stop it with: trainwright down{self._target.directory.flag()}"
            )


def _is_outage(error: Exception) -> bool:
    """Whether nobody answered, or with a word that says nothing about the run."""
    cause = error.__cause__ if isinstance(error, Failure) else error
    return isinstance(cause, (Unreachable, UnknownOutcome, ServerError, TooManyRequests))
