"""A job's progress (`status.trainerStatus`): in words, and as a bar.

In: a TrainJob as the API serves it. Out: `42 %, 42/100, 2m left, loss=0.123`, or nothing when it has reported nothing.
Metrics named `step` and `total` are how far it is; all others are shown as they are.
"""

from __future__ import annotations

from collections import deque

from trainwright.api.reports import Report, report_of
from trainwright.schema.jsonobject import Json

INTERVAL_SECONDS = 3.0
PACE_SECONDS = 30.0
BAR_CELLS = 24


def progress_of(job: Json) -> str:
    return report_of(job).words()


class ProgressLines:
    """Selects the reports to show while a job is followed: the first at once, then the latest every few seconds.

    Times are from a monotonic clock.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._next = 0.0

    def line(self, job: Json, now: float, *, last: bool = False) -> str | None:
        """The line to show now, if any. The last report of a job is always shown."""
        text = progress_of(job)
        if not text or text == self._shown or (now < self._next and not last):
            return None
        self._shown, self._next = text, now + INTERVAL_SECONDS
        return text

    def wait(self, job: Json, now: float) -> float | None:
        """Seconds until a line that is held back now may be shown; None when there is none."""
        text = progress_of(job)
        return max(0.0, self._next - now) if text and text != self._shown else None


class ProgressBar:
    """The row of a bar: how far the job is, its pace, the time left and its last metrics."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._steps: deque[tuple[float, float]] = deque()
        """Steps with the times at which they were reported, of the last while."""

    def row(self, job: Json, now: float) -> str | None:
        """The row now, None while nothing is known. `now` is from a monotonic clock."""
        report = report_of(job)
        if report.is_empty:
            return None
        self._note(report, now)
        return "  ".join(filter(None, [self._name, _cells(report), report.words(self._pace())]))

    def _note(self, report: Report, now: float) -> None:
        step = _number(report.step)
        if step is None or (self._steps and step == self._steps[-1][1]):
            return
        if self._steps and step < self._steps[-1][1]:  # another epoch, or another attempt
            self._steps.clear()
        self._steps.append((now, step))
        while now - self._steps[0][0] > PACE_SECONDS and len(self._steps) > 2:
            self._steps.popleft()

    def _pace(self) -> str:
        if len(self._steps) < 2:
            return ""
        (begin, first), (end, last) = self._steps[0], self._steps[-1]
        if end <= begin:
            return ""
        pace = (last - first) / (end - begin)
        return f"{pace:.3g}/s" if pace >= 1 else f"{1 / pace:.3g} s each"


def _cells(report: Report) -> str:
    """`█████░░░░░`; nothing when it is not known how much there is to do."""
    step, total = _number(report.step), _number(report.total)
    if report.percent is not None:
        part = report.percent / 100
    elif step is not None and total:
        part = step / total
    else:
        return ""
    filled = int(BAR_CELLS * min(1.0, max(0.0, part)))
    return "█" * filled + "░" * (BAR_CELLS - filled)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None
