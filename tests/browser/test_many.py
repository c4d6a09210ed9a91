"""A thousand TrainJobs: the list scrolls, filters and sorts without a long task."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from browser.site import Visitor, address_of, key_of
from commandline import COMMAND, CommandLine
from selfcheck.leftovers import Processes
from trainwright.api.resources import TRAIN_JOBS
from trainwright.client import kubeconfig
from trainwright.client.client import Client

JOBS = 1000
LONGEST = 100.0
"""Milliseconds that a task of the page may take of its thread."""


async def _fill(cluster: CommandLine) -> None:
    async with Client.to(kubeconfig.load(cluster.kubeconfig)) as client:

        async def make(number: int) -> None:
            name = f"sweep-{number:04d}"
            job = {
                "apiVersion": TRAIN_JOBS.api_version,
                "kind": TRAIN_JOBS.kind,
                "metadata": {"name": name, "labels": {"sweep": "lr"}},
                "spec": {"runtimeRef": {"name": "torch-distributed"}, "suspend": number % 3 == 0},
            }
            await client.create(TRAIN_JOBS, job, "default")
            metrics = [{"name": "loss", "value": f"{2 / (number + 1):.4f}"}, {"name": "lr", "value": "0.1"}]
            report = {"progressPercentage": number % 101, "metrics": metrics, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
            await client.patch(
                TRAIN_JOBS, {"status": {"trainerStatus": report}}, name=name, namespace="default", subresource="status"
            )

        for begin in range(0, JOBS, 50):
            await asyncio.gather(*(make(number) for number in range(begin, begin + 50)))


def test_a_thousand_jobs_scroll_smoothly(
    trainwright: CommandLine, visit: Callable[..., Visitor], processes: Processes, chromium: object
) -> None:
    trainwright("up", "--detach", "--api-only")
    with ThreadPoolExecutor(1) as thread:  # the browser's driver has this thread's event loop
        thread.submit(lambda: asyncio.run(_fill(trainwright))).result()
    page_server = processes.start(
        [*COMMAND, "ui", "--no-open", "--dir", str(trainwright.directory)], stdout=subprocess.PIPE, text=True
    )
    assert page_server.stdout is not None
    page_server.stdout.readline()
    page = visit(address_of(trainwright.directory), key_of(trainwright.directory)).go("/")
    page.get_by_role("table", name="1000 TrainJobs").wait_for()
    longest = _scrolled(chromium, page)
    print(f"the longest task while scrolling took {longest:.0f} ms of its thread")
    assert longest <= LONGEST
    assert page.locator("table.jobs tbody tr").count() < 120, "only what is seen is in the document"

    page.get_by_label("Filter jobs").fill("sweep-0777")
    page.get_by_role("table", name=re.compile("^1 TrainJob$")).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Suspended").click()
    page.get_by_role("table", name=re.compile("334 TrainJobs")).wait_for()
    page.get_by_role("button", name="Job", exact=True).click()
    page.get_by_role("row", name=re.compile("^sweep-0000")).wait_for()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="sweep-0003").wait_for()


def _scrolled(chromium: Any, page: Any) -> float:
    """Scrolls through the whole list, and returns the milliseconds of CPU of the longest task meanwhile.

    The browser's own trace has them: what other processes of this machine take does not count.
    """
    chromium.start_tracing(page=page, categories=["toplevel", "__metadata"])
    for _ in range(60):
        page.mouse.wheel(0, 900)
        page.wait_for_timeout(16)
    page.get_by_role("row", name=re.compile("^sweep-")).first.wait_for()
    page.wait_for_timeout(200)
    events = json.loads(chromium.stop_tracing())["traceEvents"]
    main = {(it["pid"], it["tid"]) for it in events if it.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [it for it in events if "RunTask" in it["name"] and (it["pid"], it["tid"]) in main and "tdur" in it]
    assert len(tasks) > 100, "the trace has the tasks of the page"
    return max(float(task["tdur"]) for task in tasks) / 1000
