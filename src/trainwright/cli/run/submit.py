"""`trainwright submit`: hands a TrainJob over, whether its cluster answers or not; and `trainwright.submit` in Python.

The TrainJob is judged by the rules of the API server here, with the runtimes last seen, and kept on disk. If the
cluster answers it is created at once; if not, a process in the background delivers it when the cluster is back. So does
every later `trainwright submit`, also one without a file.
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.api.runid import fresh_id
from trainwright.api.wellknown import RUN
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target, choose
from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import Document, Place
from trainwright.cli.files.offline import Offline
from trainwright.cli.launch.submission import Submission, read_submission
from trainwright.cli.run.delivering import Result, deliver, deliver_all, keep, target_name
from trainwright.client.errors import ClientError
from trainwright.plugins import load
from trainwright.runs import files
from trainwright.runs.outbox import Outbox
from trainwright.schema.jsonobject import Json

ANSWER_SECONDS = 10.0
"""How long whoever submits waits for the cluster's first answers."""

STARTED: list[subprocess.Popen[bytes]] = []
"""Deliverers, which outlive a program that calls `submit`; forgotten, each would be warned about."""


def submit(file: str | None, quiet: bool, target: Target, namespace: str) -> int:
    if file is None:
        result = carry_out(_deliver_what_waits(target, namespace))
        return _report(result, target, quiet=quiet, run="")
    submission = read_submission(file, namespace)
    result = carry_out(_hand_over(submission, target, file))
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
    result = carry_out(_hand_over(submission, target, "trainwright.submit"))
    for entry, why in result.refused:
        if entry.run == submission.run:
            raise Failure(why)
    return submission.run


async def _deliver_what_waits(target: Target, namespace: str) -> Result:
    await _remember_runtimes(target, namespace)
    return await deliver_all(target)


async def _hand_over(submission: Submission, target: Target, source: str) -> Result:
    silent = await _remember_runtimes(target, submission.namespace)
    _judge(submission, target)
    keep(target, submission, source)
    result = Result([], [], silent) if silent else await deliver(target)
    if result.why_waiting:
        _deliver_later(target)
    return result


def _report(result: Result, target: Target, *, quiet: bool, run: str) -> int:
    flag = target.flag()
    for entry in result.delivered if not quiet else ():
        name = entry.job["metadata"]["name"]
        print(f"TrainJob {name} is created; follow it with: trainwright logs -f {name}{flag}")
    for entry, why in result.refused:
        print(f"TrainJob {entry.job['metadata']['name']} is refused: {why}", file=sys.stderr)
    if result.why_waiting and not quiet:
        print(
            f"kept: {result.why_waiting}. It is delivered when the cluster answers, by a process in the background or"
            f" by: trainwright submit{flag}. See what waits with: trainwright runs{target.directory.flag()}"
        )
    return 1 if any(not run or entry.run == run for entry, _ in result.refused) else 0


def _deliver_later(target: Target) -> None:
    """A process of its own that delivers when the cluster is back, and ends then."""
    words = shlex.split(target.flag()) if target.flag() else (["--local"] if target.is_local else [])
    log = Outbox(target.directory.path).path / "delivery.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainwright.cli.main", "submit", "--quiet", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    STARTED.append(process)


# Judging without a cluster


def _judge(submission: Submission, target: Target) -> None:
    """Fails where the API server would refuse, as far as that is known here."""
    here = [*submission.companions, submission.job]
    named = {(item["kind"], item["metadata"]["name"]) for item in here}
    known = [item for item in _last_seen(target) if (item["kind"], item["metadata"]["name"]) not in named]
    documents = [
        Document("the submission", number, item, Place(1, {})) for number, item in enumerate([*here, *known], 1)
    ]
    offline = Offline(documents, submission.namespace, load(discovered={}))
    [job] = offline.train_jobs
    answer = offline.answer_train_job(job)
    if answer.unknown:
        raise Failure(f"TrainJob {submission.name}: unknown fields: {', '.join(answer.unknown)}")
    if answer.messages:
        raise Failure(f"TrainJob {submission.name}: {answer.messages[0]}")


def _seen_file(target: Target) -> Path:
    name = target_name(target).partition("://")[2] or "local"
    return Outbox(target.directory.path).path / f"runtimes-{name.replace('/', '_').replace(':', '_')}"


def _last_seen(target: Target) -> list[Json]:
    try:
        seen: list[Json] = msgspec.json.decode(_seen_file(target).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return []
    return seen


async def _remember_runtimes(target: Target, namespace: str) -> str:
    """The runtimes of the cluster, for the next time that it does not answer; those of other namespaces stay.

    Returns what to say of a server that takes requests and does not answer, as one without its etcd; else nothing.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS), target.client() as client:
            found: list[Any] = []
            for resource, where in ((CLUSTER_TRAINING_RUNTIMES, None), (TRAINING_RUNTIMES, namespace)):
                listed = await client.list(resource, where)
                kind = {"apiVersion": resource.api_version, "kind": resource.kind}
                found += [{**kind, **item} for item in listed.items or ()]
    except TimeoutError:
        return f"the API server did not answer within {ANSWER_SECONDS:g} s"
    except (ClientError, Failure):
        return ""
    target.directory.create()
    found += [item for item in _last_seen(target) if item["metadata"].get("namespace", namespace) != namespace]
    file = _seen_file(target)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(file, msgspec.json.encode(found))
    return ""
