"""A report is read as Go's decoder reads it."""

from __future__ import annotations

import msgspec
import pytest

from trainwright.operator.progress.reports import Report, ReportInvalid, TrainerStatus, read_report


def _read(body: str | bytes) -> object:
    return msgspec.to_builtins(read_report(body.encode() if isinstance(body, str) else body))


@pytest.mark.parametrize(
    ("body", "report"),
    [
        ("{}", {}),
        ("null", {}),
        ('  {"trainerStatus": null}', {}),
        ('{"TRAINERSTATUS": {"ProgressPercentage": 5}}', {"trainerStatus": {"progressPercentage": 5}}),
        ('{"trainerſtatus": {"progressPercentage": 5}}', {"trainerStatus": {"progressPercentage": 5}}),
        ('{"other": 5.5, "trainerStatus": {"x": 99999999999999999999999}}', {"trainerStatus": {}}),
        ('{"trainerStatus": {}} and more', {"trainerStatus": {}}),
        (
            '{"trainerStatus": {"progressPercentage": 1, "metrics": []}, "trainerstatus": {"progressPercentage": 2}}',
            {"trainerStatus": {"progressPercentage": 2}},
        ),
        (
            '{"trainerStatus": {"metrics": [{"Name": "loss", "VALUE": "1"}, null, {"name": null}]}}',
            {"trainerStatus": {"metrics": [{"name": "loss", "value": "1"}, {}, {}]}},
        ),
        (
            '{"trainerStatus": {"lastUpdatedTime": "2026-01-02T03:04:05.678+02:00"}}',
            {"trainerStatus": {"lastUpdatedTime": "2026-01-02T01:04:05Z"}},
        ),
        ('{"trainerStatus": {"lastUpdatedTime": null, "metrics": null}}', {"trainerStatus": {}}),
        (
            b'{"trainerStatus": {"metrics": [{"name": "a\xff\\ud800"}]}}',
            {"trainerStatus": {"metrics": [{"name": "a��"}]}},
        ),
    ],
)
def test_is_read_loosely(body: str | bytes, report: object) -> None:
    assert _read(body) == report


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '"text"',
        "{",
        "NaN",
        "[" * 60000,
        '{"trainerStatus": []}',
        '{"trainerStatus": {"progressPercentage": 5.0}}',
        '{"trainerStatus": {"progressPercentage": "5"}}',
        '{"trainerStatus": {"progressPercentage": true}}',
        '{"trainerStatus": {"progressPercentage": 2147483648}}',
        '{"trainerStatus": {"estimatedRemainingSeconds": 1e2}}',
        '{"trainerStatus": {"metrics": {}}}',
        '{"trainerStatus": {"metrics": [{"value": 1}]}}',
        '{"trainerStatus": {"lastUpdatedTime": "2026-01-02"}}',
        '{"trainerStatus": {"lastUpdatedTime": ""}}',
        '{"trainerStatus": {"lastUpdatedTime": "2026-02-30T00:00:00Z"}}',
    ],
)
def test_what_is_no_report_is_refused(body: str) -> None:
    with pytest.raises(ReportInvalid):
        read_report(body.encode())


def test_what_is_read_can_be_written() -> None:
    report = Report(TrainerStatus(progress_percentage=5))
    assert read_report(msgspec.json.encode(report)) == report
