"""The load generator: a process of its own, so that what it costs is nobody's figure.

In: one order as JSON on the command line. Out: times as JSON on standard output, all measured here by one clock.

    python -m comparison.load '{"type": "Burst", "kubeconfig": …, "count": 1000}'

A wait is counted from when a TrainJob is known to be there, by the answer to its create or by a watch, until a watch
shows its JobSet: that is what the operator makes a user wait.
Requests at a rate are sent when they are due, whether or not earlier ones are answered, and their time counts from
when they were due: a server that stalls cannot hide it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop

from comparison.orders import Burst, ConfigMaps, DryRuns, Orders, Reviews, Single, Times
from comparison.watcher import METADATA_ONLY, Server, Watcher
from comparison.workload import admission_review, job_name, train_job

JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs"


async def burst(order: Burst, server: Server) -> Times:
    names = [job_name(number) for number in range(order.first, order.first + order.count)]
    everything = frozenset(names)
    created: dict[str, float] = {}
    async with server.session() as session:
        job_sets = Watcher(session, JOB_SETS.format(order.namespace), everything, headers=METADATA_ONLY)
        jobs = Watcher(
            session,
            TRAIN_JOBS.format(order.namespace),
            everything,
            headers={"Accept": "application/json"} if order.until == "complete" else METADATA_ONLY,
            wanted=lambda found: found.is_complete,
        )
        async with job_sets, jobs:
            waiting = iter(names)
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for _ in range(order.creators):
                    group.create_task(_creator(session, order.namespace, waiting, created, suspend=order.suspend))
            if order.until in ("jobset", "complete"):
                await job_sets.until(everything)
            if order.until == "complete":
                await jobs.until(everything)
        return Times(
            created=[created[name] - began for name in names],
            noticed=[jobs.noticed.get(name, created[name]) - began for name in names],  # the watch may lag behind
            seen=[job_sets.seen[name] - began for name in names if name in job_sets.seen],
            complete=[jobs.seen[name] - began for name in names if name in jobs.seen],
        )


async def _creator(
    session: aiohttp.ClientSession, namespace: str, names: Iterator[str], created: dict[str, float], *, suspend: bool
) -> None:
    for name in names:
        await _create(session, TRAIN_JOBS.format(namespace), msgspec.json.encode(train_job(name, suspend=suspend)))
        created[name] = time.monotonic()


async def single(order: Single, server: Server) -> Times:
    names = [job_name(number) for number in range(order.first, order.first + order.count)]
    times = Times()
    async with server.session() as session:
        path, everything = TRAIN_JOBS.format(order.namespace), frozenset(names)
        job_sets = Watcher(session, JOB_SETS.format(order.namespace), everything, headers=METADATA_ONLY)
        jobs = Watcher(session, path, everything, headers=METADATA_ONLY)
        async with job_sets, jobs:
            began = time.monotonic()
            for name in names:
                await _create(session, path, msgspec.json.encode(train_job(name)))
                times.created.append(time.monotonic() - began)
                await jobs.until(frozenset([name]))
                await job_sets.until(frozenset([name]))
                times.noticed.append(jobs.noticed[name] - began)
                times.seen.append(job_sets.seen[name] - began)
    return times


async def reviews(order: Reviews, server: Server) -> Times:
    async with server.session(order.server) as session:

        async def one(number: int) -> None:
            body = msgspec.json.encode(admission_review(job_name(number), order.namespace))
            async with session.post(order.path, data=body, headers={"Content-Type": "application/json"}) as answer:
                verdict = msgspec.json.decode(await answer.read())
                assert verdict["response"]["allowed"], verdict

        return await at_rate(order.rate, order.seconds, one)


async def dry_runs(order: DryRuns, server: Server) -> Times:
    async with server.session() as session:
        path = TRAIN_JOBS.format(order.namespace) + "?dryRun=All"

        async def one(number: int) -> None:
            await _create(session, path, msgspec.json.encode(train_job(f"dry-{number:05d}")))

        return await at_rate(order.rate, order.seconds, one)


async def config_maps(order: ConfigMaps, server: Server) -> Times:
    async with server.session() as session:
        text = "x" * order.size
        path = f"/api/v1/namespaces/{order.namespace}/configmaps"
        waiting = iter(range(order.count))
        times = Times()
        began = time.monotonic()

        async def creator() -> None:
            for number in waiting:
                body = {"metadata": {"name": f"foreign-{number:04d}"}, "data": {"text": text}}
                await _create(session, path, msgspec.json.encode(body))
                times.created.append(time.monotonic() - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(creator())
    return times


async def at_rate(rate: float, seconds: float, one: Callable[[int], Awaitable[None]]) -> Times:
    """Calls `one(number)` so many times a second; the latency of each from when it was due, in order."""
    count = int(rate * seconds)
    latencies = [0.0] * count
    began = time.monotonic() + 0.1

    async def timed(number: int, due: float) -> None:
        await one(number)
        latencies[number] = time.monotonic() - due

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            group.create_task(timed(number, due))
    return Times(latencies=latencies)


async def _create(session: aiohttp.ClientSession, path: str, body: bytes) -> None:
    async with session.post(path, data=body, headers={"Content-Type": "application/json"}) as answer:
        text = await answer.read()
        if answer.status != 201:
            raise RuntimeError(f"POST {path}: {answer.status} {text.decode(errors='replace')[:500]}")


async def carry_out(order: Orders) -> Times:
    server = Server(Path(order.kubeconfig))
    actions: dict[type[Any], Callable[[Any, Server], Awaitable[Times]]] = {
        Burst: burst,
        Single: single,
        Reviews: reviews,
        DryRuns: dry_runs,
        ConfigMaps: config_maps,
    }
    async with asyncio.timeout(order.within):
        return await actions[type(order)](order, server)


def main() -> None:
    order = msgspec.json.decode(sys.argv[1], type=Orders)
    times = uvloop.run(carry_out(order))
    sys.stdout.buffer.write(msgspec.json.encode(times))


if __name__ == "__main__":
    main()
