"""Every cause has a code, a mend, a paragraph in the troubleshooting page, and objects or lines that bring it about."""

from __future__ import annotations

import re
from pathlib import Path

from trainwright.pipeline.reasons.page import page
from trainwright.pipeline.reasons.table import AREAS, CAUSES

ROOT = Path(__file__).parents[4]


def test_there_is_one_row_for_each_code() -> None:
    rows = [cause for _, causes in AREAS for cause in causes]
    assert len(CAUSES) == len(rows) >= 30


def test_every_row_is_whole() -> None:
    for cause in CAUSES.values():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", cause.code), "a code is a Kubernetes reason"
        assert cause.summary[-1:] not in ("", "."), cause.code
        assert cause.meaning.endswith("."), cause.code
        assert cause.mend[-1:] not in ("", "."), cause.code


def test_the_troubleshooting_page_is_current() -> None:
    written = (ROOT / "docs/troubleshooting.md").read_text()
    assert written == page(), "write it anew with: make generate"


def test_every_cause_is_brought_about_by_a_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    missing = [code for code in CAUSES if f'"{code}"' not in tests]
    assert missing == []
