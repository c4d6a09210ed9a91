"""A whole embedded cluster in one test: API server, workload controllers and node, which meet over HTTP only.

`stop_node` and `start_node` take the node away and bring a new one, as a killed and restarted control plane does: the
new one knows only the API and the directories on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from trainwright.api.resources import CUSTOM_RESOURCE_DEFINITIONS, JOB_SETS, JOBS, PODS, Resource
from trainwright.client import Client, NotFound, kubeconfig
from trainwright.controlloop import Manager
from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.apiserver.access.tls import server_context
from trainwright.embedded.node.node import LocalNode, NodeConfig
from trainwright.embedded.node.resources.devices import Devices
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.runs import RunsHome
from trainwright.schema.jsonobject import Json
from waiting import until

CRDS = Path(__file__).parents[3] / "manifests" / "crds" / "third-party"


class Cluster:
    def __init__(
        self, server: ApiServer, client: Client, directory: Path, tier: Tier | None, devices: Devices | None = None
    ) -> None:
        self.server = server
        self.client = client
        self.directory = directory
        self.tier = tier
        self.devices = devices
        self.hides = False
        self.node: LocalNode
        self._node_task: asyncio.Task[None] | None = None

    async def start_node(self) -> None:
        tls = server_context(self.server.issue_certificate("node", ("127.0.0.1",)))
        config = NodeConfig(
            self.directory / "node",
            self.server.kubelet_token,
            tls=tls,
            tier=self.tier,
            runs=RunsHome(self.directory),
            devices=self.devices,
            hidden=self.directory if self.hides else None,
        )
        self.node = LocalNode(self.client, config)
        ready = asyncio.Event()
        self._node_task = asyncio.create_task(self.node.run(ready.set))
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({self._node_task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        finally:
            waiting.cancel()
            if not ready.is_set():
                self._node_task.cancel()
                await asyncio.gather(self._node_task, return_exceptions=True)
        assert ready.is_set(), "the node did not become ready"

    async def stop_node(self) -> None:
        assert self._node_task is not None
        self._node_task.cancel()
        await asyncio.gather(self._node_task, return_exceptions=True)

    # What tests ask

    async def create(self, resource: Resource, body: Json) -> Json:
        created: Json = await self.client.create(resource, body, "default")
        return created

    async def get(self, resource: Resource, name: str) -> Json | None:
        try:
            return await self.client.get(resource, name, "default")
        except NotFound:
            return None

    async def until(self, question: Callable[[], Awaitable[Any]], seconds: float = 30.0) -> Any:
        return await until(getattr(question, "__name__", "it"), question, seconds)

    async def until_pod(self, name: str, phase: str, seconds: float = 30.0) -> Json:
        async def question() -> Json | None:
            pod = await self.get(PODS, name)
            assert pod is not None, f"pod {name} is gone"
            now = pod.get("status", {}).get("phase")
            assert now == phase or now not in ("Succeeded", "Failed"), pod["status"]
            return pod if now == phase else None

        pod: Json = await self.until(question, seconds)
        return pod

    async def until_job_set_ends(self, name: str, seconds: float = 60.0) -> Json:
        async def question() -> Json | None:
            job_set = await self.get(JOB_SETS, name)
            status: Json = (job_set or {}).get("status", {})
            return status if status.get("terminalState") else None

        status: Json = await self.until(question, seconds)
        return status

    async def until_gone(self, resource: Resource, name: str, seconds: float = 30.0) -> None:
        async def question() -> bool:
            return await self.get(resource, name) is None

        await self.until(question, seconds)

    async def pods_of(self, job_set: str) -> list[Json]:
        found = await self.client.list(PODS, "default", label_selector=f"jobset.sigs.k8s.io/jobset-name={job_set}")
        return sorted(found.items or [], key=lambda pod: str(pod["metadata"]["name"]))

    async def job(self, name: str) -> Json:
        return await self.client.get(JOBS, name, "default")

    async def log(self, pod: str, **options: Any) -> str:
        async with self.client.logs(pod, "default", **options) as stream:
            return (await stream.read()).decode()


@asynccontextmanager
async def running_cluster(
    directory: Path, tier: Tier | None = None, devices: Devices | None = None
) -> AsyncIterator[Cluster]:
    async with ApiServer(directory) as server, Client.to(kubeconfig.load(server.kubeconfig)) as client:
        for path in CRDS.glob("*jobsets.yaml"):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, yaml.safe_load(path.read_text()))
        cluster = Cluster(server, client, directory, tier, devices)
        workloads = asyncio.create_task(Manager(client, workload_controllers(client)).run())
        try:
            await cluster.start_node()
            try:
                yield cluster
            finally:
                await cluster.stop_node()
                await cluster.node.end_pods(0)
        finally:
            workloads.cancel()
            await asyncio.gather(workloads, return_exceptions=True)


def pod(name: str, *command: str, container: Json | None = None, **spec: Any) -> Json:
    whole = {"name": "c", "image": "none", "command": list(command), **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [whole], **spec},
    }


def job_set(
    name: str,
    *command: str,
    nodes: int = 2,
    env: list[Json] | None = None,
    annotations: dict[str, str] | None = None,
    grace: int = 30,
    **spec: Any,
) -> Json:
    container = {"name": "node", "image": "none", "command": list(command), "env": env or []}
    pod_spec = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": grace}
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec}
    job = {"completions": nodes, "parallelism": nodes, "backoffLimit": 0, "template": template}
    return {
        "apiVersion": JOB_SETS.api_version,
        "kind": JOB_SETS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}], **spec},
    }


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c.get("reason", "")) for c in status.get("conditions", ())}
