"""What is done on a stage, and the figures that come of it.

A scenario is named by its kind and how many TrainJobs it takes: `burst-1000`, `single-100`.

    burst      created by 8 clients at once, the operator alone: JobSet's CRD is there and nobody acts on it.
               Then idle for a while (from 1,000 on), then restarted with all of them present
    jobset     the same with the JobSet controller, its webhooks and the Job controller at work
    complete   the same with a scheduler and KWOK's nodes, until every TrainJob is Complete
    single     one at a time; then admissions at 50 a second
    creators   nobody at work, no webhooks: what the clients and the API server need by themselves
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from comparison import vitals
from comparison.contenders import Contender
from comparison.orders import Burst, DryRuns, Reviews, Single, Times
from comparison.requests import Counts
from comparison.stage import VALIDATING_PATH, Stage
from comparison.workload import job_name

IDLE_SECONDS, IDLE_FROM = 10.0, 1_000
RATE_SECONDS = 10.0
CURVE_POINTS = 100

JOB_SET_PARTS = ("kube-controller-manager", "jobset")
ALL_PARTS = (*JOB_SET_PARTS, "kube-scheduler", "kwok")


class Outcome(msgspec.Struct):
    """Figures by name; requests by when and what, for each TrainJob; curves: the seconds at which each percent was."""

    figures: dict[str, float] = {}
    requests: dict[str, dict[str, float]] = {}
    curves: dict[str, list[float]] = {}
    notes: dict[str, str] = {}


def burst(contender: Contender | None, directory: Path, count: int) -> Outcome:
    with Stage(contender, directory) as stage:
        outcome = _started(stage, count, until="jobset")
        if count >= IDLE_FROM:
            outcome.figures["idle_cpu_ms"] = _idle(stage)
        _restarted(stage, count, outcome)
        return outcome


def with_job_set(contender: Contender | None, directory: Path, count: int) -> Outcome:
    with Stage(contender, directory, parts=JOB_SET_PARTS) as stage:
        return _started(stage, count, until="jobset")


def to_complete(contender: Contender | None, directory: Path, count: int) -> Outcome:
    with Stage(contender, directory, parts=ALL_PARTS) as stage:
        return _started(stage, count, until="complete")


def one_at_a_time(contender: Contender | None, directory: Path, count: int) -> Outcome:
    with Stage(contender, directory) as stage:
        waits = stage.load(Single(**stage.where, count=count)).waits
        stage.wait_until_quiet()
        reviews = stage.load(
            Reviews(**stage.where, server=stage.webhooks, path=VALIDATING_PATH, seconds=RATE_SECONDS)
        ).latencies
        stage.wait_until_quiet()
        admissions = stage.load(DryRuns(**stage.where, seconds=RATE_SECONDS)).latencies
        return Outcome(
            figures={
                "wait_p50": percentile(waits, 50),
                "wait_p99": percentile(waits, 99),
                "webhook_p50_ms": percentile(reviews, 50) * 1000,
                "webhook_p99_ms": percentile(reviews, 99) * 1000,
                "admission_p50_ms": percentile(admissions, 50) * 1000,
                "admission_p99_ms": percentile(admissions, 99) * 1000,
            }
        )


def creators_alone(contender: Contender | None, directory: Path, count: int) -> Outcome:
    with Stage(None, directory) as stage:
        times = stage.load(Burst(**stage.where, count=count, until="created"))
        return Outcome(figures={"creators": max(times.created)}, curves={"created": curve(times.created)})


KINDS: Mapping[str, Callable[[Contender | None, Path, int], Outcome]] = {
    "burst": burst,
    "jobset": with_job_set,
    "complete": to_complete,
    "single": one_at_a_time,
    "creators": creators_alone,
}


def kind_and_count(name: str) -> tuple[str, int]:
    """`burst-1000` as (`burst`, 1000); `ValueError` with what there is when it is none."""
    kind, _, count = name.partition("-")
    if kind not in KINDS or not count.isdecimal() or int(count) < 1:
        raise ValueError(f"there is no scenario {name!r}; write KIND-COUNT with a kind of {', '.join(KINDS)}")
    return kind, int(count)


def play(name: str, contender: Contender | None, directory: Path) -> Outcome:
    kind, count = kind_and_count(name)
    return KINDS[kind](contender, directory, count)


# What scenarios have in common


def _started(stage: Stage, count: int, *, until: str) -> Outcome:
    """From rest, through a burst, to quiet again: time, waits, requests, CPU and memory."""
    rest, cpu, since = vitals.memory(stage.pid), vitals.cpu_seconds(stage.pid), stage.plane.audit_position()
    times = stage.load(Burst(**stage.where, count=count, until=until))
    stage.wait_until_quiet()
    used, after = vitals.cpu_seconds(stage.pid) - cpu, vitals.memory(stage.pid)
    counts = stage.requests(since, [job_name(number) for number in range(count)])
    outcome = Outcome(
        figures=time_figures(times)
        | {
            "cpu_ms": used / count * 1000,
            "rss_rest": rest.now,
            "rss_after": after.now,
            "rss_peak": after.peak,
            "requests_until": counts.until_job_set.total() / count,
            "requests": counts.made_for_jobs.total() / count,
        },
        curves={"created": curve(times.created), "seen": curve(times.seen)},
    )
    _note_requests(outcome, counts, count)
    if times.complete:
        outcome.curves["complete"] = curve(times.complete)
    return outcome


def time_figures(times: Times) -> dict[str, float]:
    figures = {
        "seconds": max(times.seen),
        "creators": max(times.created),
        "wait_p50": percentile(times.waits, 50),
        "wait_p99": percentile(times.waits, 99),
        "wait_max": max(times.waits),
    }
    return figures | ({"complete_seconds": max(times.complete)} if times.complete else {})


def _note_requests(outcome: Outcome, counts: Counts, jobs: int) -> None:
    def per_job(counter: Counter[str]) -> dict[str, float]:
        return {what: round(number / jobs, 4) for what, number in counter.most_common()}

    outcome.requests["until its JobSet exists"] = per_job(counts.until_job_set)
    outcome.requests["in all"] = per_job(counts.made_for_jobs)
    outcome.requests["counted apart"] = per_job(counts.apart)
    outcome.requests["refused"] = per_job(counts.refused)


def _idle(stage: Stage) -> float:
    """CPU of a quiet operator, in ms for each second."""
    began, cpu = time.monotonic(), vitals.cpu_seconds(stage.pid)
    time.sleep(IDLE_SECONDS)
    return (vitals.cpu_seconds(stage.pid) - cpu) / (time.monotonic() - began) * 1000


def _restarted(stage: Stage, count: int, outcome: Outcome) -> None:
    since = stage.plane.audit_position()
    seconds, released = stage.restart()
    stage.wait_until_quiet()
    counts = stage.requests(since)
    outcome.figures["restart_seconds"] = seconds
    outcome.figures["restart_cpu"] = vitals.cpu_seconds(stage.pid)
    outcome.figures["restart_requests"] = counts.made_for_jobs.total() / count
    outcome.figures["restart_rss"] = vitals.memory(stage.pid).now
    outcome.notes["lease at its end"] = "released" if released else "left until it expires"
    outcome.requests["after a restart"] = {
        what: round(number / count, 4) for what, number in counts.made_for_jobs.most_common()
    }


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def curve(values: Sequence[float]) -> list[float]:
    """When each percent was reached: of any number of values, so many points as make a curve."""
    return [round(percentile(values, point * 100 / CURVE_POINTS), 4) for point in range(1, CURVE_POINTS + 1)]
