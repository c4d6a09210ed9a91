"""The runtimes of a cluster as they were last seen, and the verdict on a submission by them.

In: a cluster that answers, now and then. Out: its runtimes, kept beside the outbox; and, while it does not answer, what
its API server would say to a submission, as far as that is known here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.launch.submission import Submission
from trainwright.client.errors import ClientError
from trainwright.runs import files
from trainwright.runs.outbox import Outbox
from trainwright.schema.jsonobject import Json

ANSWER_SECONDS = 10.0
"""How long whoever submits waits for the cluster's first answers."""


def target_name(target: Target) -> str:
    """The cluster in an entry: `local`, or its address, which stays the same under another context's name."""
    return "local" if target.is_local else target.kubeconfig().server


def last_seen(target: Target) -> list[Json]:
    """The runtimes of the cluster when it last answered; none where it never has."""
    try:
        seen: list[Json] = msgspec.json.decode(_file(target).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return []
    return seen


async def remember_runtimes(target: Target, namespace: str) -> str:
    """Keeps the runtimes of the cluster for the next time that it does not answer; those of other namespaces stay.

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
    found += [item for item in last_seen(target) if item["metadata"].get("namespace", namespace) != namespace]
    file = _file(target)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(file, msgspec.json.encode(found))
    return ""


def judge(submission: Submission, target: Target) -> None:
    """Fails where the API server would refuse, as far as that is known here."""
    from trainwright.cli.files.documents import Document, Place  # which a cluster that answers does not need
    from trainwright.cli.files.offline import Offline
    from trainwright.plugins import load

    here = [*submission.companions, *submission.belongings, submission.job]
    named = {(item["kind"], item["metadata"]["name"]) for item in here}
    known = [item for item in last_seen(target) if (item["kind"], item["metadata"]["name"]) not in named]
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


def _file(target: Target) -> Path:
    name = target_name(target).partition("://")[2] or "local"
    return Outbox(target.directory.path).path / f"runtimes-{name.replace('/', '_').replace(':', '_')}"
