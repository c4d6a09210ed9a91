"""A job's progress (`status.trainerStatus`) as one line, shown every few seconds at most.

In: a TrainJob as the API serves it. Out: `42 %, 2m left, loss=0.123`, or nothing when it has reported nothing.
"""

from __future__ import annotations

from trainwright.cli.sentences import condition
from trainwright.schema.jsonobject import Json

METRICS_SHOWN = 3
INTERVAL_SECONDS = 3.0


def progress_of(job: Json) -> str:
    status = job.get("status", {}).get("trainerStatus") or {}
    parts = []
    if (percentage := status.get("progressPercentage")) is not None:
        parts.append(f"{percentage} %")
    remaining = status.get("estimatedRemainingSeconds")
    if remaining and not (condition(job, "Complete") or condition(job, "Failed")):
        parts.append(f"{_duration(remaining)} left")
    metrics = status.get("metrics") or []
    parts += [f"{metric['name']}={metric['value']}" for metric in metrics[:METRICS_SHOWN]]
    if len(metrics) > METRICS_SHOWN:
        parts.append(f"and {len(metrics) - METRICS_SHOWN} more")
    return ", ".join(parts)


def _duration(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60}s" if seconds < 600 and seconds % 60 else f"{seconds // 60}m"
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes}m" if minutes and hours < 48 else f"{hours}h"


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
