"""The health of one container: runs its probes and its postStart hook while it runs.

In: the container's probes, its hook, the time. Out: `started` and `ready` as they stand in pod status, `failed` when
the container is to be ended for it, and a kubelet's events. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable
from functools import partial

from trainwright.embedded.node.pods.record import ContainerToRun, HandlerToRun
from trainwright.embedded.node.supervision import attempts
from trainwright.embedded.node.supervision.attempts import Attempt, Inside, Outcome
from trainwright.embedded.node.supervision.journal import Journal
from trainwright.embedded.node.supervision.probes import Kind, Probe

HOOK_SECONDS = 24 * 3600.0
"""A kubelet sets no limit to a postStart hook; a day is as good, and needs no second case."""

KINDS: tuple[Kind, ...] = ("startup", "readiness", "liveness")


class Health:
    def __init__(
        self, spec: ContainerToRun, selector: selectors.BaseSelector, journal: Journal, container: Inside
    ) -> None:
        self._name = spec["name"]
        self._selector = selector
        self._journal = journal
        self._container = container
        probes = spec.get("probes", {})
        self._probes = [Probe(kind, probes[kind]) for kind in KINDS if kind in probes]
        self._post_start: HandlerToRun | None = spec.get("postStart")
        self._attempts: dict[str, Attempt] = {}
        self._runs = False
        self._is_ending = False
        self._hook_is_done = self._post_start is None
        self._hook_has_begun = False
        self._hook_failed = ""

    def _passes(self, kind: Kind) -> bool:
        return all(probe.passes for probe in self._probes if probe.kind == kind)

    @property
    def started(self) -> bool:
        return self._runs and self._hook_is_done and self._passes("startup")

    @property
    def ready(self) -> bool:
        return self.started and self._passes("readiness")

    @property
    def failed(self) -> tuple[str, float | None] | None:
        """Why the container is to be ended, and the grace period that the probe asks for."""
        if self._is_ending or not self._runs:
            return None
        if self._hook_failed:
            return self._hook_failed, None
        for probe in self._probes:
            if probe.has_failed:
                message = f"Container {self._name} failed {probe.kind} probe, will be restarted"
                return message, probe.spec.get("terminationGracePeriodSeconds")
        return None

    def begin(self, now: float) -> None:
        """The container has begun a run."""
        self._runs, self._is_ending, self._hook_failed = True, False, ""
        for probe in self._probes:
            probe.begin(now)
        self._hook_is_done = self._post_start is None
        self._hook_has_begun = False

    def ending(self) -> None:
        """The container is being ended: from now on it is only asked whether it is ready."""
        self._is_ending = True

    def end(self) -> None:
        """The container's run is over."""
        self._runs = False
        for attempt in self._attempts.values():
            attempt.cancel()
        self._attempts.clear()

    def child_ended(self, pid: int) -> None:
        for attempt in self._attempts.values():
            attempt.child_ended(pid)

    def advance(self, now: float) -> None:
        """Begins the attempts that are due and ends those that take too long."""
        for attempt in list(self._attempts.values()):
            if now >= attempt.expires:
                attempt.expire()
        if self._post_start is not None and not self._hook_has_begun and self._container.has_started:
            self._hook_has_begun = True
            self._try("postStart", self._post_start, HOOK_SECONDS, self._hook_ended, now)
        for probe in self._due_probes():
            if probe.is_due(now):
                done = partial(self._tried, probe, now)
                self._try(probe.kind, probe.spec["handler"], probe.spec["timeoutSeconds"], done, now)

    @property
    def next_at(self) -> float | None:
        """When `advance` has to be called next."""
        times = [attempt.expires for attempt in self._attempts.values()]
        times += [probe.next_at for probe in self._due_probes() if not probe.has_failed]
        return min(times, default=None)

    def _due_probes(self) -> list[Probe]:
        """The probes whose turn it is: the startup probe until it passes, then the others."""
        if not self._runs or not self._hook_is_done or not self._container.has_started:
            return []
        kinds: tuple[Kind, ...] = ("readiness", "liveness") if self._passes("startup") else ("startup",)
        if self._is_ending:
            kinds = ("readiness",) if "readiness" in kinds else ()
        return [probe for probe in self._probes if probe.kind in kinds and probe.kind not in self._attempts]

    def _try(
        self, key: str, handler: HandlerToRun, seconds: float, done: Callable[[Outcome], None], now: float
    ) -> None:
        def ended(outcome: Outcome) -> None:
            self._attempts.pop(key, None)
            done(outcome)

        try:
            self._attempts[key] = attempts.begin(
                handler, seconds, self._selector, ended, container=self._container, now=now
            )
        except OSError as error:  # the machine is out of processes or descriptors
            done(Outcome(False, str(error)))

    def _tried(self, probe: Probe, at: float, outcome: Outcome) -> None:
        counts = probe.tried(outcome.succeeded, at)
        if counts and not outcome.succeeded:
            self._journal.tell("Warning", "Unhealthy", f"{probe.name} probe failed: {outcome.message}", self._name)

    def _hook_ended(self, outcome: Outcome) -> None:
        if outcome.succeeded:
            self._hook_is_done = True
            return
        self._hook_failed = "FailedPostStartHook"
        self._journal.tell("Warning", "FailedPostStartHook", f"PostStartHook failed: {outcome.message}", self._name)
