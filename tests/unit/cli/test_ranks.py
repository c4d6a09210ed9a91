"""Lines carry the rank that printed them, where anything tells which rank that was."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.cli.ranks import speaker


def pod(job: str, index: str | None, processes: str | None) -> dict[str, Any]:
    labels = {REPLICATED_JOB: job} | ({COMPLETION_INDEX: index} if index is not None else {})
    env = [{"name": "PET_NPROC_PER_NODE", "value": processes}] if processes else []
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [{"name": "node", "env": env}]}}


@pytest.mark.parametrize(
    ("job", "index", "processes", "line", "expected"),
    [
        ("node", "1", "2", "[default1]:hello", ("rank 3", "hello")),
        ("node", "1", "2", "a warning of torchrun's own", ("node-1", "a warning of torchrun's own")),
        ("node", "4", None, "hello", ("rank 4", "hello")),
        ("node", "4", "1", "[trainer0]:hello", ("rank 4", "hello")),
        ("node", "0", "auto", "[default1]:hello", ("node-0", "[default1]:hello")),
        ("launcher", "0", None, "hello", ("launcher-0", "hello")),
        ("dataset-initializer", "0", None, "done", ("dataset-initializer", "done")),
    ],
)
def test_a_line_is_attributed(
    job: str, index: str, processes: str | None, line: str, expected: tuple[str, str]
) -> None:
    assert speaker(pod(job, index, processes)).attribute(line) == expected
