"""`trainwright top`: what each rank uses of CPU, memory and GPUs, from `metrics.k8s.io`.

The local cluster serves that group itself; in another one metrics-server does.
"""

from __future__ import annotations

import json

from trainwright.api.resources import POD_METRICS, PODS, TRAIN_JOBS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.cli.ranks.rankpods import ranks_of_pod
from trainwright.client.client import Client
from trainwright.client.errors import NotFound, ServerError
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

GPU_MEMORY = "trainwright.dev/gpu-memory"
HEAD = ("TRAINJOB", "RANK", "CPU", "MEMORY", "GPU MEMORY", "POD")


def top(name: str | None, all_namespaces: bool, output: str, target: Target, namespace: str) -> int:
    if name is not None and all_namespaces:
        raise Failure("a name is looked up in one namespace: give -n NS in place of -A", 2)
    name = job_named(target, name, namespace) if name is not None else None
    return carry_out(_top(target, None if all_namespaces else namespace, name, output))


async def _top(target: Target, namespace: str | None, name: str | None, output: str) -> int:
    async with target.client() as client:
        if name is not None:
            await _check(client, name, namespace or "")
        selector = f"{JOBSET_NAME}={name}" if name else JOBSET_NAME
        try:
            metrics = (await client.list(POD_METRICS, namespace, label_selector=selector)).items or []
        except (NotFound, ServerError) as error:
            raise Failure(f"the cluster serves no metrics: {error}; a cluster needs metrics-server for them") from error
        pods = (await client.list(PODS, namespace, label_selector=selector)).items or []
    usages = usages_of(metrics, pods)
    if output == "json":
        print(json.dumps(usages))
    elif usages:
        Terminal().table(HEAD, [row(usage) for usage in usages])
    else:
        print(f"Nothing of {name} runs now." if name else "No TrainJob runs now.")
    return 0


async def _check(client: Client, name: str, namespace: str) -> None:
    try:
        await client.get(TRAIN_JOBS, name, namespace=namespace)
    except NotFound:
        raise await no_such_job(client, name, namespace) from None


def usages_of(metrics: list[Json], pods: list[Json]) -> list[Json]:
    """One for each pod, by job and rank: cores, bytes of memory and of GPU memory (None where none is known)."""
    by_name = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in pods}
    found = []
    for item in metrics:
        meta = item["metadata"]
        pod = by_name.get((meta["namespace"], meta["name"]))
        if pod is None:
            continue
        sums = {"cpu": 0.0, "memory": 0.0}
        for container in item.get("containers") or ():
            for resource, amount in (container.get("usage") or {}).items():
                sums[resource] = sums.get(resource, 0.0) + parse_quantity(amount).nano / 1e9
        ranks = ranks_of_pod(pod)
        found.append(
            {
                "namespace": meta["namespace"],
                "trainjob": pod["metadata"]["labels"][JOBSET_NAME],
                "ranks": list(ranks),
                "pod": meta["name"],
                "cpu": round(sums["cpu"], 3),
                "memory": int(sums["memory"]),
                "gpuMemory": int(sums[GPU_MEMORY]) if GPU_MEMORY in sums else None,
            }
        )
    return sorted(found, key=lambda usage: (usage["namespace"], usage["trainjob"], usage["ranks"], usage["pod"]))


def row(usage: Json) -> tuple[str, ...]:
    ranks = usage["ranks"]
    shown = "-" if not ranks else str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
    gpu = "-" if usage["gpuMemory"] is None else _mebibytes(usage["gpuMemory"])
    return usage["trainjob"], shown, f"{usage['cpu']:.2f}", _mebibytes(usage["memory"]), gpu, usage["pod"]


def _mebibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 10 * 2**30 else f"{count / 2**20:.0f} MiB"
