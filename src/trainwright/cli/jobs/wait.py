"""`trainwright wait`: returns when TrainJobs have ended, or are as `--for` wants them; its exit code says which."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.goals import ENDED, Goal, goal_of
from trainwright.cli.jobview.kinds import job_names
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.cli.jobview.view import JobView

TIMED_OUT = 124


def wait(
    words: Sequence[str], goal: str | None, timeout: float | None, quiet: bool, target: Target, namespace: str
) -> int:
    """0 when all jobs are as wanted, 1 when one failed, is gone or cannot become so, 124 after the timeout."""
    names = [job_named(target, name, namespace) for name in job_names(words)]
    if not names:
        raise Failure("which TrainJob? Write: trainwright wait NAME…", 2)
    wanted = ENDED if goal is None else goal_of(goal)
    return carry_out(_wait_for_all(target, names, namespace, wanted, timeout, quiet=quiet))


async def _wait_for_all(
    target: Target, names: Sequence[str], namespace: str, goal: Goal, seconds: float | None, *, quiet: bool
) -> int:
    async with target.client():  # fails at once where there is no cluster
        pass
    waits = [_Wait(target, name, namespace, goal, quiet=quiet) for name in names]
    tasks = [asyncio.create_task(wait.until_it_is_so()) for wait in waits]
    try:
        async with asyncio.timeout(seconds):
            codes = await asyncio.gather(*tasks)
    except TimeoutError:
        late = [wait for wait, task in zip(waits, tasks, strict=True) if task.cancelled() or not task.done()]
        lines = [f"TrainJob {wait.name} {goal.lack} after {seconds:g} s; it is {wait.state}" for wait in late]
        raise Failure("\n".join(lines), TIMED_OUT) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return max(codes)


class _Wait:
    def __init__(self, target: Target, name: str, namespace: str, goal: Goal, *, quiet: bool) -> None:
        self._target, self.name, self.namespace, self._goal = target, name, namespace, goal
        self._quiet = quiet
        self._seen = False
        self.state = "not to be seen: the API server does not answer"

    async def until_it_is_so(self) -> int:
        async with JobView(self._target, self.namespace, self.name) as view:
            while True:
                await view.changed()
                if not view.connected:
                    continue
                job, phase = view.job, view.phase
                if job is None or phase is None:
                    if self._goal.is_absence and (self._seen or view.is_empty):
                        if view.is_empty:
                            return self._say("Deleted", "nothing of it is left", 0)
                        continue
                    if self._goal.waits_for_creation and not self._seen:
                        self.state = "not there"
                        continue
                    raise await self._gone()
                self._seen = True
                self.state = phase.name
                if self._goal.is_reached(job, phase):
                    return self._say(phase.name, phase.sentence, self._goal.code(phase))
                if phase.is_final and not self._goal.may_follow_the_end:
                    raise Failure(
                        f"TrainJob {self.name} has ended ({phase.name}: {phase.sentence}), so it will never be"
                        f" {self._goal.what}"
                    )

    def _say(self, state: str, sentence: str, code: int) -> int:
        if not self._quiet:
            Terminal().phase(self.name, state, sentence)
        return code

    async def _gone(self) -> Failure:
        if self._seen:
            return Failure(f"TrainJob {self.name} has been deleted")
        async with self._target.client() as client:
            return await no_such_job(client, self.name, self.namespace)
