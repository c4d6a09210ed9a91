"""The body of a progress report, read and written as the reference does it, since training code is written against it.

In: the bytes of a request. Out: a `Report`, or `ReportInvalid`. The reference reads with Go's rules, which are looser
than JSON's own: member names match in any case and the last of several wins, members nobody knows are skipped, null
means "not said", and what follows the first value is not looked at. A number must be a whole 32-bit one, a time is
stored in UTC and whole seconds. Limits on values are the CRD's to enforce.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from trainwright.api.times import moment_of, rfc3339

T = TypeVar("T")


class ReportInvalid(ValueError):
    """A body that is no report."""


class Metric(msgspec.Struct, omit_defaults=True):
    name: str = ""
    value: str = ""


class TrainerStatus(msgspec.Struct, omit_defaults=True, rename="camel"):
    progress_percentage: int | None = None
    estimated_remaining_seconds: int | None = None
    metrics: list[Metric] | None = None
    last_updated_time: str | None = None


class Report(msgspec.Struct, omit_defaults=True, rename="camel"):
    trainer_status: TrainerStatus | None = None


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in the order they came, repeated ones included."""


_decoder = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_float=lambda text: math.nan,  # 5.0 is no whole number here
    parse_int=lambda text: int(text) if len(text) < 12 else math.inf,
    parse_constant=lambda text: _refuse(),
)
_SPACE = " \t\r\n"


def read_report(body: bytes) -> Report:
    """The report in a request's body; raises `ReportInvalid`."""
    text = body.decode("utf-8", "replace").lstrip(_SPACE)
    try:
        value, _ = _decoder.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise ReportInvalid(str(error)) from error
    report = Report()
    for name, member in _members(value, "trainerStatus"):
        if name and member is None:
            report.trainer_status = None
        elif name:
            report.trainer_status = _trainer_status(member, report.trainer_status or TrainerStatus())
    return report


def _trainer_status(value: Any, status: TrainerStatus) -> TrainerStatus:
    fields = ("progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime")
    for name, member in _members(value, *fields):
        match name:
            case "progressPercentage":
                status.progress_percentage = _unless_null(member, _whole)
            case "estimatedRemainingSeconds":
                status.estimated_remaining_seconds = _unless_null(member, _whole)
            case "metrics":
                status.metrics = _unless_null(member, _metrics)
            case "lastUpdatedTime":
                status.last_updated_time = _unless_null(member, _time)
    return status


def _metrics(value: Any) -> list[Metric] | None:
    if isinstance(value, _Members) or not isinstance(value, list):
        raise ReportInvalid("metrics is no list")
    metrics = []
    for item in value:
        metric = Metric()
        for name, member in _members(item, "name", "value") if item is not None else ():
            if name and member is not None:
                setattr(metric, name, _text(member))
        metrics.append(metric)
    return metrics or None


def _members(value: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """The members of an object by the name they stand for, empty for one that stands for none of these."""
    if value is None:
        return
    if not isinstance(value, _Members):
        raise ReportInvalid("expected an object")
    known = {_folded(name): name for name in names}
    for name, member in value:
        yield known.get(_folded(name), ""), member


def _folded(name: str) -> str:
    return name.replace("ſ", "s").lower()  # the one letter whose lower case is not its simple folding and matters here


def _unless_null(value: Any, read: Callable[[Any], T]) -> T | None:
    return None if value is None else read(value)


def _whole(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise ReportInvalid("expected a whole number of 32 bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ReportInvalid("expected a string")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half a character is none


def _time(value: Any) -> str:
    try:
        return rfc3339(moment_of(_text(value)))
    except ValueError as error:
        raise ReportInvalid(f"lastUpdatedTime: {error}") from error


def _refuse() -> Any:
    raise ReportInvalid("not a JSON value")
