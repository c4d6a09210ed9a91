"""The workload controllers, wired to shared sources: one watch for each kind, however many controllers read it.

In: a client. Out: controllers for a `Manager`. They know only the API: neither the server behind it nor the node.
"""

from __future__ import annotations

from trainwright.api.resources import JOB_SETS, JOBS, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, SERVICES
from trainwright.client import Client
from trainwright.controlloop import Clock, Controller, Source, SystemClock
from trainwright.embedded.workloads.job.controller import JobController
from trainwright.embedded.workloads.jobset.controller import JobSetController
from trainwright.embedded.workloads.objects import ApiObject, controlled_by_uid
from trainwright.embedded.workloads.scheduler.controller import Scheduler, node_and_waiting
from trainwright.embedded.workloads.serviceaccounts import DefaultServiceAccounts


def workload_controllers(client: Client, clock: Clock | None = None) -> list[Controller]:
    """The controllers for JobSets, Jobs, scheduling and default service accounts."""
    clock = clock or SystemClock()
    by_owner = {"controller": controlled_by_uid}
    job_sets = Source(JOB_SETS, ApiObject)
    jobs = Source(JOBS, ApiObject, indexes=by_owner)
    services = Source(SERVICES, ApiObject)
    nodes = Source(NODES, ApiObject)
    namespaces = Source(NAMESPACES, ApiObject)
    accounts = Source(SERVICE_ACCOUNTS, ApiObject)
    pods = Source(PODS, ApiObject, indexes={**by_owner, "node": node_and_waiting})
    return [
        JobSetController(client, job_sets, jobs, services, clock).controller(),
        JobController(client, jobs, pods, clock).controller(),
        Scheduler(client, pods, nodes, clock).controller(),
        DefaultServiceAccounts(client, namespaces, accounts, clock).controller(),
    ]
