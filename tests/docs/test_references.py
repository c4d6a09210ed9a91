"""Pages that are generated from the code say what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PAGES = {
    "reference-cli.md": "references.command_line()",
    "reference-api.md": "fieldreferences.api_fields(list(generate.crds.build(generate.third_party_jobset())))",
    "reference-configuration.md": "fieldreferences.configuration_fields()",
}


@pytest.mark.parametrize("page", PAGES)
def test_a_reference_is_current(page: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import fieldreferences, generate, references; print({PAGES[page]}, end='')"],
        env={"PYTHONPATH": str(ROOT / "tools"), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / "docs" / page).read_text(), "run: make generate"
