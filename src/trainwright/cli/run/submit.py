"""`trainwright submit`: hands a TrainJob over, whether its cluster answers or not; and `trainwright.submit` in Python.

The TrainJob is judged by the rules of the API server here, with the runtimes last seen, and kept on disk. If the
cluster answers it is created at once; if not, a process in the background delivers it when the cluster is back. So does
every later `trainwright submit`, also one without a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.runid import fresh_id
from trainwright.api.wellknown import RUN
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target, choose
from trainwright.cli.failure import Failure
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.launch.submission import Submission, read_submission
from trainwright.cli.run.delivering import Result, deliver_all
from trainwright.cli.run.handingover import hand_over, said_of_waiting
from trainwright.cli.run.lastseen import remember_runtimes
from trainwright.schema.jsonobject import Json


def submit(file: str | None, quiet: bool, target: Target, namespace: str) -> int:
    if file is None:
        result = carry_out(_deliver_what_waits(target, namespace))
        return _report(result, target, quiet=quiet, run="")
    submission = read_submission(file, namespace)
    result = carry_out(hand_over(Prepared(submission), target, file))
    return _report(result, target, quiet=quiet, run=submission.run)


def submit_trainjob(
    trainjob: Json,
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
    directory: str | None = None,
) -> str:
    """Submits a TrainJob, as `trainwright submit` does. Returns the id of its run.

    Raises `trainwright.cli.failure.Failure`, whose text says why it is refused.
    """
    target = choose(
        kubeconfig=Path(kubeconfig) if kubeconfig else None,
        context=context,
        local=False,
        directory=Path(directory) if directory else None,
    )
    job: Json = msgspec.json.decode(msgspec.json.encode(trainjob))
    job = {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, **job}
    metadata = job.setdefault("metadata", {})
    if not metadata.get("name"):
        raise Failure("the TrainJob has no metadata.name")
    metadata["annotations"] = {**(metadata.get("annotations") or {}), RUN: fresh_id(metadata["name"])}
    submission = Submission(job, [], namespace or target.namespace)
    result = carry_out(hand_over(Prepared(submission), target, "trainwright.submit"))
    for entry, why in result.refused:
        if entry.run == submission.run:
            raise Failure(why)
    return submission.run


async def _deliver_what_waits(target: Target, namespace: str) -> Result:
    await remember_runtimes(target, namespace)
    return await deliver_all(target)


def _report(result: Result, target: Target, *, quiet: bool, run: str) -> int:
    flag = target.flag()
    for entry in result.delivered if not quiet else ():
        name = entry.job["metadata"]["name"]
        print(f"TrainJob {name} is created; follow it with: trainwright logs -f {name}{flag}")
    for entry, why in result.refused:
        print(f"TrainJob {entry.job['metadata']['name']} is refused: {why}", file=sys.stderr)
    if result.why_waiting and not quiet:
        print(said_of_waiting(result, target))
    return 1 if any(not run or entry.run == run for entry, _ in result.refused) else 0
