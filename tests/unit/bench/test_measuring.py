"""Times, CPU and quiet are what they are called."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from comparison import vitals
from comparison.contenders import OURS, Ports, merged
from comparison.load import at_rate
from comparison.orders import Times
from comparison.scenarios import curve, kind_and_count, percentile
from comparison.workload import admission_review, train_job
from trainwright.api.configuration import configuration_of


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 50)) == (50.0, 99.0, 7.0)


def test_a_curve_has_a_hundred_points_and_ends_with_the_last_value() -> None:
    points = curve([3.0, 1.0, 2.0])
    assert len(points) == 100
    assert (points[0], points[-1]) == (1.0, 3.0)


def test_a_wait_begins_when_the_job_is_known_by_answer_or_by_watch() -> None:
    answered_first, watched_first = (1.0, 1.25, 1.5), (3.0, 2.0, 2.75)
    created, noticed, seen = zip(answered_first, watched_first, strict=True)
    assert Times(created=[*created], noticed=[*noticed], seen=[*seen]).waits == [0.5, 0.75]


def test_a_scenario_is_a_kind_and_a_count() -> None:
    assert kind_and_count("burst-1000") == ("burst", 1000)
    for wrong in ("burst", "burst-", "burst-0", "storm-10"):
        with pytest.raises(ValueError, match="there is no scenario"):
            kind_and_count(wrong)


async def test_requests_at_a_rate_are_sent_before_earlier_ones_are_answered() -> None:
    all_sent, sent = asyncio.Event(), 0

    async def one(number: int) -> None:
        nonlocal sent
        sent += 1
        if sent == 20:
            all_sent.set()
        await all_sent.wait()

    times = await asyncio.wait_for(at_rate(200.0, 0.1, one), 10)
    assert len(times.latencies) == 20
    assert times.latencies[0] > times.latencies[-1]  # the first waited for all that came after it


def test_a_process_is_quiet_when_it_has_stopped_working() -> None:
    work = "import time; end = time.process_time() + 0.7\nwhile time.process_time() < end: pass\ntime.sleep(60)"
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        try:
            vitals.wait_until_quiet(process.pid, within=60)
            assert vitals.cpu_seconds(process.pid) >= 0.7
            assert time.monotonic() - began >= vitals.QUIET_SECONDS
        finally:
            process.kill()


def test_a_process_that_never_stops_is_not_waited_for_for_ever() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            with pytest.raises(vitals.NeverQuiet):
                vitals.wait_until_quiet(process.pid, within=0.5)
        finally:
            process.kill()


def test_settings_go_over_what_is_shipped_member_by_member() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}}) == {"a": {"b": 1, "c": 4}, "d": 3}


def test_ours_starts_with_the_configuration_that_is_shipped(tmp_path: Path) -> None:
    file = OURS.manifests / "base/manager/controller_manager_config.yaml"
    shipped = configuration_of(yaml.safe_load(file.read_text()))
    started = configuration_of(OURS.configuration(Ports(1, 2, 3, 4), tmp_path))
    assert started.client_connection == shipped.client_connection
    assert started.controller == shipped.controller
    assert started.leader_election is not None
    assert shipped.leader_election is not None
    assert started.leader_election.lease_duration == shipped.leader_election.lease_duration
    assert started.webhook.port == 1


def test_a_review_carries_the_job_that_the_burst_creates() -> None:
    reviewed = admission_review("job-00001", "bench")["request"]["object"]["spec"]
    created = train_job("job-00001")["spec"]
    assert reviewed["trainer"] == created["trainer"]
