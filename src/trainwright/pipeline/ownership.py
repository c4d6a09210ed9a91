"""What marks an object as a TrainJob's child: labels, and an owner reference that makes the TrainJob its controller."""

from __future__ import annotations

from trainwright.api.metadata import controller_reference
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import TrainJob
from trainwright.schema.jsonobject import Json

TRAINJOB_NAME_LABEL = "trainer.kubeflow.org/trainjob-name"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "trainwright"
BUILT_BY_US = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
"""A label selector that matches every object a build makes."""


def own(child: Json, job: TrainJob) -> None:
    """Make `child` an object of this TrainJob."""
    metadata = child["metadata"]
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        MANAGED_BY_LABEL: MANAGED_BY,
        TRAINJOB_NAME_LABEL: job.metadata.name,
    }
    metadata["ownerReferences"] = [owner_reference(job)]


def owner_reference(job: TrainJob) -> Json:
    """What makes an object this TrainJob's: the garbage collector follows the uid."""
    return controller_reference(TRAIN_JOBS, job.metadata)
