"""What a training reported last (`status.trainerStatus`), as a value and in words.

Metrics named `step` and `total` are how far it is; all others are shown as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from trainwright.api.phases import condition
from trainwright.schema.jsonobject import Json

METRICS_SHOWN = 3


class Report(NamedTuple):
    """What the training said last."""

    percent: int | None
    step: str | None
    total: str | None
    remaining: int | None
    metrics: tuple[tuple[str, str], ...]

    @property
    def is_empty(self) -> bool:
        return self == Report(None, None, None, None, ())

    def words(self, pace: str = "") -> str:
        parts = []
        if self.percent is not None:
            parts.append(f"{self.percent} %")
        if self.step is not None and self.total is not None:
            parts.append(f"{self.step}/{self.total}")
        if self.remaining:
            parts.append(f"{_duration(self.remaining)} left")
        if pace:
            parts.append(pace)
        parts += [f"{name}={value}" for name, value in self.metrics[:METRICS_SHOWN]]
        if len(self.metrics) > METRICS_SHOWN:
            parts.append(f"and {len(self.metrics) - METRICS_SHOWN} more")
        return ", ".join(parts)


def report_of(job: Json) -> Report:
    status = (job.get("status") or {}).get("trainerStatus") or {}
    values = {metric["name"]: metric["value"] for metric in status.get("metrics") or ()}
    has_ended = condition(job, "Complete") or condition(job, "Failed")
    step = total = None
    if "step" in values and "total" in values:
        step, total = values.pop("step"), values.pop("total")
    return Report(
        status.get("progressPercentage"),
        step,
        total,
        None if has_ended else status.get("estimatedRemainingSeconds"),
        tuple(values.items()),
    )


def _duration(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60}s" if seconds < 600 and seconds % 60 else f"{seconds // 60}m"
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes}m" if minutes and hours < 48 else f"{hours}h"
