"""`trainwright get -w`: a row, or an object, for every change that can be seen."""

from __future__ import annotations

import asyncio

from trainwright.api.resources import JOB_SETS, PODS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.jobs.get import Asked
from trainwright.cli.jobs.tables import Seen, Table, table_of
from trainwright.cli.jobview.kinds import TRAINJOBS
from trainwright.client.mirror import Mirror
from trainwright.pipeline.reasons.sentences import name_of
from trainwright.schema.jsonobject import Json

GONE = "Deleted"


async def follow(asked: Asked) -> None:
    """Prints what is there, and then what changes, until it is interrupted."""
    async with asked.target.client():  # fails at once where there is no cluster
        pass
    news = asyncio.Event()
    mirrors = [
        Mirror(asked.target.kubeconfig, resource, asked.home(resource), asked.selection, news.set)
        for resource in asked.kind.resources
    ]
    beside = []
    if asked.kind == TRAINJOBS and asked.is_table:
        beside.append(Mirror(asked.target.kubeconfig, JOB_SETS, asked.namespace, {}, news.set))
        beside.append(Mirror(asked.target.kubeconfig, PODS, asked.namespace, {"label_selector": JOBSET_NAME}, news.set))
    tasks = [asyncio.create_task(mirror.follow()) for mirror in (*mirrors, *beside)]
    for task in tasks:
        task.add_done_callback(lambda _: news.set())
    shown = _Rows(asked) if asked.is_table else _Objects(asked)
    try:
        while True:
            await news.wait()
            news.clear()
            for task in tasks:
                if task.done():
                    task.result()
            if all(mirror.connected for mirror in (*mirrors, *beside)):
                shown.show(mirrors, beside)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _objects(asked: Asked, mirrors: list[Mirror]) -> list[Json]:
    found = [obj for mirror in mirrors for obj in asked.chosen(mirror.resource, list(mirror.items.values()))]
    return sorted(found, key=lambda obj: (obj["metadata"].get("namespace") or "", name_of(obj)))


class _Rows:
    """Rows of a table: all of them first, then each that shows something new."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._terminal = Terminal()
        self._shown: dict[str, tuple[str, ...]] = {}
        self._last: dict[str, tuple[str, ...]] = {}
        self._widths: list[int] = []

    def show(self, mirrors: list[Mirror], beside: list[Mirror]) -> None:
        objects = _objects(self._asked, mirrors)
        jobsets, pods = (list(mirror.items.values()) for mirror in beside) if beside else ([], [])
        table = table_of(
            self._asked.kind,
            Seen(objects, jobsets, pods),
            wide=self._asked.output == "wide",
            all_namespaces=self._asked.namespace is None,
        )
        rows = []
        present = {}
        for number, obj in enumerate(objects):
            uid = obj["metadata"]["uid"]
            present[uid] = table.without_age(number)
            if self._shown.get(uid) != present[uid]:
                rows.append(table.rows[number])
            self._last[uid] = table.rows[number]
        for uid in self._shown.keys() - present.keys():
            rows.append(_gone(table, self._last.pop(uid)))
        self._shown = present
        self._print(table, rows)

    def _print(self, table: Table, rows: list[tuple[str, ...]]) -> None:
        if rows and not self._widths:
            self._widths = self._terminal.table(table.head, rows)
        elif rows:
            self._terminal.rows(rows, self._widths)


def _gone(table: Table, row: tuple[str, ...]) -> tuple[str, ...]:
    """The last row of an object that is gone, which says so."""
    states = ("STATE", "PHASE")
    cells = [GONE if title in states else cell for title, cell in zip(table.head, row, strict=True)]
    return (*cells[:-1], "" if any(title in states for title in table.head) else GONE)


class _Objects:
    """Whole objects, each time that one changes."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._shown: dict[str, str] = {}

    def show(self, mirrors: list[Mirror], beside: list[Mirror]) -> None:
        objects = _objects(self._asked, mirrors)
        new = [obj for obj in objects if self._shown.get(obj["metadata"]["uid"]) != obj["metadata"]["resourceVersion"]]
        self._shown = {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in objects}
        self._asked.print_objects(new, as_list=False)
