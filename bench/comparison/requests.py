"""What a contender asked the API server: counted from the audit log, by verb and kind.

The audit log is the API server's own account and treats both alike. The operators' `rest_client_requests_total` knows
neither kinds nor names, and each operator decides itself what it counts.

    made for jobs      everything but the following
    by the clock       renewals of the lease
    lists and watches  what keeps a store up to date; their number does not follow the number of jobs
    runtime guard      the finalizer on a runtime in use, which only ours sets: two for a burst, however large
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from comparison.contenders import USER
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import Request, requests
from trainwright.testing.controlplane import ADMIN

RUNTIMES = ("trainingruntimes", "clustertrainingruntimes")


def policy() -> Json:
    """An audit policy that notes what the contender asks, without bodies, and the marks that we set in the log."""
    marks = {"group": "", "resources": ["configmaps"]}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "users": [USER]},
            {"level": "Metadata", "users": [ADMIN], "verbs": ["delete"], "resources": [marks]},
            {"level": "None"},
        ],
    }


@dataclass(frozen=True)
class Counts:
    """`until_job_set` are those of `made_for_jobs` that were answered no later than the JobSet's creation."""

    made_for_jobs: Counter[str] = field(default_factory=Counter)
    until_job_set: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def count(events: Iterable[Json], jobs: Sequence[str] = ()) -> Counts:
    """What the contender asked in `events`; `jobs` are the names of the TrainJobs that it started meanwhile.

    A request that carries a job's name counts as made until its JobSet exists if it was answered before. One that
    carries none (a runtime is read for many jobs) does if it was answered before the last JobSet was created.
    """
    asked = requests(events, user=USER)
    known = frozenset(jobs)
    created = {each.name: each.at for each in asked if each.resource == "jobsets" and each.is_creation}
    last = max((created[name] for name in known if name in created), default=0.0)
    counts = Counts()
    for request in asked:
        what = f"{request.verb} {request.full_resource}"
        if request.code >= 400:
            counts.refused[f"{what}: {request.code}"] += 1
        if is_apart(request):
            counts.apart[what] += 1
            continue
        counts.made_for_jobs[what] += 1
        job = job_of(request, known)
        if request.at <= (created.get(job, 0.0) if job else last):
            counts.until_job_set[what] += 1
    return counts


def is_apart(request: Request) -> bool:
    if request.resource == "leases" or request.verb in ("list", "watch") or not request.resource:
        return True
    return request.resource in RUNTIMES and request.is_write


def job_of(request: Request, known: frozenset[str]) -> str:
    """The TrainJob whose name the object carries, alone or before a suffix such as `-runtime-snapshot`."""
    parts = request.name.split("-")
    prefixes = ("-".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in known), "")
