"""What the load generator can be told to do, and the times that it tells back."""

from __future__ import annotations

import msgspec


class Order(msgspec.Struct, tag=True, kw_only=True):
    """What to do, on which server, and how many seconds it may take at most."""

    kubeconfig: str
    namespace: str
    within: float = 1800.0


class Burst(Order, kw_only=True):
    """`count` TrainJobs from `creators` clients at once, until all have a JobSet (or: are created, are Complete)."""

    count: int
    first: int = 0
    creators: int = 8
    suspend: bool = False
    until: str = "jobset"


class Single(Order, kw_only=True):
    """TrainJobs one at a time: the next is created when the JobSet of the one before is there."""

    count: int
    first: int = 0


class Reviews(Order, kw_only=True):
    """Admission reviews of a TrainJob's create straight to a webhook, so many a second."""

    server: str
    path: str
    rate: float = 50.0
    seconds: float = 10.0


class DryRuns(Order, kw_only=True):
    """Creates as dry runs through the API server with whatever webhooks it calls, so many a second."""

    rate: float = 50.0
    seconds: float = 10.0


class ConfigMaps(Order, kw_only=True):
    """`count` ConfigMaps of `size` bytes that are nobody's."""

    count: int
    size: int


Orders = Burst | Single | Reviews | DryRuns | ConfigMaps


class Times(msgspec.Struct):
    """Seconds since the first request, by job: its create answered, the job seen by a watch, its JobSet seen, the job
    seen Complete. Or latencies.
    """

    created: list[float] = []
    noticed: list[float] = []
    seen: list[float] = []
    complete: list[float] = []
    latencies: list[float] = []

    @property
    def waits(self) -> list[float]:
        """What each job waited for its JobSet since it was known to be there: by the answer or by a watch, which on a
        busy machine may come first.
        """
        known = [min(times) for times in zip(self.created, self.noticed, strict=True)]
        return [max(0.0, seen - since) for since, seen in zip(known, self.seen, strict=True)]
