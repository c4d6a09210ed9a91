"""The whole operator in virtual time over an API server in memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from trainwright.api.configuration import Configuration, local
from trainwright.client import Client
from trainwright.client.servertime import ServerTime
from trainwright.controlloop import VirtualClock
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.operator.memory_api import MemoryApi


class World:
    def __init__(self, configuration: Configuration | None = None, *plugins: Any) -> None:
        self.clock = VirtualClock()
        self.api = MemoryApi(self.clock)
        self.client = Client(self.api)
        self.client.server_time = ServerTime(self.clock.wall)
        self.configuration = configuration or local()
        self._plugins = {plugin.name: (lambda plugin=plugin: plugin) for plugin in plugins}
        self._task: asyncio.Task[None] | None = None
        self.start_operator()

    def start_operator(self) -> None:
        framework = load(discovered=self._plugins) if self._plugins else None
        self.operator = Operator(
            self.client, Settings(configuration=self.configuration), clock=self.clock, framework=framework
        )

    async def __aenter__(self) -> World:
        self._task = asyncio.create_task(self.operator.run())
        await self.clock.advance(0.5)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def restart(self) -> None:
        """The process is gone, and another one begins with empty stores."""
        await self.stop()
        self.start_operator()
        await self.__aenter__()

    async def settle(self, seconds: float = 0.2) -> None:
        await self.clock.advance(seconds)

    # What is there

    def job(self, name: str = "job") -> Json:
        found = self.api.get("trainjobs", name)
        assert found is not None
        return found

    def status(self, name: str = "job") -> Json:
        status: Json = self.job(name).get("status") or {}
        return status

    def job_set(self, name: str = "job") -> Json | None:
        return self.api.get("jobsets", name)

    def finish_job_set(self, kind: str = "Completed", name: str = "job") -> None:
        end = {
            "type": kind,
            "status": "True",
            "reason": "AllJobsCompleted" if kind == "Completed" else "FailedJobs",
            "message": "jobset says so",
            "lastTransitionTime": datetime.fromtimestamp(self.clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self.api.change("jobsets", name, {"status": {"conditions": [end]}})


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
