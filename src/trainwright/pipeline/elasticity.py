"""Elastic jobs: between how many nodes a TrainJob may train, and how many it has at this moment.

A plugin that prepares an elastic template sets `Info.node_range`; the plugin that builds the workload writes it on the
workload, and reports it with its status. `elastic_status` makes `TrainJob.status.elastic` of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trainwright.api.resources import Resource
from trainwright.api.trainjob import ElasticStatus, TrainJob
from trainwright.schema.jsonobject import Json


class NodeRange(msgspec.Struct, frozen=True):
    """The fewest and the most nodes; as text `2:4`."""

    minimum: int
    maximum: int

    def __str__(self) -> str:
        return f"{self.minimum}:{self.maximum}"

    @classmethod
    def parse(cls, text: str | None) -> NodeRange | None:
        """None for text that is no range."""
        least, _, most = (text or "").partition(":")
        return cls(int(least), int(most)) if least.isdecimal() and most.isdecimal() else None

    def contains(self, nodes: int) -> bool:
        return self.minimum <= nodes <= self.maximum


class Nodes(msgspec.Struct, frozen=True):
    """One part of a workload, such as a Job, that runs nodes of an elastic job."""

    wanted: int
    """Pods that it is asked to run."""
    present: int = 0
    ready: int = 0


class Resize(msgspec.Struct, frozen=True):
    """A way to give a workload another number of nodes: a JSON patch of one object."""

    resource: Resource
    name: str
    operations: list[Json]


def wanted_nodes(job: TrainJob, nodes: NodeRange) -> int:
    """The nodes that the TrainJob asks for; the fewest where it does not say."""
    trainer = job.spec.trainer if job.spec is not None else None
    return trainer.num_nodes if trainer is not None and trainer.num_nodes is not None else nodes.minimum


def elastic_status(job: TrainJob, nodes: NodeRange, parts: Iterable[Nodes], selector: str) -> ElasticStatus:
    parts = list(parts)
    return ElasticStatus(
        min_nodes=nodes.minimum,
        max_nodes=nodes.maximum,
        wanted_nodes=wanted_nodes(job, nodes),
        nodes=sum(part.present for part in parts),
        ready_nodes=sum(part.ready for part in parts),
        selector=selector,
    )


def said_of(elastic: ElasticStatus) -> str:
    """What an elastic job does, or waits for, in words."""
    limits = f"between {elastic.min_nodes} and {elastic.max_nodes}"
    if elastic.min_nodes == elastic.max_nodes:
        limits = "the number stays"
    ready, wanted = elastic.ready_nodes, elastic.wanted_nodes
    if ready < elastic.min_nodes:
        return f"waiting for nodes: {ready} of {wanted} are ready, and training needs {elastic.min_nodes}"
    if ready < wanted:
        return f"training on {ready} of {wanted} nodes ({limits}); waiting for {wanted - ready} to join"
    if ready > wanted:
        return f"training on {ready} nodes ({limits}); {ready - wanted} to leave"
    return f"training on {ready} nodes ({limits})"
