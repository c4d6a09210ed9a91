"""A JobSet's successPolicy: complete when all, or any, Jobs of the targeted replicated jobs have succeeded."""

from __future__ import annotations

from trainwright.api.wellknown import REPLICATED_JOB
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


def is_met(spec: Json, succeeded: list[ApiObject]) -> bool:
    """Whether the JobSet is complete, given the Jobs that succeeded, of which there is at least one."""
    policy = spec["successPolicy"]
    targets = policy.get("targetReplicatedJobs") or []

    def counts(name: str | None) -> bool:
        return not targets or name in targets

    needed = 1 if policy.get("operator") == "Any" else 0
    if policy.get("operator") == "All":
        needed = sum(replicated["replicas"] for replicated in spec["replicatedJobs"] if counts(replicated["name"]))
    return sum(counts(job.metadata.label(REPLICATED_JOB)) for job in succeeded) >= needed
