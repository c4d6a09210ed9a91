"""The recorded answers of JobSet's webhooks, on which `tests/jobsetadmission` relies, are those that it gives today."""

from __future__ import annotations

import json
import os

import pytest

from jobsetadmission import record


@pytest.mark.skipif(
    "TRAINWRIGHT_SHORT" in os.environ, reason="takes more than a minute, and the recording rarely changes"
)
@pytest.mark.timeout(600)
def test_jobsets_webhooks_answer_as_recorded() -> None:
    fresh = json.loads(json.dumps(record.recorded()))
    assert fresh == json.loads(record.ANSWERS.read_text())
