"""dependsOn: a replicated job waits until those it names are ready or complete."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json


def is_met(replicated: Json, spec: Json, statuses: dict[str, Json]) -> bool:
    replicas = {other["name"]: other["replicas"] for other in spec["replicatedJobs"]}
    for dependency in replicated.get("dependsOn") or ():
        status = statuses.get(dependency.get("name", ""))
        if status is None:
            return False
        reached = status["succeeded"]
        if dependency.get("status") == "Ready":
            reached += status["failed"] + status["ready"]
        if reached != replicas.get(dependency.get("name", ""), 0):
            return False
    return True
