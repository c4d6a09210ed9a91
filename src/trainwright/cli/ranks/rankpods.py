"""The pod in which a rank of a TrainJob runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.wellknown import COMPLETION_INDEX, JOBSET_NAME
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.client.errors import NotFound
from trainwright.pipeline.reasons.ranks import speaker
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.client.client import Client


async def pod_of(client: Client, target: Target, namespace: str, name: str, rank: int | None) -> Json:
    """The running pod of the rank; of rank 0, or of the only pod, if none is named."""
    name = job_named(target, name, namespace)
    try:
        await client.get(TRAIN_JOBS, name, namespace=namespace)
    except NotFound:
        raise await no_such_job(client, name, namespace) from None
    listed = await client.list(PODS, namespace=namespace, label_selector=f"{JOBSET_NAME}={name}")
    running = [pod for pod in listed.items or [] if (pod.get("status") or {}).get("phase") == "Running"]
    if not running:
        raise Failure(f"nothing of {name} runs now: trainwright get {name}{target.flag()} says why")
    ranked = {number: pod for pod in running for number in ranks_of_pod(pod)}
    if rank is None:
        return ranked[min(ranked)] if ranked else running[0]
    if rank not in ranked:
        known = ", ".join(str(number) for number in sorted(ranked)) or "none"
        raise Failure(f"{name} has no running rank {rank}; running ranks: {known}")
    return ranked[rank]


def ranks_of_pod(pod: Json) -> range:
    """The ranks that the pod runs; where their number is not known, the node's own number stands for the first."""
    said = speaker(pod)
    if said.node is None:
        index = (pod["metadata"].get("labels") or {}).get(COMPLETION_INDEX)
        return range(int(index), int(index) + 1) if index is not None and index.isdecimal() else range(0)
    each = said.processes or 1
    return range(said.node * each, (said.node + 1) * each)
