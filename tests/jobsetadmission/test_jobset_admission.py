"""JobSets that JobSet's own webhooks accepted or refused are accepted or refused here, in the same words.

`answers.json` holds the answers of JobSet v0.12 on kube-apiserver 1.36 (`record.py` writes it).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobsetadmission.asking import ask
from jobsetadmission.cases import cases
from jobsetadmission.local import served
from trainwright.embedded.workloads.features import Features

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text())
ALL = list(cases())
DIFFERENT = {"no-template": "our server drops a null that a webhook writes, and calls the member missing"}


def test_every_case_has_an_answer() -> None:
    assert sorted(ANSWERS) == sorted(case.name for case in ALL)
    assert len(ALL) >= 120


@pytest.mark.parametrize("gates", [False, True])
def test_every_case_is_answered_as_by_jobset(tmp_path: Path, gates: bool) -> None:
    features = Features(restart_job=gates, elastic_job_set=gates)
    with served(tmp_path / "state", features) as server:
        mine = {case.name: ask(server, case) for case in ALL if case.gates is gates}
    differ = {name: (answer, ANSWERS[name]) for name, answer in mine.items() if answer != ANSWERS[name]}
    assert set(differ) == {case.name for case in ALL if case.gates is gates and case.name in DIFFERENT}, differ
