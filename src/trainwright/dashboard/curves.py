"""The metrics of runs over time.

In: TrainJobs as they change, and the reports that are kept in the homes of runs. Out: columns of numbers for a chart,
and a few points for a sparkline. A cluster keeps only the last report of a job, so its curve begins when somebody
looks; on the local cluster every report is kept with the run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from trainwright.api.wellknown import RUN
from trainwright.runs import RunsHome
from trainwright.runs.record import seconds_in
from trainwright.schema.jsonobject import Json

MOST_POINTS = 2000
SPARK_POINTS = 32
PLACES = ("step", "total")
"""Metrics that say how far a training is."""


class Curve:
    """The reports of one run: (time, step, values), oldest first. Where there are too many, every second one goes."""

    def __init__(self) -> None:
        self._points: list[tuple[float, float | None, dict[str, float]]] = []
        self._texts: dict[str, str] = {}
        self.version = 0

    def add(self, time: float | None, step: Any, metrics: Mapping[str, Any]) -> bool:
        """Notes a report; False when it is the last one again, or says nothing that can be drawn."""
        numbers = {name: number for name, text in metrics.items() if (number := number_of(text)) is not None}
        values = {name: number for name, number in numbers.items() if name not in PLACES}
        place = number_of(step) if step is not None else numbers.get("step")
        if time is None or not (values or place is not None) or (self._points and time <= self._points[-1][0]):
            return False
        self._points.append((time, place, values))
        if len(self._points) > MOST_POINTS:
            self._points = self._points[:-1:2] + self._points[-1:]
        self.version += 1
        return True

    def columns(self) -> Json:
        """`time`, `step` and each metric as columns of equal length; null where a report did not have a value."""
        names = list(dict.fromkeys(name for _, _, values in self._points for name in values))
        return {
            "time": [time for time, _, _ in self._points],
            "step": [step for _, step, _ in self._points],
            "metrics": {name: [values.get(name) for _, _, values in self._points] for name in names},
        }

    def spark(self) -> Json | None:
        """The last points of the metric that tells most: a loss, else the first one."""
        recent = self._points[-SPARK_POINTS * 4 :]
        names = list(dict.fromkeys(name for _, _, values in recent for name in values))
        if not names:
            return None
        name = next((name for name in names if "loss" in name.lower()), names[0])
        found = [values[name] for _, _, values in recent if name in values]
        step = max(1, math.ceil(len(found) / SPARK_POINTS))
        return {"name": name, "points": found[::-1][::step][::-1]}


class Curves:
    """The curves of the TrainJobs that somebody looks at. `home` has the reports of runs on this machine."""

    def __init__(self, home: RunsHome | None = None) -> None:
        self._home = home
        self._curves: dict[str, Curve] = {}
        self._order: deque[str] = deque()

    def note(self, job: Json) -> Curve | None:
        """The curve of a TrainJob, with its last report; None for one that has reported nothing."""
        status = (job.get("status") or {}).get("trainerStatus") or {}
        metadata = job.get("metadata") or {}
        uid = str(metadata.get("uid") or "")
        curve = self._curves.get(uid)
        if curve is None:
            if not status:
                return None
            curve = self._curves[uid] = Curve()
            self._order.append(uid)
            if len(self._order) > 5000:
                self._curves.pop(self._order.popleft(), None)
            run = (metadata.get("annotations") or {}).get(RUN)
            for report in self._kept(metadata, run):
                add_kept(curve, report)
        reported = {str(item.get("name")): item.get("value") for item in status.get("metrics") or ()}
        curve.add(seconds_in(status.get("lastUpdatedTime")), None, reported)
        return curve

    def _kept(self, metadata: Json, run: str | None) -> Iterable[Json]:
        if self._home is None:
            return ()
        id = run_of(self._home, metadata, run)
        return self._home.of(id).read_metrics() if id else ()


def run_of(home: RunsHome, metadata: Json, chosen: str | None) -> str | None:
    """The id of the run that a TrainJob of the local cluster has here."""
    from trainwright.api.runid import derived_id, is_run_id

    name, uid = str(metadata.get("name") or ""), str(metadata.get("uid") or "")
    for id in (chosen, derived_id(name, uid), derived_id(name, uid, letters=32)):
        if id and is_run_id(id) and home.of(id).record.exists():
            return id
    return None


def add_kept(curve: Curve, report: Json) -> None:
    metrics = report.get("metrics")
    curve.add(seconds_in(report.get("time")), report.get("step"), metrics if isinstance(metrics, dict) else {})


def curve_of(reports: Iterable[Json]) -> Curve:
    """The curve of a run that is kept."""
    curve = Curve()
    for report in reports:
        add_kept(curve, report)
    return curve


def number_of(text: Any) -> float | None:
    """A number that can be drawn: neither text nor infinite."""
    if isinstance(text, bool):
        return None
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) < 1e300 else None
