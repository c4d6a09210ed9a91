"""The state of one probe while its container runs: when it is tried next, and what it has found so far.

In: a `ProbeToRun`, times, and the outcome of each attempt. Out: `passes`, `has_failed`, `next_at`. Pure; times are
passed in. The rules are a kubelet's: a liveness probe passes until it fails, a readiness or startup probe fails until
it succeeds; a threshold counts equal outcomes in a row; a liveness or startup probe that has failed stays so until the
container runs anew.

One thing is faster than a kubelet: a readiness or startup probe over the network that has not succeeded yet is also
tried between its periods, because nobody wants to wait ten seconds for a server that listens after one. Failures of
these early attempts do not count. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

from typing import Literal

from trainwright.embedded.node.pods.record import ProbeToRun

Kind = Literal["startup", "readiness", "liveness"]

EARLY_SECONDS = 0.2
"""The wait before the first early attempt; it doubles up to `LONGEST_EARLY_SECONDS`."""

LONGEST_EARLY_SECONDS = 1.0


class Probe:
    def __init__(self, kind: Kind, spec: ProbeToRun) -> None:
        self.kind = kind
        self.spec = spec
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """The container has begun a run."""
        self.passes = self.kind == "liveness"
        self.has_failed = False
        self.next_at = now + self.spec["initialDelaySeconds"]
        self._counts_at = self.next_at
        self._early = EARLY_SECONDS
        self._last: bool | None = None
        self._in_a_row = 0

    @property
    def name(self) -> str:
        """As a kubelet's events name it."""
        return self.kind.capitalize()

    def is_due(self, now: float) -> bool:
        return not self.has_failed and now >= self.next_at

    def tried(self, succeeded: bool, at: float) -> bool:
        """Takes the outcome of the attempt that began at `at`. Returns whether it counts."""
        on_time = at >= self._counts_at
        if on_time:
            self._counts_at = at + self.spec["periodSeconds"]
        if succeeded or on_time:
            self._count(succeeded)
        self.next_at = self._counts_at
        if self._is_tried_early:
            self.next_at = min(self.next_at, at + self._early)
            self._early = min(2 * self._early, LONGEST_EARLY_SECONDS)
        return succeeded or on_time

    def _count(self, succeeded: bool) -> None:
        self._in_a_row = self._in_a_row + 1 if succeeded == self._last else 1
        self._last = succeeded
        if self._in_a_row < self.spec["successThreshold" if succeeded else "failureThreshold"]:
            return
        self.passes = succeeded
        self.has_failed = not succeeded and self.kind != "readiness"

    @property
    def _is_tried_early(self) -> bool:
        never_succeeded = not self.passes and self._last is not True
        return never_succeeded and self.kind != "liveness" and "exec" not in self.spec["handler"]
