"""`trainwright suspend` and `resume`: end the pods of TrainJobs and keep the jobs; start them again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trainwright.api.resources import TRAIN_JOBS
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.chosen import Choice
from trainwright.cli.jobview.naming import no_such_job
from trainwright.cli.jobview.view import JobView
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.client.requests import MERGE_PATCH
from trainwright.pipeline.reasons.sentences import condition, name_of, phase_name

FIELD_MANAGER = "trainwright-run"
GONE_SECONDS = 60.0


def suspend(
    words: Sequence[str], files: Sequence[str], selector: str | None, quiet: bool, target: Target, namespace: str
) -> int:
    choice = Choice("suspend", target, namespace, words=words, files=files, selector=selector)

    async def work() -> list[str]:
        async with target.client() as client:
            names = await choice.names(client)
            for name in names:
                await set_suspended(client, name, namespace, True)
        await asyncio.gather(*(pods_gone(target, name, namespace) for name in names))
        return names

    for name in _done(choice, carry_out(work()), quiet=quiet):
        print(
            f"TrainJob {name} is suspended; its processes have ended. Go on with: trainwright resume"
            f" {name}{target.flag()}"
        )
    return 0


def resume(
    words: Sequence[str], files: Sequence[str], selector: str | None, quiet: bool, target: Target, namespace: str
) -> int:
    choice = Choice("resume", target, namespace, words=words, files=files, selector=selector)

    async def work() -> list[str]:
        async with target.client() as client:
            names = await choice.names(client)
            for name in names:
                await set_suspended(client, name, namespace, False)
        return names

    for name in _done(choice, carry_out(work()), quiet=quiet):
        print(f"TrainJob {name} goes on; follow it with: trainwright logs -f {name}{target.flag()}")
    return 0


def _done(choice: Choice, names: list[str], *, quiet: bool) -> list[str]:
    """The jobs to speak of."""
    if not names and not quiet:
        print(choice.none_found)
    return [] if quiet else names


async def set_suspended(client: Client, name: str, namespace: str, suspended: bool) -> None:
    """Changes `spec.suspend`. Fails if there is no such job, or if it has ended."""
    try:
        job = await client.get(TRAIN_JOBS, name, namespace)
    except NotFound:
        raise await no_such_job(client, name, namespace) from None
    for end in ("Complete", "Failed"):
        if condition(job, end):
            raise Failure(f"TrainJob {name} has ended ({end}); it can be neither suspended nor resumed")
    await client.patch(
        TRAIN_JOBS,
        {"metadata": {"uid": job["metadata"]["uid"]}, "spec": {"suspend": suspended}},
        name=name,
        namespace=namespace,
        content_type=MERGE_PATCH,
        field_manager=FIELD_MANAGER,
    )


async def pods_gone(target: Target, name: str, namespace: str) -> None:
    """Returns when the job says that it is suspended and none of its pods runs any more."""
    async with JobView(target, namespace, name) as view:
        try:
            async with asyncio.timeout(GONE_SECONDS):
                while not (view.connected and view.job and condition(view.job, "Suspended")) or _active(view):
                    await view.changed()
        except TimeoutError:
            left = ", ".join(_active(view)) or "none"
            raise Failure(
                f"TrainJob {name} was asked to suspend and has not done so after {GONE_SECONDS:.0f} s; pods that still"
                f" run: {left}"
            ) from None


def _active(view: JobView) -> list[str]:
    return [name_of(pod) for pod in view.pods if phase_name(pod) in ("Pending", "Running")]
