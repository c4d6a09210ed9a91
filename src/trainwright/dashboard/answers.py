"""Answers in JSON, one function for each path under `/api/`. Errors of the API server pass through to `site`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from trainwright.api.resources import TRAIN_JOBS
from trainwright.client.errors import ApiError, ClientError
from trainwright.dashboard import actions, clusterpage, history, objects, runtimes
from trainwright.dashboard.streams import run_directory
from trainwright.dashboard.viewer import Viewer
from trainwright.runs import RunsHome
from trainwright.schema.jsonobject import Json
from trainwright.version import __version__


class Asked(NamedTuple):
    viewer: Viewer
    query: Mapping[str, str]
    body: Mapping[str, Any]
    home: RunsHome | None
    flag: str
    where: str
    door: str

    def word(self, name: str) -> str:
        """A word of the query that must be there."""
        if not (found := self.query.get(name, "")):
            raise Missing(f"{name} is missing")
        return found


class Missing(Exception):
    """There is no such thing."""


class Unwise(Exception):
    """The change makes no sense now."""


async def me(asked: Asked) -> Json:
    viewer = asked.viewer
    namespace = asked.query.get("namespace") or await viewer.home()
    verbs: list[str] = []
    is_away = False
    try:
        if viewer.may_change:
            async with viewer.client() as client:
                verbs = await actions.allowed(client, namespace)
    except ApiError:
        verbs = list(actions.VERBS)  # a server that does not review rights says it when somebody tries
    except ClientError:
        is_away = True
    return {
        "user": await viewer.name() or "",
        "namespace": namespace,
        "verbs": verbs,
        "readOnly": not viewer.may_change,
        "csrf": viewer.csrf,
        "where": asked.where,
        "history": asked.home is not None,
        "door": asked.door,
        "away": is_away,
        "version": __version__,
        "flag": asked.flag,
    }


async def job_objects(asked: Asked) -> Json:
    namespace, name = asked.word("namespace"), asked.word("name")
    async with asked.viewer.client() as client:
        return await objects.of_job(client, namespace, name)


async def job_difference(asked: Asked) -> Json:
    """What the TrainJob of the run before said otherwise."""
    namespace, name = asked.word("namespace"), asked.word("name")
    async with asked.viewer.client() as client:
        job = await client.get(TRAIN_JOBS, name, namespace)
        run = run_directory(asked.home, job)
        if run is None or asked.home is None:
            return await objects.difference_on_cluster(client, job)
    return await asyncio.to_thread(history.difference, asked.home, run.id, job)


def _home(asked: Asked) -> RunsHome:
    if asked.home is None:
        raise Missing("this page shows a cluster, which keeps no runs: the TrainJobs that are there are its history")
    return asked.home


async def runs(asked: Asked) -> Json:
    return await asyncio.to_thread(history.listed, _home(asked))


async def run(asked: Asked) -> Json:
    found = await asyncio.to_thread(history.described, _home(asked), asked.word("id"))
    if found is None:
        raise Missing(f"there is no run {asked.word('id')}")
    return found


async def run_lines(asked: Asked) -> Json:
    return await asyncio.to_thread(history.lines, _home(asked), asked.word("id"))


async def compare(asked: Asked) -> Json:
    ids = [id for id in asked.word("ids").split(",") if id][:6]
    return await asyncio.to_thread(history.compared, _home(asked), ids)


async def all_runtimes(asked: Asked) -> Json:
    async with asked.viewer.client() as client:
        return await runtimes.listed(client, asked.query.get("namespace", ""))


async def cluster(asked: Asked) -> Json:
    async with asked.viewer.client() as client:
        return await clusterpage.described(client, asked.query.get("namespace", ""))


async def act(asked: Asked) -> Json:
    if not asked.viewer.may_change:
        raise Unwise("this page only shows: it was started without --allow-changes")
    verb, namespace = str(asked.body.get("verb")), str(asked.body.get("namespace") or "")
    name, uid = str(asked.body.get("name") or ""), str(asked.body.get("uid") or "")
    if verb not in actions.VERBS or not (namespace and name and uid):
        raise Unwise("verb, namespace, name and uid say what to do")
    async with asked.viewer.client() as client:
        nodes = asked.body.get("nodes")
        change = actions.Change(client, namespace, name, uid, asked.home, nodes if isinstance(nodes, int) else None)
        try:
            await actions.VERBS[verb].carry_out(change)
        except actions.Refused as error:
            raise Unwise(str(error)) from None
    return {"ok": True}


Answer = Callable[[Asked], Awaitable[Any]]
READS: Mapping[str, Answer] = {
    "me": me,
    "objects": job_objects,
    "difference": job_difference,
    "runs": runs,
    "run": run,
    "run/lines": run_lines,
    "compare": compare,
    "runtimes": all_runtimes,
    "cluster": cluster,
}
CHANGES: Mapping[str, Answer] = {"action": act}
