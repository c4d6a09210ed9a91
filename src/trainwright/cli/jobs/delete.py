"""`trainwright delete`: deletes TrainJobs and returns when their JobSets and pods are deleted too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import no_such_job
from trainwright.cli.jobview.view import JobView
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.runs import Asked, RunsHome

if TYPE_CHECKING:
    from trainwright.cli.jobs.chosen import Choice

GONE_SECONDS = 60.0


def delete(
    words: Sequence[str],
    files: Sequence[str],
    selector: str | None,
    every: bool,
    yes: bool,
    ignore_not_found: bool,
    quiet: bool,
    target: Target,
    namespace: str,
) -> int:
    from trainwright.cli.jobs.chosen import Choice

    choice = Choice("delete", target, namespace, words=words, files=files, selector=selector, every=every)
    return carry_out(_delete(choice, target, namespace, yes=yes, lenient=ignore_not_found, quiet=quiet))


async def _delete(choice: Choice, target: Target, namespace: str, *, yes: bool, lenient: bool, quiet: bool) -> int:
    def say(sentence: str) -> None:
        if not quiet:
            print(sentence, flush=True)

    missing = []
    async with target.client() as client:
        names = await choice.names(client)
        if not names:
            say(choice.none_found)
        if not choice.is_confirmed(names, yes=yes):
            say("Nothing is deleted.")
            return 1
        gone = await asyncio.gather(
            *(delete_job(target, client, name, namespace) for name in names), return_exceptions=True
        )
        for name, error in zip(names, gone, strict=True):
            if isinstance(error, NotFound):
                missing.append(name)
            elif isinstance(error, BaseException):
                raise error
            else:
                say(f"TrainJob {name} deleted; nothing of it is left")
        if missing and not lenient:
            raise await no_such_job(client, missing[0], namespace)
    return 0


async def delete_job(
    target: Target,
    client: Client,
    name: str,
    namespace: str,
    *,
    by: str = "trainwright delete",
    view: JobView | None = None,
) -> None:
    """Deletes the job; garbage collection deletes its JobSet and pods. Returns when they are deleted.

    The record of a run that this ends says `by` whom. A caller that has a `view` of the job anyway lends it.
    """
    if target.is_local:
        asked = Asked(by=by, time=rfc3339(time.time()))
        RunsHome(target.directory.path).ask_trainjob(namespace, name, asked)
    await client.delete(TRAIN_JOBS, name, namespace)
    if view is not None:
        await _until_empty(view, name)
    else:
        await until_gone(target, name, namespace)


async def until_gone(target: Target, name: str, namespace: str) -> None:
    """Returns when a deleted job, its JobSet and its pods are gone."""
    async with JobView(target, namespace, name) as view:
        await _until_empty(view, name)


async def _until_empty(view: JobView, name: str) -> None:
    try:
        async with asyncio.timeout(GONE_SECONDS):
            while not view.is_empty:
                await view.changed()
    except TimeoutError:
        left = [pod["metadata"]["name"] for pod in view.pods]
        raise Failure(f"TrainJob {name} is deleted, but these pods still run: {', '.join(left) or 'none'}") from None
