"""Pods that print nothing: the condition `trainwright.dev/Quiet`, with the stacks of their processes.

In: a running pod's logs, and after how many seconds without a line it counts as quiet. Out: a condition for its status,
and when to look again. What it means is for others to say: a training that reports progress may print nothing. A pod is
looked at when it could have become quiet, and every few seconds while it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from trainwright.api.times import seconds_of
from trainwright.api.wellknown import HANG_AFTER, QUIET
from trainwright.embedded.node.pods.record import PodDirectory, PodRecord
from trainwright.embedded.node.pods.stacks import Found, Stacks
from trainwright.schema.jsonobject import Json

DEFAULT_SECONDS = 120.0
AGAIN_SECONDS = 3.0
"""How often a quiet pod is looked at: it may have gone on."""
SETTLE_SECONDS = 0.5
"""How long faulthandler has to write its stacks."""
MAX_PAUSE_SECONDS = 600.0
MESSAGE_LENGTH = 8000

Condition = tuple[str, bool, Json]


@dataclass(slots=True)
class _Silence:
    """What is remembered of a quiet pod: its last line, and what was found when it became quiet."""

    since: float
    message: str
    look_at: float
    """When its stacks are looked at again: a slow start may be something else by then."""
    pause: float


class QuietPods:
    """Looks at the pods of one node. Blocks: call it in a thread."""

    def __init__(self, after: float = DEFAULT_SECONDS, wall: Callable[[], float] = time.time) -> None:
        self._after = after
        self._wall = wall
        self._silent: dict[str, _Silence] = {}
        self._stacks = Stacks()

    def forget(self, uid: str) -> None:
        self._silent.pop(uid, None)

    def look(self, pod: Json, directory: PodDirectory, record: PodRecord) -> tuple[Condition | None, float]:
        """The condition to report, None when there is nothing to say, and the seconds until the next look."""
        after = _threshold(pod, self._after)
        last = _last_line(directory, record)
        if not after or last is None:
            self.forget(directory.uid)
            return None, float("inf")
        silence = self._silent.get(directory.uid)
        now = self._wall()
        if silence is not None and last <= silence.since:
            if now >= silence.look_at:
                self._look_again(silence, directory, record, after, now)
            return (QUIET, True, {"reason": "NoOutput", "message": silence.message}), AGAIN_SECONDS
        left = last + after - now
        if left > 0:
            was_quiet = silence is not None or _is_quiet(pod)
            self.forget(directory.uid)
            goes_on = (QUIET, False, {"reason": "Output", "message": ""})
            return goes_on if was_quiet else None, max(left, 0.5)
        found = self._stacks.of(record, lambda: _last_lines(directory, record))
        if found.may_have_printed:
            time.sleep(SETTLE_SECONDS)
            last = _last_line(directory, record) or last
        message = _message(after, found)
        pause = float("inf") if found.may_have_printed else max(after, AGAIN_SECONDS)
        self._silent[directory.uid] = _Silence(last, message, now + pause, pause)
        return (QUIET, True, {"reason": "NoOutput", "message": message}), AGAIN_SECONDS

    def _look_again(
        self, silence: _Silence, directory: PodDirectory, record: PodRecord, after: float, now: float
    ) -> None:
        found = self._stacks.of(record, lambda: _last_lines(directory, record), may_print=False)
        if found.lines():
            silence.message = _message(after, found)
        silence.pause = min(2 * silence.pause, MAX_PAUSE_SECONDS)
        silence.look_at = now + silence.pause


def _message(after: float, found: Found) -> str:
    return "\n".join([f"no output for {after:.0f} s", *found.lines()])[:MESSAGE_LENGTH]


def _threshold(pod: Json, default: float) -> float:
    """Seconds; 0 for never."""
    text = str((pod["metadata"].get("annotations") or {}).get(HANG_AFTER) or "")
    try:
        asked = float(text) if text else default
    except ValueError:
        return default
    return asked if 0 <= asked < float("inf") else default


def _is_quiet(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == QUIET and one["status"] == "True" for one in conditions)


def _last_line(directory: PodDirectory, record: PodRecord) -> float | None:
    """When a running container of the pod last printed something, or started; None when none runs."""
    times = []
    for name, container in {**record["initContainers"], **record["containers"]}.items():
        running = container["state"].get("running")
        if running:
            times.append(float(seconds_of(running["startedAt"])))
            try:
                log = directory.log(name, container["restartCount"]).stat()
            except OSError:
                continue
            if log.st_size:
                times.append(log.st_mtime)
    return max(times, default=None)


def _last_lines(directory: PodDirectory, record: PodRecord) -> bytes:
    """The end of the output of the pod's running containers."""
    found = b""
    for name, container in record["containers"].items():
        try:
            with directory.log(name, container["restartCount"]).open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - 65536))
                found += file.read()
        except OSError:
            continue
    return found
