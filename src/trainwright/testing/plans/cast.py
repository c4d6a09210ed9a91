"""Whoever else acts in a cluster: JobSet's controller, played by what is stored, whenever the stage asks.

A JobSet that is not suspended runs one second after it is seen, and ends three seconds later as its TrainJob's name
says: `fail…` fails, `hang…` runs until it is suspended or deleted, all others complete.
"""

from __future__ import annotations

from trainwright.api.resources import JOB_SETS
from trainwright.api.times import rfc3339
from trainwright.client import ClientError
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer

START_SECONDS = 1.0
RUN_SECONDS = 3.0


class Cast:
    def __init__(self, server: VirtualServer) -> None:
        self._server = server
        self._since: dict[tuple[str, str], float] = {}  # when a JobSet was first seen in a state
        self._version = -1
        self.ending: dict[str, str] = {}
        """How JobSets end, by name, in place of what their names say."""

    async def play(self) -> None:
        for job_set in self._server.list(JOB_SETS):
            status = self._next(job_set)
            if status is not None:
                await self._write(job_set["metadata"], status)

    def _next(self, job_set: Json) -> Json | None:
        """The status that its controller would write now."""
        metadata, status = job_set["metadata"], job_set.get("status") or {}
        conditions = {item["type"]: item["status"] == "True" for item in status.get("conditions") or ()}
        if metadata.get("deletionTimestamp") or conditions.get("Completed") or conditions.get("Failed"):
            return None
        if job_set["spec"].get("suspend"):
            return None if conditions.get("Suspended") else self._status(job_set, "Suspended", "True", ready=0)
        if conditions.get("Suspended"):
            return self._status(job_set, "Suspended", "False", ready=0)
        generation = str(metadata.get("generation", 0))
        running = any(item.get("ready") for item in status.get("replicatedJobsStatus") or ())
        since = self._since.setdefault((metadata["uid"], f"{running} {generation}"), self._now())
        if not running:
            return self._status(job_set, "", "", ready=1) if self._now() - since >= START_SECONDS else None
        how = self.ending.get(metadata["name"]) or metadata["name"]
        if how.startswith("hang") or self._now() - since < RUN_SECONDS:
            return None
        return self._status(job_set, "Failed" if how.startswith("fail") else "Completed", "True", ready=0)

    def _now(self) -> float:
        return self._server.clock.now()

    def _status(self, job_set: Json, kind: str, value: str, *, ready: int) -> Json:
        replicated = [
            {
                "name": item["name"],
                "ready": ready,
                "active": 0,
                "succeeded": int(kind == "Completed"),
                "failed": int(kind == "Failed"),
                "suspended": int(kind == "Suspended" and value == "True"),
            }
            for item in job_set["spec"]["replicatedJobs"]
        ]
        status: Json = {"replicatedJobsStatus": replicated}
        old = (job_set.get("status") or {}).get("conditions") or []
        if kind:
            condition = {
                "type": kind,
                "status": value,
                "reason": f"{kind}Here",
                "message": f"the JobSet says {kind}",
                "lastTransitionTime": rfc3339(self._server.clock.wall()),
            }
            status["conditions"] = [item for item in old if item["type"] != kind] + [condition]
        return status

    async def _write(self, metadata: Json, status: Json) -> None:
        try:
            await self._server.admin.patch(
                JOB_SETS,
                {"metadata": {"uid": metadata["uid"]}, "status": status},
                name=metadata["name"],
                namespace=metadata["namespace"],
                subresource="status",
                field_manager="jobset",
            )
        except ClientError:
            return  # it has gone: the next look will tell
