"""`trainwright scale`: change the number of nodes of an elastic TrainJob while it trains."""

from __future__ import annotations

from trainwright.api.resources import TRAIN_JOBS
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import no_such_job
from trainwright.client.client import Client
from trainwright.client.errors import Invalid, NotFound
from trainwright.pipeline.reasons.queues import QUEUE_LABEL
from trainwright.pipeline.reasons.sentences import condition
from trainwright.schema.jsonobject import Json

FIELD_MANAGER = "trainwright-scale"


def scale(name: str, nodes: int, quiet: bool, target: Target, namespace: str) -> int:
    async def work() -> Json:
        async with target.client() as client:
            return await set_nodes(client, name, namespace, nodes)

    elastic = carry_out(work())
    if not quiet:
        print(
            f"TrainJob {name} is asked for {nodes} nodes and has {elastic['nodes']}, of which {elastic['readyNodes']}"
            f" are ready; see them change with: trainwright get {name} -w{target.flag()}"
        )
    return 0


async def set_nodes(client: Client, name: str, namespace: str, nodes: int) -> Json:
    """Asks for so many nodes. Returns the job's `status.elastic`; fails if the job is not elastic, or has ended."""
    try:
        job = await client.get(TRAIN_JOBS, name, namespace)
    except NotFound:
        raise await no_such_job(client, name, namespace) from None
    for end in ("Complete", "Failed"):
        if condition(job, end):
            raise Failure(f"TrainJob {name} has ended ({end}); its nodes cannot be changed")
    elastic: Json | None = (job.get("status") or {}).get("elastic")
    if elastic is None:
        runtime = job["spec"]["runtimeRef"]["name"]
        raise Failure(
            f"TrainJob {name} is not elastic: its runtime {runtime} has no mlPolicy.torch.elasticPolicy, or the job has"
            " not started yet. docs/elastic.md says how to make a runtime elastic"
        )
    try:
        await client.patch(
            TRAIN_JOBS,
            {"spec": {"replicas": nodes}},
            name=name,
            namespace=namespace,
            subresource="scale",
            field_manager=FIELD_MANAGER,
        )
    except Invalid as error:
        least, most = elastic["minNodes"], elastic["maxNodes"]
        if least <= nodes <= most:
            raise
        if queue := (job["metadata"].get("labels") or {}).get(QUEUE_LABEL):
            raise Failure(
                f"TrainJob {name} cannot have {nodes} nodes: it is in the queue {queue} of Kueue, which has counted"
                f" {elastic['wantedNodes']} and would end all of its pods for another number; run it again with that"
            ) from error
        raise Failure(
            f"TrainJob {name} cannot have {nodes} nodes: it trains on {least} to {most}, as elasticPolicy of its"
            " runtime says"
        ) from error
    return elastic
