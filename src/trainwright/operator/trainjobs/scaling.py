"""Elastic jobs: the workload follows `spec.trainer.numNodes` while it runs, and nothing of it restarts.

In: a TrainJob, its workload and the workload's parts from the stores. Out: the parts have as many nodes as the
TrainJob asks for, or a sentence says why not; `status.elastic` says how many there are; events tell who joined and
who was lost. The plugin that built the workload knows how it is resized. Only the workload of this TrainJob and what
the workload itself controls is written, each by its uid.

A TrainJob that does not say how many nodes it wants gets the fewest, through `trainjobs/scale`, once its status says
that it is elastic: an autoscaler has nothing to begin with otherwise.
"""

from __future__ import annotations

import msgspec

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import ElasticStatus, TrainJob
from trainwright.client import JSON_PATCH, ApiError, Client, Conflict, Forbidden, NotFound
from trainwright.client.errors import BadRequest, Invalid
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.trainjobs.applier import Replaced
from trainwright.operator.trainjobs.events import Events
from trainwright.pipeline import Workload
from trainwright.pipeline.elasticity import NodeRange, elastic_status, wanted_nodes
from trainwright.pipeline.reasons.queues import QUEUE_LABEL

SCALED = "Scaled"
NODES_JOINED = "NodesJoined"
NODES_LEFT = "NodesLeft"
NODES_LOST = "NodesLost"


class Scaling:
    def __init__(self, client: Client, kinds: Kinds, events: Events) -> None:
        self._client = client
        self._kinds = kinds
        self._events = events

    def count(self, job: TrainJob, workload: Workload) -> ElasticStatus | None:
        """`status.elastic`; None for a job that is not elastic, and for one that has ended.

        Kueue counts the nodes of a job when it admits it, and evicts the job for another number: while a job of one of
        its queues trains, the limits are the number that it has, so that the API server refuses another. When a node
        is lost the fewest is the runtime's again, by which the status says whether the job trains.
        """
        limits = workload.status.node_range
        if limits is None or workload.status.is_finished:
            return None
        parts = list(self._kinds.framework.count(workload.plugin, self._kinds.parts_of(job, workload)))
        if job.metadata.label(QUEUE_LABEL) and not job.is_suspended:
            wanted = wanted_nodes(job, limits)
            is_whole = sum(part.ready for part in parts) >= wanted
            limits = NodeRange(wanted if is_whole else limits.minimum, wanted)
        return elastic_status(job, limits, parts, workload.status.node_pods)

    async def follow(self, job: TrainJob, workload: Workload) -> str | None:
        """Gives the workload as many nodes as the TrainJob asks for. Returns why that is not possible, if it is not."""
        limits = workload.status.node_range
        if limits is None or workload.status.is_finished or workload.status.is_suspended or job.is_suspended:
            return None
        if job.status is None or job.status.elastic is None:
            return None  # first the status: until it says that the job is elastic, nobody can have changed the nodes
        if job.spec is None or job.spec.trainer is None or job.spec.trainer.num_nodes is None:
            await self._begin_with(job, limits.minimum)
        if trouble := self._kinds.why_no_parts(workload):
            return trouble
        wanted = wanted_nodes(job, limits)
        parts = self._kinds.parts_of(job, workload)
        framework = self._kinds.framework
        if all(nodes.wanted == wanted for nodes in framework.count(workload.plugin, parts)):
            return None
        return await self._resize(job, workload, wanted)

    async def tell(self, job: TrainJob, now: ElasticStatus | None) -> None:
        """An event when a node has joined, left or been lost."""
        before = job.status.elastic if job.status is not None else None
        if before is None or now is None or before.ready_nodes == now.ready_nodes or job.is_suspended:
            return
        count = f"{now.ready_nodes} of {now.wanted_nodes} nodes are ready, {before.ready_nodes} were"
        if now.ready_nodes > before.ready_nodes:
            await self._events.tell(TRAIN_JOBS, job.metadata, NODES_JOINED, count, type="Normal")
        elif now.ready_nodes >= now.wanted_nodes:
            await self._events.tell(TRAIN_JOBS, job.metadata, NODES_LEFT, count, type="Normal")
        else:
            await self._events.tell(TRAIN_JOBS, job.metadata, NODES_LOST, count)

    async def _begin_with(self, job: TrainJob, nodes: int) -> None:
        await self._client.patch(
            TRAIN_JOBS,
            {"metadata": {"uid": job.metadata.uid}, "spec": {"replicas": nodes}},
            name=job.metadata.name,
            namespace=job.metadata.namespace,
            subresource="scale",
            field_manager=FIELD_MANAGER,
            decode=msgspec.Raw,
        )

    async def _resize(self, job: TrainJob, workload: Workload, nodes: int) -> str | None:
        """Tries one way after the other, until the API server accepts one."""
        metadata, refused = workload.metadata, ""
        try:
            stored = await self._client.get(workload.resource, metadata.name, metadata.namespace)
        except NotFound as error:
            raise Replaced(str(error)) from error
        if stored["metadata"].get("uid") != metadata.uid:
            raise Replaced(f'{workload.resource.kind} "{metadata.name}" was replaced')
        parts = self._kinds.parts_of(job, workload)
        for way in self._kinds.framework.resize(workload.plugin, stored, parts, nodes):
            try:
                await self._client.patch(
                    way.resource,
                    way.operations,
                    name=way.name,
                    namespace=metadata.namespace,
                    content_type=JSON_PATCH,
                    field_manager=FIELD_MANAGER,
                    decode=msgspec.Raw,
                )
            except (BadRequest, Forbidden, Invalid) as error:
                refused = f'{way.resource.kind} "{way.name}": {error}'
            except (Conflict, NotFound):
                raise
            except ApiError as error:
                return f"the nodes cannot be changed to {nodes}: {error}"
            else:
                said = f'asked {way.resource.kind} "{way.name}" for {nodes} nodes'
                await self._events.tell(TRAIN_JOBS, job.metadata, SCALED, said, type="Normal")
                return None
        return f"the nodes cannot be changed to {nodes}: {refused}" if refused else None
