"""A job on the page from its start to its end: followed, its curve moving, a failing rank, suspend and resume."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from browser.site import Visitor, address_of, key_of
from commandline import COMMAND, CommandLine
from selfcheck.leftovers import Processes
from trainwright.api.resources import TRAIN_JOBS
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.schema.jsonobject import Json
from waiting import eventually

SCRIPT = Path(__file__).with_name("train.py")
Visit = Callable[..., Visitor]


def run(cluster: CommandLine, name: str, *more: str) -> None:
    words = ["run", str(SCRIPT), "--runtime", "plain", "--nodes", "2", "--name", name, "--detach", *more]
    cluster(*words, cwd=SCRIPT.parent)


def test_a_job_is_started_and_followed_and_its_curve_moves(cluster: CommandLine, visit: Visit) -> None:
    visitor = visit(address_of(cluster.directory), key_of(cluster.directory))
    page = visitor.go("/")
    page.get_by_text("live", exact=True).wait_for()
    run(cluster, "moving")
    row = page.get_by_role("row", name=re.compile("^moving"))
    row.locator(".state.running").wait_for()
    row.get_by_text("2/2").wait_for()
    row.get_by_role("progressbar").wait_for()
    row.get_by_role("link", name="moving").click()
    chart = page.get_by_label("Curve of loss")
    chart.wait_for()
    before = int(chart.get_attribute("data-points"))
    eventually("the curve moves", lambda: int(chart.get_attribute("data-points")) > before)
    assert page.locator(".chart canvas").count() >= 3, "every reported metric has a curve"
    assert page.locator(".rank").count() == 2
    page.get_by_text(re.compile(r"CPU|memory")).first.wait_for()

    page.get_by_role("tab", name="Logs").click()
    page.locator(".line .a32", has_text="begins").first.wait_for()  # colours as in a terminal
    page.locator(".line", has_text=re.compile(r"step \d+: loss")).first.wait_for()
    bar = page.locator(".line.open").first  # the bar that is drawn again and again is one line
    bar.wait_for()
    text = bar.inner_text()
    eventually("the open line changes", lambda: page.locator(".line.open").first.inner_text() != text)
    page.get_by_role("button", name="rank 1").click()
    page.get_by_label("Output of rank 1").wait_for()
    page.get_by_label("Search the logs").fill("begins")
    page.locator(".line mark").first.wait_for()

    for tab, seen in (("Timeline", "Created"), ("Objects", "JobSet/moving"), ("YAML", "runtimeRef")):
        page.get_by_role("tab", name=tab).click()
        page.get_by_text(seen).first.wait_for()


def test_a_failing_rank_is_found_in_two_clicks(cluster: CommandLine, visit: Visit) -> None:
    run(cluster, "failing", "--env", "FAIL_AT=4", "--env", "PAUSE=0.05")
    page = visit(address_of(cluster.directory), key_of(cluster.directory)).go("/")
    row = page.get_by_role("row", name=re.compile("^failing"))
    row.locator(".state.failed").wait_for()
    assert "rank 1 failed: ValueError: " in row.inner_text()
    row.get_by_role("link", name="failing").click()  # one
    page.get_by_role("heading", name=re.compile("rank 1 failed: ValueError: .* at step 4")).wait_for()
    page.get_by_text("trainwright logs failing --dir").wait_for()
    page.locator(".rank.failed").click()  # two
    page.get_by_label("Output of rank 1").wait_for()
    page.locator(".line", has_text="ValueError").first.wait_for()
    assert "rank=rank" in page.url


def test_suspend_and_resume_ask_first(cluster: CommandLine, visit: Visit) -> None:
    run(cluster, "pausing")
    page = visit(address_of(cluster.directory), key_of(cluster.directory)).go("/jobs/default/pausing")
    page.locator(".head .state.running").wait_for()
    page.get_by_role("button", name="Suspend").click()
    page.get_by_role("button", name="Leave it").click()
    page.get_by_role("button", name="Suspend").click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    page.locator(".head .state.suspended").wait_for()
    assert cluster.parsed("get", "pausing", "-o", "json")["spec"]["suspend"] is True
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    page.locator(".head .state.running").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("There is no TrainJob pausing in default any more.").wait_for()
    assert "the page" in cluster("runs", "describe", "pausing")


def test_an_elastic_job_is_scaled_within_its_limits(
    trainwright: CommandLine, visit: Visit, processes: Processes
) -> None:
    """On an API server alone: the operator's part of it, `status.elastic`, is written by the test."""
    trainwright("up", "--detach", "--api-only")
    elastic = {"minNodes": 1, "maxNodes": 4, "wantedNodes": 2, "nodes": 2, "readyNodes": 2, "selector": "x=y"}
    with ThreadPoolExecutor(1) as thread:  # the browser's driver has this thread's event loop
        thread.submit(lambda: asyncio.run(_make(trainwright, elastic))).result()
    server = processes.start(
        [*COMMAND, "ui", "--no-open", "--dir", str(trainwright.directory)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    server.stdout.readline()
    page = visit(address_of(trainwright.directory), key_of(trainwright.directory)).go("/jobs/default/elastic")
    page.get_by_role("button", name="Scale").click()
    nodes = page.get_by_role("dialog").get_by_label("Nodes")
    nodes.fill("9")
    page.get_by_role("dialog").get_by_role("button", name="Scale").click()
    page.get_by_text("trains on 1 to 4 nodes").wait_for()
    page.get_by_role("button", name="Scale").click()
    nodes.fill("4")
    page.get_by_role("dialog").get_by_role("button", name="Scale").click()
    eventually("it is scaled", lambda: _nodes(trainwright) == 4)


async def _make(cluster: CommandLine, elastic: Json) -> None:
    async with Client.to(kubeconfig.load(cluster.kubeconfig)) as client:
        spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}}
        job = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": "elastic"},
            "spec": spec,
        }
        await client.create(TRAIN_JOBS, job, "default")
        await client.patch(
            TRAIN_JOBS, {"status": {"elastic": elastic}}, name="elastic", namespace="default", subresource="status"
        )


def _nodes(cluster: CommandLine) -> int:
    return int(cluster.parsed("get", "elastic", "-o", "json")["spec"]["trainer"]["numNodes"])
