"""The rehearsal of a run: every step of it is accepted, and nothing of it is stored."""

from __future__ import annotations

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    EVENTS,
    JOB_SETS,
    JOBS,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    TRAIN_JOBS,
)
from trainwright.cli.machine import rehearsal
from trainwright.embedded.manifests import objects
from trainwright.testing.virtualserver import VirtualServer

KINDS = (TRAIN_JOBS, JOB_SETS, CONFIG_MAPS, SERVICES, JOBS, PODS, EVENTS)


async def test_every_step_is_accepted_and_nothing_is_stored() -> None:
    async with VirtualServer() as server:
        for runtime in objects("runtimes/plain.yaml"):
            await server.admin.create(CLUSTER_TRAINING_RUNTIMES, runtime)
        account = {"metadata": {"name": "default", "namespace": "default"}}
        await server.admin.create(SERVICE_ACCOUNTS, account, "default")
        before = {kind: server.list(kind, "default") for kind in KINDS}
        runtimes = await server.admin.get(CLUSTER_TRAINING_RUNTIMES, "plain")
        for step in rehearsal._steps(server.client):
            await step  # raises what would only be logged
        assert {kind: server.list(kind, "default") for kind in KINDS} == before
        assert await server.admin.get(CLUSTER_TRAINING_RUNTIMES, "plain") == runtimes


async def test_a_step_that_is_refused_stops_no_other() -> None:
    async with VirtualServer(without=["jobsets.jobset.x-k8s.io"]) as server:
        await rehearsal.rehearse(server.client)
        asked = [request.path for request in server.faults.asked]
        assert asked[-1].endswith("/events")
