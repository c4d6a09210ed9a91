"""The objects that a TrainJob consists of in the cluster: what it owns, and what its workload owns.

In: a client and a TrainJob. Out: its JobSet, Jobs, pods and the other objects it owns, and the events about any of
them. Kinds that the cluster does not serve, or that the user may not read, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trainwright.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOB_SETS,
    JOBS,
    POD_GROUPS,
    PODS,
    SECRETS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.client.client import Client
from trainwright.client.errors import Forbidden, MethodNotAllowed, NotFound
from trainwright.pipeline.reasons.sentences import name_of
from trainwright.schema.jsonobject import Json

OWNED_KINDS = (JOB_SETS, POD_GROUPS, VOLCANO_POD_GROUPS, CONFIG_MAPS, SECRETS)


class Parts(NamedTuple):
    """A TrainJob's objects."""

    job: Json
    owned: list[Json]
    """What the TrainJob owns, the JobSet first."""
    jobs: list[Json]
    pods: list[Json]

    @property
    def jobset(self) -> Json | None:
        return next((obj for obj in self.owned if obj["kind"] == JOB_SETS.kind), None)

    def concerns(self, event: Json) -> bool:
        """Whether an event is about this TrainJob or a part of it, also one that is gone."""
        about = event.get("involvedObject") or event.get("regarding") or {}
        kind, name = about.get("kind"), str(about.get("name") or "")
        if kind == "Pod":
            return any(re.fullmatch(rf"{re.escape(job)}-(\d+-)?[a-z0-9]{{5}}", name) for job in self._job_names)
        if kind == "Job":
            return name in self._job_names
        return any(kind == obj.get("kind") and name == name_of(obj) for obj in (self.job, *self.owned))

    @property
    def _job_names(self) -> set[str]:
        names = {name_of(job) for job in self.jobs}
        for replicated in ((self.jobset or {}).get("spec") or {}).get("replicatedJobs") or ():
            count = int(replicated.get("replicas") or 1)
            names |= {f"{name_of(self.job)}-{replicated['name']}-{number}" for number in range(count)}
        return names


async def parts_of(client: Client, job: Json, *, with_owned: bool = True) -> Parts:
    namespace, selector = job["metadata"]["namespace"], f"{JOBSET_NAME}={name_of(job)}"
    owned: list[Json] = []
    for resource in OWNED_KINDS if with_owned else (JOB_SETS,):
        uid = job["metadata"]["uid"]
        owned += [obj for obj in await _listed(client, resource, namespace) if uid in _owners(obj)]
    return Parts(
        job,
        owned,
        await _listed(client, JOBS, namespace, selector),
        await _listed(client, PODS, namespace, selector),
    )


async def events_of(client: Client, namespace: str | None) -> list[Json]:
    """All events of a namespace, oldest first."""
    return sorted(await _listed(client, EVENTS, namespace), key=last_seen)


def last_seen(event: Json) -> str:
    """When an event was last seen, as a text that sorts."""
    series = event.get("series") or {}
    found = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
        or event["metadata"]["creationTimestamp"]
    )
    return str(found)


async def _listed(client: Client, resource: Resource, namespace: str | None, selector: str | None = None) -> list[Json]:
    try:
        found: Sequence[Json] = (await client.list(resource, namespace, label_selector=selector)).items or []
    except (Forbidden, NotFound, MethodNotAllowed):
        return []
    return [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in found]


def _owners(obj: Json) -> set[str]:
    return {str(owner.get("uid")) for owner in obj["metadata"].get("ownerReferences") or ()}
