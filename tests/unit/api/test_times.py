"""RFC 3339 as Kubernetes writes and reads it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.api.times import moment_of, rfc3339, rfc3339_micro, rfc3339_nano, seconds_of

NOON_IN_BERLIN = datetime(2026, 7, 1, 12, 0, 0, 123456, timezone(timedelta(hours=2)))


def test_times_are_written_in_utc_as_kubernetes_writes_them() -> None:
    assert rfc3339(NOON_IN_BERLIN) == "2026-07-01T10:00:00Z"
    assert rfc3339_micro(NOON_IN_BERLIN) == "2026-07-01T10:00:00.123456Z"
    assert rfc3339(0.9) == "1970-01-01T00:00:00Z"
    assert rfc3339_micro(1.5) == "1970-01-01T00:00:01.500000Z"
    assert rfc3339_nano(1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"


def test_early_years_keep_their_four_digits() -> None:
    assert rfc3339(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-01T10:00:00.123456Z",
        "2026-07-01T10:00:00.123456789Z",
        "2026-07-01T10:00:00,123456Z",
        "2026-07-01T12:00:00.123456+02:00",
    ],
)
def test_every_spelling_of_an_instant_is_read_as_the_same_one(text: str) -> None:
    assert moment_of(text) == NOON_IN_BERLIN
    assert seconds_of(text) == NOON_IN_BERLIN.timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-07-01",
        "20260701T100000Z",
        "2026-W27-3T10:00:00Z",
        "2026-07-01 10:00:00Z",
        "2026-07-01T10:00:00",
        "2026-07-01T10:00:00Z\n",
        "2026-02-30T10:00:00Z",
        "2026-07-01T25:00:00Z",
        "2026-07-01T10:00:00+99:00",
        "0001-01-01T00:00:00+02:00",
        "٢٠٢٦-07-01T10:00:00Z",
    ],
)
def test_anything_but_rfc_3339_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        moment_of(text)


@given(st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)))
def test_what_is_written_is_read_back(moment: datetime) -> None:
    assert moment_of(rfc3339_micro(moment)) == moment
    assert moment_of(rfc3339(moment)) == moment.replace(microsecond=0)


def test_a_supervisor_loads_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import trainwright.embedded.node.supervision.supervisor\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - set(sys.stdlib_module_names) - {'trainwright'}))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""
