"""The attempts of a TrainJob whose runtime starts it again after a failure.

In: its JobSet and pods, again and again. Out: a sentence for each restart, with what failed before it.
"""

from __future__ import annotations

from trainwright.pipeline.reasons import Evidence
from trainwright.pipeline.reasons.failures import find
from trainwright.pipeline.reasons.reason import worst
from trainwright.schema.jsonobject import Json


def attempt_of(jobset: Json) -> tuple[int, int | None]:
    """Which attempt runs, and how many there may be; the first is 1."""
    restarts = int((jobset.get("status") or {}).get("restarts") or 0)
    most = ((jobset.get("spec") or {}).get("failurePolicy") or {}).get("maxRestarts")
    return restarts + 1, None if most is None else int(most) + 1


class Attempts:
    """Notices restarts. The pods that failed are deleted by then, so it remembers what they said."""

    def __init__(self) -> None:
        self._attempt = 1
        self._why = ""

    def restarted(self, jobset: Json | None, pods: list[Json]) -> str | None:
        """The sentence about a restart that has happened since the last call."""
        if (found := worst(find(Evidence(job={}, pods=pods)))) is not None:
            self._why = f"{found.what}; "
        if jobset is None:
            return None
        attempt, most = attempt_of(jobset)
        if attempt <= self._attempt:
            return None
        self._attempt = attempt
        why, self._why = self._why, ""
        return f"{why}starting again: attempt {attempt}{f' of {most}' if most else ''}"
