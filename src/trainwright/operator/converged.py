"""Remembers what was last built for each TrainJob: while all of it is as we left it, a pass has nothing to write.

Only a memory that saves repeating writes which change nothing. A restarted operator has none of it, builds every
unfinished job once more, and finds everything as it should be.
"""

from __future__ import annotations

import msgspec

from trainwright.api.trainjob import TrainJob
from trainwright.controlloop import Key, key_of
from trainwright.operator.applier import Written, version_of
from trainwright.operator.kinds import Kinds
from trainwright.pipeline import ObjectName, Plan, Workload


class _Built(msgspec.Struct, frozen=True):
    uid: str
    generation: int
    workload_uid: str
    workload_generation: int
    ca_certificate: str
    children: dict[ObjectName, str]
    """What belongs beside the workload; with a version, where a change of it must be put right."""


class Converged:
    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._built: dict[Key, _Built] = {}

    def remember(self, job: TrainJob, workload: Workload | None, plan: Plan, written: Written, authority: str) -> None:
        if workload is not None:
            self._built[key_of(job)] = _Built(
                job.metadata.uid,
                job.metadata.generation,
                workload.metadata.uid,
                workload.metadata.generation,
                authority,
                {name: written.versions.get(name, "") for name in plan.repaired},
            )

    def forget(self, key: Key) -> None:
        self._built.pop(key, None)

    def holds(self, job: TrainJob, workload: Workload, authority: str) -> bool:
        """Everything is there as we left it; of a workload that runs, that it is there is enough."""
        built = self._built.get(key_of(job))
        if built is None or (built.uid, built.ca_certificate) != (job.metadata.uid, authority):
            return False
        if not all(self._is_there(job, name, version) for name, version in built.children.items()):
            return False
        if not job.is_suspended and not workload.status.is_suspended:
            return True
        return (built.generation, built.workload_uid, built.workload_generation) == (
            job.metadata.generation,
            workload.metadata.uid,
            workload.metadata.generation,
        )

    def _is_there(self, job: TrainJob, name: ObjectName, version: str) -> bool:
        found = self._kinds.find(job, name)
        return found is not None and (not version or version_of(found) == version)
