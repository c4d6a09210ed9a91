"""`trainwright down`: stops the local cluster, after asking what becomes of the jobs that run.

Jobs that run are those with a pod that is not over. They are suspended, and go on after a resume; or ended, which
deletes their TrainJobs. Their records say that it was `down`. Where nobody can be asked and no flag says what to do,
nothing is stopped.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import NamedTuple

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.api.wellknown import RUN_TRAINJOB
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.machine.up import stop
from trainwright.client.client import Client
from trainwright.client.errors import ClientError, Conflict, NotFound
from trainwright.client.requests import DeleteOptions
from trainwright.runs import Asked, RunsHome

BY = "trainwright down"
END_SECONDS = 15.0
"""How long jobs that were told to end may take; whatever is left then is ended with the cluster."""
POLL_SECONDS = 0.1


class Job(NamedTuple):
    """A TrainJob that has a pod which is not over."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return self.name if self.namespace == "default" else f"{self.namespace}/{self.name}"


def down(directory: Path, suspend: bool, force: bool) -> int:
    cluster = ClusterDirectory(directory)
    if cluster.running_pid() is None:
        print(f"No local cluster is running on {cluster.path}.")
        return 0
    if suspend and force:
        raise Failure("--suspend and --force exclude each other: choose one", 2)
    jobs = running_jobs(cluster)
    if jobs is None and not force:
        raise Failure(
            "the control plane does not answer, so nobody knows which jobs run; stop it anyway with: "
            f"trainwright down --force{cluster.flag()}"
        )
    if jobs:
        what = "suspend" if suspend else "end" if force else _ask(cluster, jobs)
        if what == "cancel":
            print("Nothing is stopped.")
            return 1
        carry_out(_suspend(cluster, jobs) if what == "suspend" else _end(cluster, jobs))
        for job in jobs:
            print(f"TrainJob {job} {_DONE[what]}")
    stop(cluster)
    print("The local cluster is down.")
    return 0


_DONE = {
    "suspend": "suspended; it goes on after: trainwright up --detach, trainwright resume NAME",
    "end": "ended; its logs, outputs and record stay: trainwright runs",
}


def running_jobs(cluster: ClusterDirectory) -> list[Job] | None:
    """The jobs that run; None when the control plane does not answer."""
    if cluster.running_pid() in (0, None):  # it ends already
        return []
    try:
        return carry_out(_list(cluster))
    except Failure as failure:
        if isinstance(failure.__cause__, ClientError):
            return None
        raise


async def _list(cluster: ClusterDirectory) -> list[Job]:
    async with Target(cluster).client() as client:
        return await _jobs_with_pods(client)


async def _jobs_with_pods(client: Client) -> list[Job]:
    jobs = {}
    for pod in (await client.list(PODS)).items or ():
        name, _, uid = ((pod["metadata"].get("annotations") or {}).get(RUN_TRAINJOB) or "").partition("/")
        if name and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            jobs[uid] = Job(pod["metadata"]["namespace"], name, uid)
    return sorted(jobs.values())


def _ask(cluster: ClusterDirectory, jobs: list[Job]) -> str:
    names = ", ".join(map(str, jobs))
    count = "1 TrainJob runs" if len(jobs) == 1 else f"{len(jobs)} TrainJobs run"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(
            f"{count}: {names}. Suspend with: trainwright down --suspend{cluster.flag()}, "
            f"or end with: trainwright down --force{cluster.flag()}"
        )
    print(
        f"{count}: {names}\n"
        "  s  suspend: training stops now and starts again after `trainwright resume`\n"
        "  e  end: the TrainJobs are deleted; their logs, outputs and records stay\n"
        "  c  cancel: nothing is stopped"
    )
    while True:
        try:
            answer = input("What now? [s/e/c] ").strip().lower()
        except EOFError:
            return "cancel"
        for word in ("suspend", "end", "cancel"):
            if answer and word.startswith(answer):
                return word
        if not answer:
            return "cancel"


async def _suspend(cluster: ClusterDirectory, jobs: list[Job]) -> None:
    async with Target(cluster).client() as client:
        for job in jobs:
            _note(cluster, job)
            patch = {"metadata": {"uid": job.uid}, "spec": {"suspend": True}}
            try:
                await client.patch(TRAIN_JOBS, patch, name=job.name, namespace=job.namespace)
            except (NotFound, Conflict):
                continue  # it has gone meanwhile
        await _until_over(client, jobs)


async def _end(cluster: ClusterDirectory, jobs: list[Job]) -> None:
    async with Target(cluster).client() as client:
        for job in jobs:
            _note(cluster, job)
            try:
                await client.delete(TRAIN_JOBS, job.name, job.namespace, DeleteOptions(uid=job.uid))
            except (NotFound, Conflict):
                continue
        await _until_over(client, jobs)


def _note(cluster: ClusterDirectory, job: Job) -> None:
    asked = Asked(by=BY, time=rfc3339(time.time()))
    RunsHome(cluster.path).ask_trainjob(job.namespace, job.name, asked)


async def _until_over(client: Client, jobs: list[Job]) -> None:
    """Waits until the jobs have no running pods, or have had the time for that."""
    try:
        async with asyncio.timeout(END_SECONDS):
            while set(await _jobs_with_pods(client)) & set(jobs):  # noqa: ASYNC110 - many pods, one look
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        pass
