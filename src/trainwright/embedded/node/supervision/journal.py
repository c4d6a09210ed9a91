"""What happened to a pod's containers, for the node to write as Kubernetes events.

In: happenings, in a kubelet's words. Out: a list in the pod's record, equal ones counted in one entry, the oldest
dropped first. The supervisor keeps it, so that nothing is lost while the control plane is away. Standard library only.
"""

from __future__ import annotations

import time

from trainwright.embedded.node.pods.record import Happening, now

MOST_ENTRIES = 40
REPEAT_SECONDS = 30.0
"""How often an entry that repeats itself is worth a new record, and a write to the API server."""

Key = tuple[str, str, str]


class Journal:
    def __init__(self) -> None:
        self._told: dict[Key, Happening] = {}
        self._times: dict[Key, tuple[int, float]] = {}

    @property
    def entries(self) -> list[Happening]:
        return list(self._told.values())

    def tell(self, type: str, reason: str, message: str, container: str) -> None:
        """Adds an entry, or counts up the one that says the same. An entry that repeats itself soon changes nothing
        until some time has passed, so that a failing probe does not write every second.
        """
        key = (reason, message, container)
        present = time.monotonic()
        count, recorded = self._times.get(key, (0, -REPEAT_SECONDS))
        if present - recorded < REPEAT_SECONDS:
            self._times[key] = (count + 1, recorded)
            return
        before = self._told.pop(key, None)  # and to the end: the oldest entry is the one that was told longest ago
        self._times[key] = (count + 1, present)
        self._told[key] = {
            "type": type,
            "reason": reason,
            "message": message,
            "container": container,
            "count": count + 1,
            "first": before["first"] if before else now(),
            "last": now(),
        }
        for oldest in list(self._told)[:-MOST_ENTRIES]:
            del self._told[oldest], self._times[oldest]
