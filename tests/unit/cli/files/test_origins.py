"""The tree of `explain` on screens of several widths."""

from __future__ import annotations

import pytest

from trainwright.cli.files.origins import Tree
from trainwright.pipeline.explanation import Field, PlacedOrigin
from trainwright.pipeline.provenance import RUNTIME, TRAIN_JOB

PLACE = "manifests/runtimes/a-runtime-with-quite-a-long-name.yaml"
FIELD = Field(
    "spec.replicatedJobs[0].template.spec.parallelism",
    "spec.replicatedJobs[0].template.spec.parallelism",
    2,
    PlacedOrigin(TRAIN_JOB, "TrainJob", "spec.trainer.numNodes", "trainjob.yaml", 14),
    [(1, PlacedOrigin(RUNTIME, "torch", "spec.mlPolicy.numNodes", PLACE, 10))],
)


@pytest.mark.parametrize("columns", [80, 100, 120, 160])
def test_no_line_ends_inside_a_word(columns: int) -> None:
    lines = Tree("JobSet/a", [FIELD], []).text(columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert sum(f"{PLACE}:10" in line for line in lines) == 1, "the place is whole"


def test_without_a_screen_a_field_is_one_line() -> None:
    lines = Tree("JobSet/a", [FIELD], []).text().splitlines()
    assert sum("parallelism" in line for line in lines) == 1
    assert lines[-1].endswith(f"{PLACE}:10")
