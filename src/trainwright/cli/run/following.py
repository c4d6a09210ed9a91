"""Follows one TrainJob from its creation to its end: its phases, its ranks' output, and how it ended.

In: a TrainJob that has been created. Out: what a person sees of it, and the exit code of the command. What Ctrl-C and a
closed terminal mean is in `interruption`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import msgspec

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.stopwatch import Stopwatch
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.delete import until_gone
from trainwright.cli.jobview.progress import ProgressBar, ProgressLines
from trainwright.cli.jobview.view import JobView
from trainwright.cli.logs.audience import People
from trainwright.cli.logs.lines import LogLines
from trainwright.cli.run.attempts import Attempts
from trainwright.cli.run.interruption import Interruption, Wish
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.pipeline.reasons.cause import FIRST
from trainwright.pipeline.reasons.evidence import Evidence, ended
from trainwright.pipeline.reasons.failures import of_container
from trainwright.pipeline.reasons.ranks import without_marks
from trainwright.pipeline.reasons.sentences import Phase, failed_containers, label_of, name_of
from trainwright.runs import Record, RunsHome
from trainwright.runs.logs import LogWriter
from trainwright.runs.record import Asked
from trainwright.schema.jsonobject import Json

DRAIN_SECONDS = 5.0
"""How long the end of a job waits for lines while none come. A container may outlive its job, and say nothing."""

SUSPEND_SECONDS = 60.0
INTERRUPTED = 130
HUNG_UP = 129


class HungUp(Exception):
    """The terminal was closed while the job ran."""


class Following:
    """The following of one TrainJob, in a view of it that is open, and as `interruption` says.

    `client` is the one that created the TrainJob; `run` is the id of the run's record, if it has one.
    """

    def __init__(
        self,
        target: Target,
        namespace: str,
        name: str,
        terminal: Terminal,
        watch: Stopwatch,
        *,
        view: JobView,
        interruption: Interruption,
        client: Client,
        run: str | None = None,
    ) -> None:
        self._target = target
        self._namespace = namespace
        self._name = name
        self._terminal = terminal
        self._watch = watch
        self._run = run
        self._home = RunsHome(target.directory.path)
        self._view = view
        self._interruption = interruption
        self._client = client
        self._progress, self._bar, self._attempts = ProgressLines(), ProgressBar(name), Attempts()
        self._shown: Phase | None = None
        self._is_away = self._has_started = False
        self.leaves_it_running = False
        """Whether the job runs on when the command ends, so that its cluster must stay."""

    async def to_the_end(self) -> int:
        """Shows the job until it has ended or the user stops it. Returns the command's exit code."""
        has_home = self._run is not None and self._home.of(self._run).path.is_dir()
        try:
            with self._home.followed(self._run) if self._run and has_home else nullcontext():
                return await self._follow()
        except HungUp:
            self.leaves_it_running = True
            return HUNG_UP
        finally:
            self._terminal.foot(None)

    async def _follow(self) -> int:
        with self._kept_lines() as lines:
            return await self._follow_with(lines)

    @contextmanager
    def _kept_lines(self) -> Iterator[LogLines]:
        """The lines of the run. Those of another cluster are written into the run's directory as they come."""
        audience = People(self._terminal)
        if self._run is None or not self._home.of(self._run).path.is_dir():
            yield LogLines(self._target, self._namespace, audience, client=self._client)
        elif self._target.is_local:
            kept = self._home.of(self._run)
            yield LogLines(self._target, self._namespace, audience, client=self._client, kept=kept)
        else:
            with LogWriter(self._home.of(self._run)) as writer:
                yield LogLines(self._target, self._namespace, audience, client=self._client, writer=writer)

    async def _follow_with(self, lines: LogLines) -> int:
        view = self._view
        async with lines:
            while (phase := await self._phases(view, lines)) is None:
                code = await self._carry_out(await self._wish(view, lines), view)
                if code is not None:
                    return code
                lines.go_on()
            unread = await lines.drain(DRAIN_SECONDS)
        self._watch.lap("training")
        if unread:
            self._terminal.warn(
                f"the last lines of {', '.join(unread)} could not be read; see them with: {self._command('logs')}"
            )
        self._terminal.phase(self._name, phase.name, phase.sentence)
        if phase.name != "Complete":
            self._show_failures(view.pods, lines)
        else:
            for sentence in lines.comforts:
                self._terminal.say(sentence)
        self._say_where_things_are()
        return 0 if phase.name == "Complete" else 1

    async def _phases(self, view: JobView, lines: LogLines) -> Phase | None:
        """Shows phases and progress. Returns the last phase, or None when the user interrupted."""
        while not self._interruption.is_pending:
            await self._news(view)
            if view.is_away is not self._is_away:
                self._is_away = view.is_away
                self._terminal.say(self._away() if self._is_away else "the control plane is back")
            phase = view.phase
            if phase is None:
                if self._shown and view.connected:
                    await lines.drain(DRAIN_SECONDS)
                    raise Failure(f"TrainJob {self._name} has been deleted by somebody else")
                continue
            lines.follow(view.pods)
            if restart := self._attempts.restarted(view.jobset, view.pods):
                self._terminal.phase(self._name, "Restarting", restart)
            if phase.name == "Running" and not self._has_started:
                self._watch.lap("starting pods")
                self._has_started = True
            if phase != self._shown and not phase.is_final:
                self._terminal.phase(self._name, *phase)
                self._shown = phase
            if view.job:
                self._show_progress(view.job, is_last=phase.is_final)
            if phase.is_final:
                return phase
        return None

    def _show_progress(self, job: Json, *, is_last: bool) -> None:
        """Shows a bar on a terminal, and lines now and then elsewhere. The last report stays as a line."""
        now = time.monotonic()
        if self._terminal.is_live and not is_last:
            self._terminal.foot(self._bar.row(job, now))
            return
        self._terminal.foot(None)
        if line := self._progress.line(job, now, last=is_last):
            self._terminal.phase(self._name, "Progress", line)

    def _away(self) -> str:
        if not self._target.is_local:
            return "the API server does not answer; training continues"
        return (
            "the control plane does not answer; training continues. Start it with: trainwright up --detach"
            f"{self._target.directory.flag()}"
        )

    async def _news(self, view: JobView) -> None:
        """Returns when there may be something new to show: the view changed, or a line was held back long enough."""
        seconds = None
        if view.job and not self._terminal.is_live:
            seconds = self._progress.wait(view.job, time.monotonic())
        try:
            async with asyncio.timeout(seconds):
                await view.changed()
        except TimeoutError:
            pass

    # When the user interrupts

    async def _wish(self, view: JobView, lines: LogLines) -> Wish:
        """What the user wants. A job that ends during the question answers it."""
        if self._interruption.wish is not None:
            return self._interruption.wish
        lines.pause()
        asking = asyncio.create_task(self._interruption.ask(self._name))
        ending = asyncio.create_task(self._final_phase(view))
        try:
            await asyncio.wait([asking, ending], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        finally:
            asking.cancel()
            ending.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)
        self._terminal.say("\nit has ended meanwhile")
        self._interruption.must_ask = False
        return Wish.CONTINUE

    async def _final_phase(self, view: JobView) -> None:
        while not (view.phase and view.phase.is_final):
            await view.changed()

    async def _carry_out(self, wish: Wish, view: JobView) -> int | None:
        """Does what the user wants. Returns the command's exit code, or None when it goes on."""
        match wish:
            case Wish.CONTINUE:
                self._view.announce()
                return None
            case Wish.HANG_UP:
                raise HungUp
            case Wish.LEAVE:
                return self._leave()
            case Wish.SUSPEND:
                return await self._suspend(view)
            case Wish.DELETE:
                return await self._delete()

    def _leave(self) -> int:
        self._watch.lap("training")
        self.leaves_it_running = True
        self._terminal.say(
            f"TrainJob {self._name} runs on. Follow it with: {self._command('logs -f')}, "
            f"delete it with: {self._command('delete')}"
        )
        return 0

    async def _suspend(self, view: JobView) -> int:
        self._watch.lap("training")
        self._terminal.say(f"suspending TrainJob {self._name} and waiting for its processes to end")
        self._note("Ctrl-C")
        async with self._target.client() as client:
            await client.patch(TRAIN_JOBS, {"spec": {"suspend": True}}, name=self._name, namespace=self._namespace)
        try:
            async with asyncio.timeout(SUSPEND_SECONDS):
                while view.pods or not view.connected:
                    await view.changed()
        except TimeoutError:
            self._terminal.warn(f"its processes have not ended after {SUSPEND_SECONDS:.0f} s")
        self._terminal.say(f"TrainJob {self._name} is suspended; continue it with: {self._command('resume')}")
        return INTERRUPTED

    async def _delete(self) -> int:
        self._watch.lap("training")
        self._terminal.say(
            f"stopping: deleting TrainJob {self._name} and waiting for its processes to end (Ctrl-C: do not wait)"
        )
        self._note("Ctrl-C")
        async with self._target.client() as client:
            try:
                await client.delete(TRAIN_JOBS, self._name, self._namespace)
            except NotFound:
                pass  # somebody else was faster
        deleting = asyncio.create_task(until_gone(self._target, self._name, self._namespace))
        waiting = asyncio.create_task(self._interruption.until_impatient())
        try:
            await asyncio.wait([deleting, waiting], return_when=asyncio.FIRST_COMPLETED)
            if deleting.done():
                deleting.result()
                self._terminal.say(f"TrainJob {self._name} deleted; nothing of it is left")
            else:
                self._terminal.say(f"TrainJob {self._name} is being deleted; its processes may not have ended yet")
        finally:
            deleting.cancel()
            waiting.cancel()
            await asyncio.gather(deleting, waiting, return_exceptions=True)
        return INTERRUPTED

    def _note(self, by: str) -> None:
        """Notes in the run's record who asked it to end."""
        if self._run is not None:
            asked = Asked(by=by, time=rfc3339(time.time()))

            def change(record: Record) -> Record:
                return msgspec.structs.replace(record, asked=asked)

            self._home.update(self._run, change)

    def _command(self, words: str) -> str:
        return f"trainwright {words} {self._name}{self._target.flag()}"

    # How it ended

    def _say_where_things_are(self) -> None:
        """Says where outputs and lines are, once the job has ended."""
        if self._run is None or not self._home.of(self._run).path.is_dir():
            return
        output = self._home.of(self._run).output
        if self._target.is_local and output.is_dir() and any(output.iterdir()):
            self._terminal.say(f"outputs: {output}")
        self._terminal.say(f"lines of all ranks: trainwright logs {self._run}{self._target.flag()}")

    def _show_failures(self, pods: list[Json], lines: LogLines) -> None:
        """Shows of each container that failed the lines that say why, or else its last ones."""
        told = {(name_of(one.pod), one.container): of_container(one) for one in ended(Evidence(job={}, pods=pods))}
        for pod, container, how in failed_containers(pods)[:3]:
            name = name_of(pod)
            found = told.get((name, container))
            explains = found is not None and found.weight == FIRST and found.details
            self._terminal.say(
                f"\n{label_of(pod)} (pod {name}, container {container}) {how}; "
                f"{'what it said of it' if explains else 'its last lines'}:"
            )
            for line in found.details if found is not None and explains else lines.tail(name, container):
                self._terminal.say(f"    {without_marks(line)}")
