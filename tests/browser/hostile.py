"""An API server that checks nothing: every text in every object is a canary. It stands in for a broken cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec

from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    EVENTS,
    JOB_SETS,
    NODES,
    PODS,
    TRAIN_JOBS,
    Resource,
)
from trainwright.http.request import Request
from trainwright.http.response import ConnectionSink, Response, StreamedResponse
from trainwright.http.server import Server

TIME = "2026-01-01T00:00:00Z"


class HostileServer:
    """Serves on a free port of the loopback interface, from a thread of its own."""

    def __init__(self, canary: str) -> None:
        self._canary = canary
        self._lists = _objects(canary)
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="hostile API server")
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._thread.join(10)

    @property
    def kubeconfig(self) -> Any:
        return {
            "current-context": self._canary,
            "clusters": [{"name": "c", "cluster": {"server": self.address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": self._canary, "context": {"cluster": "c", "user": "u"}}],
        }

    async def _serve(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        async with Server(self._answer, ("127.0.0.1", 0), shutdown_seconds=0.1) as server:
            self.address = f"http://127.0.0.1:{server.port}"
            self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
            self._ready.set()
            await stopped.wait()

    async def _answer(self, request: Request) -> Response | StreamedResponse:
        path = request.path
        if path == "/elsewhere":
            return Response(200, b"<!doctype html><title>another site</title>", "text/html")
        if request.method == "POST":
            return _json({"status": {"userInfo": {"username": self._canary}, "allowed": True}})
        if "watch=true" in request.query:
            return StreamedResponse(_hold, "application/json")
        if path.endswith("/log"):
            return Response(200, f"{TIME} {self._canary}\n{TIME} \x1b[31m{self._canary}\x1b[0m\n".encode())
        if path == "/version":
            return _json({"gitVersion": self._canary})
        for resource, items in self._lists.items():
            if f"/{resource.plural}" not in path or (resource.group or "v1") not in path:
                continue
            if path.rsplit("/", 1)[-1] == resource.plural:
                return _json({"metadata": {"resourceVersion": "1"}, "items": items})
            return _json(items[0])
        return _json({"kind": "Status", "code": 404, "reason": "NotFound", "message": self._canary}, 404)


async def _hold(sink: ConnectionSink) -> None:
    await asyncio.sleep(3600)


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(value), "application/json")


def _objects(canary: str) -> dict[Resource, list[Any]]:
    name = canary.partition("<script")[0]  # nobody can be asked for a name with a slash: the client refuses it

    def meta(uid: str, **more: Any) -> Any:
        about = {"labels": {canary: canary}, "annotations": {canary: canary}}
        return {"name": name, "namespace": name, "uid": uid, "creationTimestamp": TIME, **about, **more}

    def job(uid: str, created: str) -> Any:
        return {
            "metadata": {**meta(uid), "creationTimestamp": created},
            "spec": {
                "runtimeRef": {
                    "name": name,
                    "kind": "ClusterTrainingRuntime",
                    "apiGroup": "trainer.kubeflow.org",
                },
                "trainer": {"numNodes": 1, "command": [canary], "image": canary if uid == "j" else "other"},
            },
            "status": {
                "message": canary,
                "trainerStatus": {
                    "lastUpdatedTime": TIME,
                    "progressPercentage": 40,
                    "metrics": [{"name": canary, "value": "0.5"}, {"name": "text", "value": canary}],
                },
            },
        }

    template = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "node", "image": canary, "env": [{"name": canary, "value": canary}]}],
                }
            }
        }
    }
    replicated = [{"name": "node", "template": template}]
    pod_labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": canary,
    }
    waiting = {"reason": canary, "message": canary}
    pods = [
        {
            "metadata": {**meta("p"), "labels": pod_labels},
            "spec": {"nodeName": canary, "hostname": canary, "containers": [{"name": canary, "image": canary}]},
            "status": {
                "phase": "Running",
                "message": canary,
                "podIP": canary,
                "containerStatuses": [{"name": canary, "state": {"running": {"startedAt": TIME}}, "image": canary}],
            },
        },
        {
            "metadata": {**meta("q"), "labels": pod_labels},
            "spec": {"containers": [{"name": canary}]},
            "status": {"phase": "Pending", "containerStatuses": [{"name": canary, "state": {"waiting": waiting}}]},
        },
    ]
    event = {
        "metadata": meta("e"),
        "type": "Warning",
        "reason": canary,
        "message": canary,
        "involvedObject": {"kind": "TrainJob", "name": name},
        "lastTimestamp": "2026-01-01T00:00:05Z",
    }
    node = {
        "metadata": meta("n", namespace=None),
        "spec": {"taints": [{"key": canary, "effect": canary}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "False", "message": canary}],
        },
    }
    runtime = {
        "metadata": {**meta("r", namespace=None), "labels": {"trainer.kubeflow.org/framework": canary}},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": replicated}}},
    }
    return {
        TRAIN_JOBS: [job("j", "2026-01-01T00:00:01Z"), {**job("k", TIME), "metadata": {**meta("k"), "name": "older"}}],
        JOB_SETS: [{"metadata": meta("s"), "spec": {"replicatedJobs": replicated}, "status": {}}],
        PODS: pods,
        EVENTS: [event],
        NODES: [node],
        CLUSTER_TRAINING_RUNTIMES: [runtime],
    }
