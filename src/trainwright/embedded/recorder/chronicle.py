"""The Kubernetes events of a run, each written once, also over restarts of the recorder.

In: events as the API shows them. Out: objects for `events.jsonl`. An event that happened again has a higher count, and
is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.controlloop import Key
from trainwright.embedded.recorder.objects import Event
from trainwright.runs import RunDirectory
from trainwright.schema.jsonobject import Json


def trainjob_of(event: Event, is_trainjob: Callable[[Key], bool]) -> Key | None:
    """The TrainJob that an event is about: by its own name, its workload's, or that of a Job or pod named after it."""
    about = event.involved_object
    namespace, name = about.get("namespace") or "", about.get("name") or ""
    if about.get("kind") in (TRAIN_JOBS.kind, JOB_SETS.kind):
        return Key(namespace, name)
    if about.get("kind") not in ("Job", "Pod"):
        return None
    while "-" in name:  # from the longest name to the shortest
        name = name.rpartition("-")[0]
        if is_trainjob(key := Key(namespace, name)):
            return key
    return None


class Chronicle:
    """The events of one run that are on disk already."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._written = {(event.get("uid"), event.get("count")) for event in run.read_events()}

    def write(self, events: Iterable[Event]) -> None:
        for event in events:
            mark = (event.metadata.uid, event.count or 1)
            if mark not in self._written:
                self._written.add(mark)
                self._run.append_event(_kept(event))


def _kept(event: Event) -> Json:
    about = event.involved_object
    return {
        "time": event.time,
        "type": event.type or "Normal",
        "reason": event.reason or "",
        "object": f"{about.get('kind')}/{about.get('name')}",
        "message": event.message or "",
        "uid": event.metadata.uid,
        "count": event.count or 1,
    }
