"""Remembers what was last built for each TrainJob: while all of it is as we left it, a pass has nothing to write.

Only a memory that saves repeating writes which change nothing. An operator that starts anew has none of it. It takes
a workload as settled that says itself that it was built from this generation of the TrainJob and that nothing belongs
beside it; any other job is built once more, and everything is found as it should be.
"""

from __future__ import annotations

import msgspec

from trainwright.api.trainjob import TrainJob
from trainwright.controlloop import Key, key_of
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.trainjobs.applier import Written, version_of
from trainwright.pipeline import ObjectName, Plan, Workload
from trainwright.pipeline.workload import CHILDREN_ANNOTATION, GENERATION_ANNOTATION


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
        says = workload.metadata.annotation(GENERATION_ANNOTATION) if workload is not None else None
        told = says == str(job.metadata.generation)  # an elastic job is scaled, which makes a new generation
        if workload is not None and not plan.repaired and not job.is_suspended and told:
            self._built.pop(key_of(job), None)  # its own annotations say as much
        elif workload is not None:
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
        if built is None or built.uid != job.metadata.uid:
            built = self._adopt(job, workload)
        if built is None or (built.children and built.ca_certificate != authority):
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

    def _adopt(self, job: TrainJob, workload: Workload) -> _Built | None:
        """What the workload's own annotations say; None where they do not say enough."""
        ours, its = job.metadata, workload.metadata
        built_from = its.annotation(GENERATION_ANNOTATION)
        if built_from != str(ours.generation) or its.annotation(CHILDREN_ANNOTATION) is not None:
            return None
        if job.is_suspended != workload.status.is_suspended:
            return None
        found = _Built(ours.uid, ours.generation, its.uid, its.generation, "", {})
        if job.is_suspended:  # a change of it must be noticed, which costs a few bytes of memory
            self._built[key_of(job)] = found
        return found

    def _is_there(self, job: TrainJob, name: ObjectName, version: str) -> bool:
        found = self._kinds.find(job, name)
        return found is not None and (not version or version_of(found) == version)
