"""What the page is told while it is open: rows of the jobs view, one TrainJob, and its lines."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from trainwright.api.resources import JOB_SETS, POD_METRICS
from trainwright.api.wellknown import JOBSET_NAME, RUN
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, ClientError
from trainwright.dashboard.curves import run_of
from trainwright.dashboard.evidence import Gathering
from trainwright.dashboard.jobpage import ranks_of, timeline_of, usage_of, why_of
from trainwright.dashboard.loglines import Follower
from trainwright.dashboard.picture import Feed, Key, Picture
from trainwright.dashboard.sse import Events
from trainwright.dashboard.viewer import Viewer
from trainwright.pipeline.reasons import reason_of
from trainwright.pipeline.reasons.reason import is_vague
from trainwright.runs import RunDirectory, RunsHome
from trainwright.schema.jsonobject import Json

TOGETHER_SECONDS = 0.2
"""Changes within so long are told together."""
IDLE_SECONDS = 5.0
GATHER_SECONDS = 2.0
USAGE_SECONDS = 3.0


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    event.clear()
    return True


async def jobs(viewer: Viewer, namespace: str) -> Events:
    """All rows first, then those that changed and the uids of those that are gone."""
    async with viewer.picture(namespace) as picture:
        with picture.feed() as feed:
            sent: dict[Key, Json] = {}
            told: Json | None = None
            while not picture.is_complete and not picture.is_away:
                await _wait(feed.news, 1.0)
                yield None
            while True:
                keys = set(picture.keys()) | set(sent) if feed.is_anew else feed.keys | set(picture.unsettled())
                is_first, feed.is_anew, feed.keys = told is None, False, set()
                rows, gone = [], []
                for key in keys:
                    row = picture.row(key)
                    if row is None:
                        if (old := sent.pop(key, None)) is not None:
                            gone.append(old["uid"])
                    elif sent.get(key) != row:
                        if key in sent and sent[key]["uid"] != row["uid"]:
                            gone.append(sent[key]["uid"])
                        rows.append(row)
                        sent[key] = row
                state = {"away": picture.is_away, "failure": picture.failure, "forbidden": picture.forbidden}
                if rows or gone or state != told:
                    yield "rows", {"rows": rows, "gone": gone, "all": is_first, "now": time.time(), **state}
                    told = dict(state, forbidden=list(picture.forbidden))
                else:
                    yield None
                if await _wait(feed.news, IDLE_SECONDS):
                    await asyncio.sleep(TOGETHER_SECONDS)


class JobStream:
    """One TrainJob: its row, reason, ranks, timeline and curve, told again when any of it changes."""

    def __init__(self, viewer: Viewer, key: Key, home: RunsHome | None, flag: str) -> None:
        self._viewer = viewer
        self._key = key
        self._home = home
        self._flag = flag
        self._usage: dict[str, Json] = {}
        self._gathered: tuple[Any, list[str], Json | None] | None = None
        self._gathered_at = self._used_at = 0.0
        self._is_due = True
        """Something has changed since the reason was looked for."""

    async def events(self) -> Events:
        told: Json | None = None
        drawn: tuple[str, int] | None = None
        async with self._viewer.picture(self._key[0]) as picture:
            with picture.feed() as feed:
                while not picture.is_complete and not picture.is_away:
                    await _wait(feed.news, 1.0)
                    yield None
                is_due = True
                while True:
                    detail = await self._detail(picture, is_due=is_due)
                    if detail != told:
                        yield "job", detail
                        told = detail
                    job = picture.job(self._key)
                    curve = self._viewer.curves.note(job) if job else None
                    if job and curve and drawn != (mark := (job["metadata"]["uid"], curve.version)):
                        yield "curve", curve.columns()
                        drawn = mark
                    yield None
                    is_due = await self._news(feed)

    async def _news(self, feed: Feed) -> bool:
        """Waits for a change, or for the next look at what it uses. True when a change concerns this TrainJob."""
        if await _wait(feed.news, GATHER_SECONDS if self._is_due else USAGE_SECONDS):
            await asyncio.sleep(TOGETHER_SECONDS)
        mine = feed.is_anew or self._key in feed.keys
        feed.is_anew, feed.keys = False, set()
        return mine

    async def _detail(self, picture: Picture, *, is_due: bool) -> Json:
        row = picture.row(self._key)
        if row is None:
            gone = not picture.is_away and not picture.failure
            return {"gone": gone, "away": picture.is_away, "failure": picture.failure, "row": None}
        job, jobset, pods = picture.job(self._key), picture.jobset(self._key), picture.pods(self._key)
        assert job is not None
        await self._look(row, is_due=is_due)
        events, forbidden, why = self._gathered or ((), [], None)
        run = run_directory(self._home, job)
        kept = run.read_events() if run is not None else []
        subdomain = str((((jobset or {}).get("spec") or {}).get("network") or {}).get("subdomain") or self._key[1])
        return {
            "row": row,
            "away": picture.is_away,
            "failure": "",
            "gone": False,
            "why": why,
            "ranks": ranks_of(pods, self._usage, subdomain),
            "timeline": timeline_of(job, jobset, pods, events, kept),
            "labels": dict((job["metadata"].get("labels") or {}).items()),
            "command": _command(job),
            "run": run.id if run is not None else "",
            "output": str(run.output) if run is not None else "",
            "workload": f"{JOB_SETS.kind}/{self._key[1]}" if jobset else "",
            "forbidden": [*picture.forbidden, *(kind for kind in forbidden if kind not in picture.forbidden)],
        }

    async def _look(self, row: Json, *, is_due: bool) -> None:
        now = time.monotonic()
        self._is_due |= is_due
        if self._is_due and now - self._gathered_at > GATHER_SECONDS:
            self._gathered_at, self._is_due = now, False
            try:
                async with self._viewer.client() as client:
                    await self._gather(client)
            except ClientError:
                pass  # the picture says that the server is away
        if row["state"] == "Running" and now - self._used_at > USAGE_SECONDS * 0.9:
            self._used_at = now
            self._usage = await self._uses()
        elif row["state"] != "Running":
            self._usage = {}

    async def _gather(self, client: Client) -> None:
        gathering = Gathering(client, *self._key)
        gathered = await gathering.gather()
        if gathered is None:
            return
        reason = reason_of(gathered.evidence)
        if reason is not None and is_vague(reason.code):
            lines = await gathering.lines(list(gathered.evidence.pods))
            reason = reason_of(msgspec.structs.replace(gathered.evidence, logs=lines)) or reason
        self._gathered = gathered.evidence.events, gathered.forbidden, why_of(reason, self._flag, self._key[0])

    async def _uses(self) -> dict[str, Json]:
        try:
            async with self._viewer.client() as client:
                selector = f"{JOBSET_NAME}={self._key[1]}"
                return usage_of((await client.list(POD_METRICS, self._key[0], label_selector=selector)).items or ())
        except (ApiError, ClientError):
            return {}


async def lines(viewer: Viewer, key: Key, home: RunsHome | None) -> Events:
    """The lines of a TrainJob's ranks."""
    async with viewer.picture(key[0]) as picture:
        with picture.feed() as feed:
            while not picture.is_complete and not picture.is_away:
                await _wait(feed.news, 1.0)
                yield None
        job = picture.job(key)
        run = run_directory(home, job) if job else None
        async with Follower(viewer, picture, key, run) as follower:
            async for batch in follower.batches():
                yield ("lines", batch) if batch is not None else None


def run_directory(home: RunsHome | None, job: Json) -> RunDirectory | None:
    """The home of a TrainJob's run, where that is on this machine."""
    if home is None:
        return None
    metadata = job.get("metadata") or {}
    id = run_of(home, metadata, (metadata.get("annotations") or {}).get(RUN))
    return home.of(id) if id else None


def _command(job: Json) -> str:
    trainer = (job.get("spec") or {}).get("trainer") or {}
    return " ".join(map(str, [*(trainer.get("command") or ()), *(trainer.get("args") or ())]))
