"""The variables of the converted pods: v1's own, with host names of the JobSet in place of v1's.

In: a layout. Out: for each group the variables that v1 would set, those with a pod's number as an env source.
"""

from __future__ import annotations

import json
from typing import Any

from trainwright.conversion.layout import Group, Layout
from trainwright.conversion.v1job import JAX, PYTORCH, TENSORFLOW, XGBOOST
from trainwright.conversion.v1pods import elastic_variables, sparse_cluster, variables_of
from trainwright.schema.jsonobject import Json

TASK_INDEX = "TRAINWRIGHT_TASK_INDEX"
PORTS = {
    PYTORCH.name: ("MASTER_PORT", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT"),
    XGBOOST.name: ("MASTER_PORT", "WORKER_PORT"),
    JAX.name: ("COORDINATOR_PORT",),
}
"""Variables whose port a node that runs many pods on one machine may replace."""
PEERS = {TENSORFLOW.name: ("TF_CONFIG",)}
"""Variables that name the pods, each with the port at which it listens."""


def variables_for(layout: Layout, group: Group) -> list[Json]:
    """The env entries of a group's containers."""
    job = layout.job
    if job.kind is TENSORFLOW:
        return _tensorflow(layout, group) if job.total != 1 else []
    known = variables_of(job, group.replica, 0)
    if not known:
        return []
    ranks = {"RANK", "PET_NODE_RANK", "PROCESS_ID"}
    entries: list[Json] = []
    for name, value in known.items():
        if name in ranks:
            entries.append({"name": name, "valueFrom": group.index})
        else:
            entries.append({"name": name, "value": _moved(layout, name, value)})
    return entries


def _moved(layout: Layout, name: str, value: str) -> str:
    """The value with the host names of the converted pods."""
    job = layout.job
    first = "Master" if "Master" in job.replicas else "Worker"
    if name in ("MASTER_ADDR", "PET_MASTER_ADDR", "COORDINATOR_ADDRESS"):
        return layout.host(first, 0)
    if name == "WORKER_ADDRS":
        return ",".join(layout.host("Worker", index) for index in range(job.replicas["Worker"].count))
    if name == "PET_RDZV_ENDPOINT":
        return elastic_variables(job, layout.host("Worker", 0))[name]
    return value


def _tensorflow(layout: Layout, group: Group) -> list[Json]:
    """The task's index is a variable of its own, to which TF_CONFIG refers."""
    job, role = layout.job, group.replica.role
    cluster = {
        replica.role: [f"{layout.host(name, index)}:{job.port(replica)}" for index in range(replica.count)]
        for name, replica in sorted(job.replicas.items(), key=lambda item: item[0].lower())
    }
    index = f"$({TASK_INDEX})"
    task: dict[str, Any] = {"type": role, "index": 0}
    config: Json = {"cluster": cluster, "task": task, "environment": "cloud"}
    if job.spec.get("enableDynamicWorker"):
        config = {"cluster": sparse_cluster(cluster, role, 0), "task": task}
    text = json.dumps(config, separators=(",", ":")).replace('"index":0}', f'"index":{index}}}')
    if job.spec.get("enableDynamicWorker") and role in ("worker", "ps"):
        own = cluster[role][0]
        text = text.replace('"worker":{"0":', f'"worker":{{"{index}":')
        text = text.replace(
            json.dumps(own), json.dumps(own.replace(f"-{group.name}-0-0.", f"-{group.name}-0-{index}."))
        )
    return [{"name": TASK_INDEX, "valueFrom": group.index}, {"name": "TF_CONFIG", "value": text}]


def is_torchrun(container: Json) -> bool:
    """Whether the command starts torchrun, which sets RANK and the like for its processes by itself."""
    words = [str(word) for word in [*(container.get("command") or ()), *(container.get("args") or ())]]
    return any(
        name in word for word in words for name in ("torchrun", "torch.distributed.run", "torch.distributed.launch")
    )
