"""JobSet's own controller specs, all of them, judge our JobSet controller and its webhooks as a separate program.

etcd and kube-apiserver are real; each spec switches JobSet's gates as it likes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kube.jobsetspecs import specs

SPECS = 65


@pytest.mark.skipif("TRAINWRIGHT_SHORT" in os.environ, reason="takes eight minutes with an empty cache")
@pytest.mark.timeout(1200)
def test_our_controller_passes_every_spec_of_jobset(tmp_path: Path) -> None:
    results = specs.run(tmp_path, shards=4)
    failed = [f"{result.name}: {result.failure}" for result in results if result.state != "passed"]
    assert failed == []
    assert len(results) == SPECS
