"""The workload controllers, wired to shared sources: one watch for each kind, however many controllers read it.

In: a client. Out: controllers for a `Manager`. They know only the API: neither the server behind it nor the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trainwright.api.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    JOB_SETS,
    JOBS,
    KUBERNETES_POD_GROUPS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    VOLCANO_POD_GROUPS,
)
from trainwright.client import Client
from trainwright.controlloop import Clock, Controller, Source, SystemClock
from trainwright.embedded.workloads.autoscaler.controller import Autoscalers
from trainwright.embedded.workloads.features import DEFAULTS, Features
from trainwright.embedded.workloads.job.controller import JobController
from trainwright.embedded.workloads.job.orphans import OrphanedPods
from trainwright.embedded.workloads.jobset.controller import JobSetController
from trainwright.embedded.workloads.objects import ApiObject, controlled_by_uid
from trainwright.embedded.workloads.scheduler import gangs
from trainwright.embedded.workloads.scheduler.controller import Scheduler, node_and_waiting
from trainwright.embedded.workloads.serviceaccounts import DefaultServiceAccounts

NAMES = ("jobset", "job", "scheduler", "serviceaccounts", "autoscaler")


def workload_controllers(
    client: Client,
    clock: Clock | None = None,
    *,
    only: Collection[str] | None = None,
    gates: Features = DEFAULTS,
) -> list[Controller]:
    """The controllers for JobSets, Jobs, scheduling, default service accounts and autoscaling, or those of `only`
    (`NAMES`).
    """
    clock = clock or SystemClock()
    by_owner = {"controller": controlled_by_uid}
    job_sets = Source(JOB_SETS, ApiObject)
    jobs = Source(JOBS, ApiObject, indexes=by_owner)
    services = Source(SERVICES, ApiObject)
    nodes = Source(NODES, ApiObject)
    namespaces = Source(NAMESPACES, ApiObject)
    accounts = Source(SERVICE_ACCOUNTS, ApiObject)
    autoscalers = Source(HORIZONTAL_POD_AUTOSCALERS, ApiObject)
    groups = {
        gangs.COSCHEDULING: Source(POD_GROUPS, ApiObject),
        gangs.VOLCANO: Source(VOLCANO_POD_GROUPS, ApiObject),
        gangs.NATIVE: Source(KUBERNETES_POD_GROUPS, ApiObject),
    }
    pods = Source(PODS, ApiObject, indexes={**by_owner, "node": node_and_waiting})
    made: list[tuple[str, Callable[[], Controller]]] = [
        ("jobset", JobSetController(client, job_sets, jobs, services, clock, gates).controller),
        ("job", JobController(client, jobs, pods, clock).controller),
        ("job", OrphanedPods(client, jobs, pods, clock).controller),
        ("scheduler", Scheduler(client, pods, nodes, groups, namespaces, clock).controller),
        ("serviceaccounts", DefaultServiceAccounts(client, namespaces, accounts, clock).controller),
        ("autoscaler", Autoscalers(client, autoscalers, pods, clock).controller),
    ]
    return [make() for name, make in made if not only or name in only]
