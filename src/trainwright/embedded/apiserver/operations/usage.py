"""`metrics.k8s.io`: what pods and nodes use of CPU, memory and GPUs, asked of the nodes when somebody wants to know."""

from __future__ import annotations

from typing import Any

import msgspec

from trainwright.api.times import rfc3339
from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.metrics import METRICS
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.embedded.apiserver.operations.logs import ANSWER_SECONDS, Kubelet, ask, endpoint_of
from trainwright.embedded.apiserver.storage.selection import selection
from trainwright.schema.jsonobject import Json

VERSION = f"{METRICS}/v1beta1"
GPU_MEMORY = "trainwright.dev/gpu-memory"
"""Beside cpu and memory, where there are GPUs. Those who do not know it leave it out."""
LARGEST_ANSWER = 16 * 2**20


class Usage(msgspec.Struct, frozen=True):
    """As the node says it: CPU in nanoseconds a second, memory in bytes."""

    cpu: int
    memory: int
    gpu_memory: int | None = None

    def quantities(self) -> Json:
        found = {"cpu": f"{self.cpu}n", "memory": f"{self.memory // 1024}Ki"}
        if self.gpu_memory is not None:
            found[GPU_MEMORY] = f"{self.gpu_memory // 1024}Ki"
        return found


class ContainerUsage(msgspec.Struct, frozen=True):
    pod: str
    name: str
    usage: Usage


class Report(msgspec.Struct, frozen=True):
    at: float
    window: float
    machine: Usage
    containers: list[ContainerUsage]


async def metrics(api: Api, kubelet: Kubelet, call: Call) -> Answer:
    """The metrics of one pod or node, or of all that the selectors choose."""
    if call.method != "GET" or call.watch:
        raise errors.method_not_allowed()
    kind = call.served.kind
    chosen = _chosen(api, call)
    reports = await _reports(api, kubelet)
    describe = _pod if kind == "PodMetrics" else _node
    items = [described for obj in chosen if (described := describe(obj, reports)) is not None]
    if not call.name:
        return json_answer(200, {"kind": f"{kind}List", "apiVersion": VERSION, "metadata": {}, "items": items})
    if not items:
        raise errors.not_found(METRICS, kind.lower(), call.name)
    return json_answer(200, {"kind": kind, "apiVersion": VERSION, **items[0]})


def _chosen(api: Api, call: Call) -> list[Json]:
    """The pods or nodes themselves: metrics have their names and labels."""
    served = api.registry.find("", "v1", call.served.plural)
    assert served is not None
    wanted = selection(served, call.query)
    found = (stored for stored in api.state.table(served.resource).select(call.namespace) if wanted.matches(stored))
    objects = (served.whole_object(stored.data) for stored in found)
    return [obj for obj in objects if not call.name or obj["metadata"]["name"] == call.name]


async def _reports(api: Api, kubelet: Kubelet) -> dict[str, Report]:
    """What each node says, by its name. One that does not answer is left out, unless it is the only one."""
    found: dict[str, Report] = {}
    problem: StatusError | None = None
    for stored in api.state.table("nodes").select(""):
        node = stored.decode()
        try:
            with await ask(kubelet, f"https://{endpoint_of(node)}/usage") as reply:
                body = await reply.some(LARGEST_ANSWER, ANSWER_SECONDS)
            found[node["metadata"]["name"]] = msgspec.json.decode(body, type=Report)
        except StatusError as error:
            problem = error
    if problem is not None and not found:
        raise problem
    return found


def _pod(pod: Json, reports: dict[str, Report]) -> Json | None:
    report = reports.get((pod.get("spec") or {}).get("nodeName", ""))
    if report is None or (pod.get("status") or {}).get("phase") != "Running":
        return None
    uid = pod["metadata"]["uid"]
    containers = [
        {"name": container.name, "usage": container.usage.quantities()}
        for container in report.containers
        if container.pod == uid
    ]
    return {**_head(pod, report), "containers": containers} if containers else None


def _node(node: Json, reports: dict[str, Report]) -> Json | None:
    report = reports.get(node["metadata"]["name"])
    return None if report is None else {**_head(node, report), "usage": report.machine.quantities()}


def _head(obj: Json, report: Report) -> Json:
    meta: dict[str, Any] = {name: obj["metadata"][name] for name in ("name", "namespace") if name in obj["metadata"]}
    at = rfc3339(int(report.at))
    meta["creationTimestamp"] = at
    if obj["metadata"].get("labels"):
        meta["labels"] = obj["metadata"]["labels"]
    return {"metadata": meta, "timestamp": at, "window": f"{report.window:.3f}s"}
