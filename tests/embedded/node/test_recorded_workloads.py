"""The embedded cluster leaves the same traces as JobSet v0.12 and kube-controller-manager 1.36, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embedded.node.cluster import running_cluster
from embedded.node.workload_cases import RECORDING, observe


@pytest.mark.timeout(180)
async def test_jobsets_and_jobs_leave_the_traces_that_were_recorded(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with running_cluster(tmp_path / "cluster") as cluster:
        traces = await observe(cluster.client, scratch)
    recorded = json.loads(RECORDING.read_text())
    assert set(traces) == set(recorded)
    for name, expected in recorded.items():
        assert traces[name] == expected, f"case {name}"
