"""The local control plane plays a run once before a user does, and stores nothing of it.

The first run would otherwise wait for what happens once in a process: schemas and rules are compiled, connections to
the admission webhooks are made, the library that signs tokens is imported. All of it is asked for by requests, as dry
runs, so that nothing here knows what the API server keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator

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
    Resource,
)
from trainwright.client import Client, ClientError
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)

NAME = "trainwright-rehearsal"
NAMESPACE = "default"
MANAGER = "trainwright-rehearsal"
RUNTIME = "plain"

_POD: Json = {
    "metadata": {"labels": {"rehearsal": NAME}},
    "spec": {
        "restartPolicy": "Never",
        "subdomain": NAME,
        "containers": [{"name": "node", "image": "none", "command": ["true"], "env": [{"name": "A", "value": "b"}]}],
    },
}
_JOB: Json = {
    "backoffLimit": 0,
    "completionMode": "Indexed",
    "completions": 1,
    "parallelism": 1,
    "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
    "template": _POD,
}
_JOB_SET: Json = {
    "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
    "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": _JOB}}],
}


async def rehearse(client: Client) -> None:
    """Sends the requests of a run. What is refused is no harm: the first run will only be slower."""
    for step in _steps(client):
        try:
            await step
        except ClientError as error:
            log.debug("a step of the rehearsal was refused: %s", error)


def _steps(client: Client) -> Iterator[Awaitable[object]]:
    spec: Json = {"runtimeRef": {"name": RUNTIME}, "trainer": {"numNodes": 2, "command": ["true"]}}
    yield _create(client, TRAIN_JOBS, {"spec": spec})
    yield _apply(client, JOB_SETS, {"spec": _JOB_SET})
    yield client.create(SERVICE_ACCOUNTS, {"spec": {}}, NAMESPACE, name="default", subresource="token")
    yield _apply(client, CONFIG_MAPS, {"data": {"a": "b"}})
    runtime = {"metadata": {"annotations": {NAME: "dry run"}}}
    yield client.patch(CLUSTER_TRAINING_RUNTIMES, runtime, name=RUNTIME, field_manager=MANAGER, dry_run=True)
    ports = {"clusterIP": "None", "selector": {"rehearsal": NAME}}
    yield _create(client, SERVICES, {"spec": ports})
    yield _create(client, JOBS, {"spec": _JOB})
    yield _create(client, PODS, _POD)
    about = {"kind": PODS.kind, "namespace": NAMESPACE, "name": NAME}
    yield _create(client, EVENTS, {"involvedObject": about, "reason": "Rehearsal", "message": "a dry run"})


def _object(resource: Resource, content: Json) -> Json:
    metadata = {"name": NAME, "namespace": NAMESPACE, **(content.get("metadata") or {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, **content, "metadata": metadata}


async def _create(client: Client, resource: Resource, content: Json) -> None:
    body = _object(resource, content)
    await client.create(resource, body, NAMESPACE, field_manager=MANAGER, decode=bytes, dry_run=True)


async def _apply(client: Client, resource: Resource, content: Json) -> None:
    body = _object(resource, content)
    await client.apply(
        resource, body, name=NAME, namespace=NAMESPACE, field_manager=MANAGER, decode=bytes, dry_run=True
    )
