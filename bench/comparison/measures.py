"""Which figures there are, which of them are compared, and what they should be.

A measure is a scenario and a figure: `burst-1000/wait_p99`. Its ratio is ours over the reference's better
configuration in the same run; less is better for every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`compared`: a ratio is made of it. `limited`: it may not get worse (the others are too small to repeat)."""

    title: str
    unit: str
    compared: bool = True
    limited: bool = True


FIGURES: Mapping[str, Figure] = {
    "seconds": Figure("time to all JobSets", "s"),
    "creators": Figure("time the creators need", "s", compared=False, limited=False),
    "complete_seconds": Figure("time to all Complete", "s"),
    "wait_p50": Figure("wait for its JobSet, p50", "s"),
    "wait_p99": Figure("wait for its JobSet, p99", "s"),
    "wait_max": Figure("wait for its JobSet, longest", "s", compared=False, limited=False),
    "requests_until": Figure("requests until its JobSet exists", ""),
    "requests": Figure("requests in all", ""),
    "cpu_ms": Figure("CPU for each TrainJob", "ms"),
    "rss_rest": Figure("RSS at rest", "MB"),
    "rss_after": Figure("RSS after", "MB"),
    "rss_peak": Figure("RSS at its peak", "MB"),
    "idle_cpu_ms": Figure("CPU when idle, for each second", "ms", limited=False),
    "restart_seconds": Figure("restart until the first reconcile", "s"),
    "restart_cpu": Figure("CPU of a restart until quiet", "s"),
    "restart_requests": Figure("requests after a restart, for each TrainJob", "", compared=False, limited=False),
    "restart_rss": Figure("RSS after a restart", "MB"),
    "restart_peak": Figure("RSS at the peak of a restart", "MB"),
    "webhook_p50_ms": Figure("validating webhook at 50/s, p50", "ms"),
    "webhook_p99_ms": Figure("validating webhook at 50/s, p99", "ms"),
    "admission_p50_ms": Figure("create through the API server at 50/s, p50", "ms"),
    "admission_p99_ms": Figure("create through the API server at 50/s, p99", "ms", limited=False),
    "rss": Figure("RSS", "MB", limited=False),
    "rss_kb": Figure("memory for each TrainJob", "KB", limited=False),
    "flat_cpu_ms": Figure("CPU for each TrainJob, the most over a tenth", "", compared=False, limited=False),
    "flat_rss_kb": Figure("memory for each TrainJob, the most over a tenth", "", compared=False, limited=False),
    "foreign_mb": Figure("memory for 700 foreign ConfigMaps of 200 KB", "MB", compared=False, limited=False),
    "foreign_restart_mb": Figure("the same, started with them there", "MB", compared=False, limited=False),
}


@dataclass(frozen=True)
class Goal:
    """At most so much: of the ratio, or of our own figure (`absolute`).

    The larger of it and `or_creators` times the creators' time counts where that is given, since nothing can be faster
    than those who ask; it is their least with any contender, lest slow webhooks excuse a slow operator.
    """

    at_most: float
    absolute: bool = False
    or_creators: float | None = None


GOALS: Mapping[str, Goal] = {
    "burst-1000/seconds": Goal(0.6, or_creators=1.1),
    "burst-1000/wait_p99": Goal(0.1),
    "burst-1000/requests_until": Goal(1.1, absolute=True),
    "complete-1000/requests": Goal(4.0, absolute=True),
    "burst-1000/cpu_ms": Goal(0.4),
    "burst-1000/rss_after": Goal(0.7),
    "burst-5000/rss_after": Goal(0.5),
    "single-100/wait_p50": Goal(0.7),
    "burst-5000/restart_seconds": Goal(0.5),
    "single-100/webhook_p99_ms": Goal(1.0),
    "growth/flat_cpu_ms": Goal(1.15, absolute=True),
    "growth/flat_rss_kb": Goal(1.15, absolute=True),
    "foreign/foreign_mb": Goal(1.0, absolute=True),
}


def figure_of(name: str) -> Figure:
    """By the last part of a name such as `1000/cpu_ms`, with what stands before it in the title."""
    prefix, _, last = name.rpartition("/")
    figure = FIGURES[last]
    if not prefix:
        return figure
    return Figure(f"{figure.title}, {int(prefix):,} of them", figure.unit, figure.compared, limited=False)
