"""The TrainJob that a user means by its name or by the id of one of its runs."""

from __future__ import annotations

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.runid import is_run_id
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.nearness import near
from trainwright.cli.failure import Failure
from trainwright.client.client import Client
from trainwright.client.errors import ClientError
from trainwright.runs import BrokenRecord, RunsHome
from trainwright.schema.jsonobject import Json


def job_named(target: Target, name_or_id: str, namespace: str) -> str:
    """The TrainJob's name. An id of an earlier run is refused: its TrainJob is another one now."""
    home = RunsHome(target.directory.path)
    try:
        run = home.read(name_or_id) if is_run_id(name_or_id) else None
        if run is None or run.name == name_or_id:
            return name_or_id
        newest = home.find(run.name, namespace)
    except BrokenRecord:
        return name_or_id
    if newest is not None and newest.id != run.id:
        raise Failure(f"run {run.id} is over: TrainJob {run.name} is that of run {newest.id} now")
    return run.name


async def no_such_job(client: Client, name: str, namespace: str) -> Failure:
    """The failure for a TrainJob that is not there, with the one that may have been meant."""
    try:
        jobs = (await client.list(TRAIN_JOBS)).items or []
    except ClientError:  # a user who may see one namespace only
        try:
            jobs = (await client.list(TRAIN_JOBS, namespace)).items or []
        except ClientError:
            jobs = []
    return Failure(f'there is no TrainJob named "{name}" in namespace {namespace}{_meant(name, namespace, jobs)}')


def _meant(name: str, namespace: str, jobs: list[Json]) -> str:
    here = [job["metadata"]["name"] for job in jobs if job["metadata"]["namespace"] == namespace]
    elsewhere = [job["metadata"]["namespace"] for job in jobs if job["metadata"]["name"] == name]
    return near(name, here) or (f"; there is one in namespace {elsewhere[0]}: -n {elsewhere[0]}" if elsewhere else "")
