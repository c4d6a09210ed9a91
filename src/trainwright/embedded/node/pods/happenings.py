"""The events of running pods: what supervisors put into their journals, written to the API server.

In: the happenings in a pod's record. Out: one event for each, counted up when it happens again. Its name is made of the
pod's uid and what it says, so that a control plane that starts again finds the event that its predecessor wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import PODS
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.node.pods.record import Happening


class Happenings:
    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._written: dict[str, dict[str, int]] = {}

    async def write(self, pod: ObjectMeta, happenings: Iterable[Happening]) -> None:
        """Writes those that are new or have happened more often than what was last written."""
        written = self._written.setdefault(pod.uid, {})
        for happening in happenings:
            text = f"{pod.uid}/{happening['container']}/{happening['reason']}/{happening['message']}"
            suffix = hashlib.sha256(text.encode()).hexdigest()[:16]
            if written.get(suffix) == happening["count"]:
                continue
            written[suffix] = happening["count"]
            await self._events.count(
                PODS,
                pod,
                "Warning" if happening["type"] == "Warning" else "Normal",
                happening["reason"],
                happening["message"],
                suffix=suffix,
                count=happening["count"],
                first=happening["first"],
                last=happening["last"],
            )

    def forget(self, uid: str) -> None:
        self._written.pop(uid, None)
