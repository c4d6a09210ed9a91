"""Controllers of others that do the same work: while kube-controller-manager is seen, ours wait for it.

Both would come to the same end, but the one that comes second finds its object gone and logs an error. Waiting is
always safe: what a peer leaves undone is done after the pause.
"""

from __future__ import annotations

from trainwright.clock import Clock

COLLECTOR = "/generic-garbage-collector"
NAMESPACES = "/namespace-controller"
SEEN_SECONDS = 90.0
PAUSE_SECONDS = 3.0


class Peers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, float] = {}

    def note(self, user_agent: str) -> None:
        """Called for every request; client-go puts the controller's name at the end of its user agent."""
        if user_agent.endswith((COLLECTOR, NAMESPACES)):
            self._seen[user_agent[user_agent.rindex("/") :]] = self._clock.now()

    async def give_way(self, name: str) -> None:
        if self._clock.now() - self._seen.get(name, -SEEN_SECONDS) < SEEN_SECONDS:
            await self._clock.sleep(PAUSE_SECONDS)
