"""`trainwright events`: what happened to a TrainJob and all of its parts, or in a namespace, oldest first."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence

from trainwright.api.resources import EVENTS, TRAIN_JOBS
from trainwright.api.times import seconds_of
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.durations import duration
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.jobview.kinds import job_names
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.cli.jobview.parts import Parts, events_of, last_seen, parts_of
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.client.mirror import Mirror
from trainwright.schema.jsonobject import Json

HEAD = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


def events(
    words: Sequence[str],
    types: str | None,
    all_namespaces: bool,
    output: str,
    watch: bool,
    target: Target,
    namespace: str,
) -> int:
    names = [job_named(target, name, namespace) for name in job_names(words)]
    asked = _Asked(target, names, types, None if all_namespaces and not names else namespace, output)
    carry_out(asked.follow() if watch else asked.show())
    return 0


class _Asked:
    def __init__(self, target: Target, names: list[str], types: str | None, namespace: str | None, output: str) -> None:
        self._target = target
        self._names = names
        self._types = {word.strip().lower() for word in types.split(",")} if types else None
        self._namespace = namespace
        self._output = output

    async def show(self) -> None:
        async with self._target.client() as client:
            parts = await self._parts(client)
            found = [event for event in await events_of(client, self._namespace) if self._wants(event, parts)]
        if self._output == "json":
            listed = {"apiVersion": "v1", "items": found, "kind": "List", "metadata": {"resourceVersion": ""}}
            print(json.dumps(listed, indent=2))
        elif found:
            Terminal().table(HEAD, rows_of(found))
        else:
            print(f"no events of {' '.join(self._names) or f'namespace {self._namespace}'}", file=sys.stderr)

    async def follow(self) -> None:
        """Prints the events there are, and each that comes, until it is interrupted."""
        async with self._target.client() as client:
            parts = await self._parts(client)
        news = asyncio.Event()
        mirror = Mirror(self._target.kubeconfig, EVENTS, self._namespace, {}, news.set)
        task = asyncio.create_task(mirror.follow())
        task.add_done_callback(lambda _: news.set())
        terminal, widths, shown = Terminal(), [0], set[tuple[str, str]]()
        try:
            while True:
                await news.wait()
                news.clear()
                if task.done():
                    task.result()
                new = [
                    event
                    for event in sorted(mirror.items.values(), key=last_seen)
                    if _identity(event) not in shown and self._wants(event, parts)
                ]
                shown |= {_identity(event) for event in new}
                if self._output == "json":
                    for event in new:
                        print(json.dumps(event), flush=True)
                elif new and widths == [0]:
                    widths = terminal.table(HEAD, rows_of(new))
                elif new:
                    terminal.rows(rows_of(new), widths)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _parts(self, client: Client) -> list[Parts]:
        found = []
        for name in self._names:
            try:
                job = await client.get(TRAIN_JOBS, name, self._namespace)
            except NotFound:
                raise await no_such_job(client, name, str(self._namespace)) from None
            found.append(await parts_of(client, job))
        return found

    def _wants(self, event: Json, parts: list[Parts]) -> bool:
        kind = str(event.get("type") or "").lower()
        return (self._types is None or kind in self._types) and (
            not self._names or any(part.concerns(event) for part in parts)
        )


def _identity(event: Json) -> tuple[str, str]:
    return event["metadata"]["uid"], last_seen(event)


def rows_of(found: Sequence[Json]) -> Sequence[tuple[str, ...]]:
    """Events as rows of a table."""
    rows = []
    for event in found:
        about = event.get("involvedObject") or event.get("regarding") or {}
        count = int((event.get("series") or {}).get("count") or event.get("count") or 1)
        rows.append(
            (
                duration(time.time() - seconds_of(last_seen(event))) + (f" (x{count})" if count > 1 else ""),
                str(event.get("type") or ""),
                str(event.get("reason") or ""),
                f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}",
                str(event.get("message") or event.get("note") or "").strip().replace("\n", " "),
            )
        )
    return rows
