"""The whole operator over the real API server, both in this process and in virtual time.

    async with World() as world:                       # a server, a namespace, a runtime, an operator
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        assert world.status()["state"] == "Pending"

Nothing in it is made up: objects are validated and defaulted by their CRDs, applied, watched, collected as garbage.
There are no workload controllers and no webhooks; a test plays JobSet's part.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from trainwright.api.configuration import Configuration, local
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOB_SETS,
    JOBS,
    NAMESPACES,
    TRAIN_JOBS,
    Resource,
)
from trainwright.api.times import rfc3339
from trainwright.client.requests import Request
from trainwright.client.servertime import ServerTime
from trainwright.embedded import manifests
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Fault, Respond, Rule
from trainwright.testing.virtualserver import VirtualServer

SEE_PLUGINS = "See trainwright plugins, and the operator's log"
"""The mend of a plugin that failed."""


class World:
    """A server, and on it an operator.

    `runtimes`, and CRDs for `kinds` of the test's own, are there before the operator starts; `without` names CRDs of
    the package that are missing. `skew` is how many seconds the operator's clock is off. With `start=False` the test
    starts the operator itself, when it has made what the operator is to find.
    """

    def __init__(
        self,
        *,
        runtimes: Sequence[Json] | None = None,
        configuration: Configuration | None = None,
        plugins: Sequence[Any] = (),
        kinds: Sequence[Resource] = (),
        without: Collection[str] = (),
        skew: float = 0.0,
        start: bool = True,
    ) -> None:
        self.server = VirtualServer(without=without)
        self.clock = self.server.clock
        self.configuration = configuration or local()
        self.namespace = ""
        self._plugins = {plugin.name: functools.partial(_itself, plugin) for plugin in plugins}
        self._runtimes = [runtime()] if runtimes is None else runtimes
        self._kinds = kinds
        self._skew = skew
        self._start = start
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> World:
        await self.server.__aenter__()
        self.server.client.server_time = ServerTime(lambda: self.clock.wall() + self._skew, self.clock.now)
        await self.enter_namespace("ns")
        for resource in self._kinds:
            await self.define(resource)
        for body in self._runtimes:
            await self.add(CLUSTER_TRAINING_RUNTIMES, body)
        if self._start:
            await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await self.server.__aexit__(kind, error, trace)

    # The operator

    async def start(self) -> None:
        framework = load(discovered=self._plugins) if self._plugins else None
        settings = Settings(configuration=self.configuration)
        self.operator = Operator(self.server.client, settings, clock=self.clock, framework=framework)
        self._task = asyncio.create_task(self.operator.run(), name="operator")
        await self.clock.advance(0.5)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def restart(self) -> None:
        """The process is gone, and another one begins with empty stores."""
        await self.stop()
        await self.start()

    async def settle(self, seconds: float = 0.2) -> None:
        await self.clock.advance(seconds)

    # What the operator asks for, and what goes wrong with it

    @property
    def writes(self) -> list[Request]:
        """The requests of the operator that change something."""
        return self.server.faults.writes

    def fail(self, fault: Fault, *, method: str = ".*", path: str = ".*", times: int | None = None) -> Rule:
        """Let this happen to the operator's requests from now on, or to the next few of them."""
        rule = Rule(fault, method=method, path=path, times=times)
        self.server.faults.rules.append(rule)
        return rule

    def refuse(
        self, code: int, message: str, *, method: str = ".*", path: str = ".*", times: int | None = None
    ) -> Rule:
        return self.fail(Respond(code, message), method=method, path=path, times=times)

    def mend(self) -> None:
        """From now on everything goes well again."""
        self.server.faults.rules.clear()

    # What others do

    async def enter_namespace(self, name: str) -> None:
        """Make a namespace; everything below is about this one from now on."""
        await self.add(NAMESPACES, {"metadata": {"name": name}})
        self.namespace = name

    async def add(self, resource: Resource, body: Json) -> Json:
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        made: Json = await self.server.admin.create(resource, whole, self.namespace if resource.namespaced else None)
        return made

    async def change(self, resource: Resource, name: str, patch: Json, subresource: str | None = None) -> Json:
        namespace = self.namespace if resource.namespaced else None
        changed: Json = await self.server.admin.patch(
            resource, patch, name=name, namespace=namespace, subresource=subresource
        )
        return changed

    async def change_status(self, resource: Resource, name: str, status: Json) -> Json:
        return await self.change(resource, name, {"status": status}, "status")

    async def remove(self, resource: Resource, name: str) -> None:
        await self.server.admin.delete(resource, name, self.namespace if resource.namespaced else None)

    async def install(self, name: str) -> None:
        """Install one of the package's CRDs that this world began without."""
        [definition] = [crd for crd in manifests.crds() if crd["metadata"]["name"] == name]
        await self.add(CUSTOM_RESOURCE_DEFINITIONS, definition)

    async def define(self, resource: Resource) -> None:
        """Install a CRD for a kind of the test's own, without a schema for its spec."""
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": resource.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": anything},
            "subresources": {"status": {}},
        }
        names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
        spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
        await self.add(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": resource.group_resource}, "spec": spec})

    async def finish_job_set(self, kind: str = "Completed", name: str = "job") -> None:
        """JobSet's controller says that it is over."""
        end = {
            "type": kind,
            "status": "True",
            "reason": "AllJobsCompleted" if kind == "Completed" else "FailedJobs",
            "message": "jobset says so",
            "lastTransitionTime": rfc3339(self.clock.wall()),
        }
        await self.change_status(JOB_SETS, name, {"conditions": [end]})

    async def run_job(self, name: str) -> None:
        """The Job controller has a pod running."""
        started = rfc3339(self.clock.wall())
        await self.change_status(JOBS, name, {"startTime": started, "active": 1, "ready": 1})

    async def finish_job(self, name: str) -> None:
        """The Job controller says that it is over."""
        now = rfc3339(self.clock.wall())
        why = {"status": "True", "reason": "Why", "message": "the Job says so", "lastTransitionTime": now}
        ends = [{"type": "SuccessCriteriaMet", **why}, {"type": "Complete", **why}]
        started = self.get(JOBS, name).get("status", {}).get("startTime", now)
        counts = {"active": 0, "ready": 0, "succeeded": 1}
        await self.change_status(
            JOBS, name, {"startTime": started, "completionTime": now, **counts, "conditions": ends}
        )

    # What is there

    def find(self, resource: Resource, name: str) -> Json | None:
        return self.server.get(resource, name, self.namespace)

    def get(self, resource: Resource, name: str) -> Json:
        found = self.find(resource, name)
        assert found is not None, f"there is no {resource.kind} {name}"
        return found

    def all(self, resource: Resource) -> list[Json]:
        return self.server.list(resource, self.namespace if resource.namespaced else "")

    def names(self, resource: Resource) -> list[str]:
        return [item["metadata"]["name"] for item in self.all(resource)]

    def status(self, name: str = "job") -> Json:
        status: Json = self.get(TRAIN_JOBS, name).get("status") or {}
        return status

    def find_job_set(self, name: str = "job") -> Json | None:
        return self.find(JOB_SETS, name)

    def job_set(self, name: str = "job") -> Json:
        return self.get(JOB_SETS, name)


def _itself(plugin: Any) -> Any:
    return plugin


@asynccontextmanager
async def started(**spec: Any) -> AsyncIterator[World]:
    """A world in which the operator has met a TrainJob named `job`, and has said so."""
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job(**spec))
        await world.settle(1.5)
        yield world


def runtime(name: str = "it", kind: str = "ClusterTrainingRuntime", **policy: Any) -> Json:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pod = {"spec": {"containers": [{"name": "node", "image": "python"}]}}
    node = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": pod}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1, **policy}, "template": {"spec": {"replicatedJobs": [node]}}},
    }


def mpi_runtime(name: str = "it") -> Json:
    body = runtime(name, mpi={"runLauncherAsNode": True})
    [node] = body["spec"]["template"]["spec"]["replicatedJobs"]
    launcher = {"name": "launcher", "template": node["template"]}
    body["spec"]["template"]["spec"]["replicatedJobs"] = [
        launcher,
        {**node, "template": {"spec": node["template"]["spec"]}},
    ]
    return body


def train_job(name: str = "job", runtime: str = "it", **spec: Any) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": runtime}, **spec},
    }
