"""The compiled schemas of our kinds, for validation without a cluster.

In: a kind. Out: its `StructuralSchema`, from a JSON file that `make generate` writes beside this module; read on
first use, compiled lazily.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from trainwright.schema.structural import StructuralSchema

_FILES = {
    "TrainJob": "trainjob.json",
    "TrainingRuntime": "trainingruntime.json",
    "ClusterTrainingRuntime": "trainingruntime.json",
    "JobSet": "jobset.json",
}


@cache
def _read(file: str) -> StructuralSchema:
    return StructuralSchema.compile(msgspec.json.decode((Path(__file__).parent / "schemas" / file).read_bytes()))


def schema_for(kind: str) -> StructuralSchema:
    """The schema of TrainJob, TrainingRuntime, ClusterTrainingRuntime or JobSet."""
    return _read(_FILES[kind])
