"""`bench/limits.toml`: ratios that were reached, with the runs that set them; and whether a result is worse.

In: a result. Out: what got worse by more than `TOLERANCE`. The file is written by `--set-limits` from a result and
reviewed as a diff; a ratio of one form of the comparison says nothing about another, so each entry names its form.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from comparison.programs import ROOT
from comparison.results import Ratio

FILE = ROOT / "bench" / "limits.toml"
TOLERANCE = 0.20

HEADER = """\
# What has been reached; less is better. `make bench-check` fails when a median is more than 20 % above its `ratio` and
# above all the `runs` that set it. form full and check: ours over the better configuration of the reference; laptop:
# over a bare interpreter. Written by `python bench/compare.py --set-limits RESULT.json`, and bench/laptop.py likewise.
"""


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    form: str
    measure: str
    ratio: float
    runs: list[float]
    result: str


class Judged(msgspec.Struct, frozen=True):
    """A measure beside its limit."""

    ratio: Ratio
    limit: Limit

    @property
    def change(self) -> float:
        return self.ratio.median / self.limit.ratio - 1.0

    @property
    def is_worse(self) -> bool:
        """More than a fifth above the median that set the limit, and above each of the runs that did."""
        return self.ratio.median > max(self.limit.ratio * (1.0 + TOLERANCE), *self.limit.runs)


def read(path: Path = FILE) -> list[Limit]:
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text()).get("limit", [])
    return msgspec.convert(entries, list[Limit])


def judge(found: Iterable[Ratio], limits: Iterable[Limit], form: str) -> list[Judged]:
    """What was measured and has a limit in this form."""
    by_measure = {limit.measure: limit for limit in limits if limit.form == form}
    return [Judged(ratio, by_measure[ratio.measure]) for ratio in found if ratio.measure in by_measure]


def unmeasured(found: Iterable[Ratio], limits: Iterable[Limit], form: str) -> list[str]:
    """Limits of this form of which nothing was measured: a check that measures nothing must not pass."""
    measured = {ratio.measure for ratio in found}
    return [limit.measure for limit in limits if limit.form == form and limit.measure not in measured]


def replaced(limits: Iterable[Limit], form: str, found: Iterable[Ratio], result: str) -> list[Limit]:
    """The limits with those of one form and of the scenarios that were measured set anew; `result` names the file that
    they come from.
    """
    new = [Limit(form, ratio.measure, round(ratio.median, 4), ratio.runs, result) for ratio in found]
    measured = {_scenario(limit) for limit in new}
    return [*(limit for limit in limits if limit.form != form or _scenario(limit) not in measured), *new]


def text_of(limits: Iterable[Limit]) -> str:
    parts = [HEADER]
    for limit in limits:
        parts.append(
            f"\n[[limit]]\nform = {_quoted(limit.form)}\nmeasure = {_quoted(limit.measure)}\nratio = {limit.ratio}\n"
            f"runs = {limit.runs}\nresult = {_quoted(limit.result)}\n"
        )
    return "".join(parts)


def _scenario(limit: Limit) -> str:
    return limit.measure.partition("/")[0]


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
