"""`trainwright get`: shows TrainJobs with what they wait for and their progress, runtimes, or pods."""

from __future__ import annotations

import json
import time
from pathlib import Path

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, PODS, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.api.times import seconds_of
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.connection import carry_out, connected
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.progress import progress_of
from trainwright.cli.sentences import (
    label_of,
    name_of,
    phase_name,
    phase_of,
    waiting_reason,
)
from trainwright.cli.terminal import Terminal
from trainwright.client.client import Client
from trainwright.schema.jsonobject import Json

FRAMEWORK = "trainer.kubeflow.org/framework"
SOURCES: dict[str, tuple[Resource, ...]] = {
    "trainjobs": (TRAIN_JOBS,),
    "runtimes": (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES),
    "pods": (PODS,),
}


def get(kind: str, name: str | None, output: str, directory: Path, namespace: str) -> int:
    carry_out(_get(ClusterDirectory(directory), kind, name, output, namespace))
    return 0


async def _get(cluster: ClusterDirectory, kind: str, name: str | None, output: str, namespace: str) -> None:
    terminal = Terminal()
    async with connected(cluster) as client:
        found: list[Json] = []
        for resource in SOURCES[kind]:
            listed = await client.list(resource, namespace if resource.namespaced else None)
            found += [{"kind": resource.kind, **item} for item in listed.items or () if name in (None, name_of(item))]
        if name and not found:
            raise Failure(
                f'there is no {" or ".join(r.kind for r in SOURCES[kind])} named "{name}" in namespace {namespace}'
            )
        if output == "json":
            print(json.dumps(found[0] if name else found, indent=2))
        elif not found:
            terminal.say(f"no {kind} in namespace {namespace}")
        elif kind == "trainjobs":
            await _show_jobs(client, namespace, found, terminal)
        elif kind == "runtimes":
            _show_runtimes(found, terminal)
        else:
            _show_pods(found, terminal)


async def _show_jobs(client: Client, namespace: str, jobs: list[Json], terminal: Terminal) -> None:
    jobsets = {name_of(item): item for item in (await client.list(JOB_SETS, namespace)).items or ()}
    pods = (await client.list(PODS, namespace, label_selector=JOBSET_NAME)).items or []
    rows = []
    for job in jobs:
        name = name_of(job)
        mine = [pod for pod in pods if pod["metadata"]["labels"][JOBSET_NAME] == name]
        phase = phase_of(job, jobsets.get(name), mine)
        doing = "; ".join(part for part in (phase.sentence, progress_of(job)) if part)
        rows.append((name, phase.name, job["spec"]["runtimeRef"]["name"], age_of(job), doing))
    terminal.table(("NAME", "STATE", "RUNTIME", "AGE", "WHAT IT DOES"), rows)


def _show_runtimes(runtimes: list[Json], terminal: Terminal) -> None:
    rows = []
    for runtime in sorted(runtimes, key=name_of):
        framework = runtime["metadata"].get("labels", {}).get(FRAMEWORK, "")
        nodes = runtime.get("spec", {}).get("mlPolicy", {}).get("numNodes", 1)
        rows.append((name_of(runtime), runtime["kind"], framework, str(nodes), age_of(runtime)))
    terminal.table(("NAME", "KIND", "FRAMEWORK", "NODES", "AGE"), rows)


def _show_pods(pods: list[Json], terminal: Terminal) -> None:
    rows = []
    for pod in pods:
        job = pod["metadata"].get("labels", {}).get(JOBSET_NAME, "")
        rows.append((name_of(pod), job, label_of(pod), phase_name(pod), age_of(pod), waiting_reason(pod)))
    terminal.table(("NAME", "TRAINJOB", "NODE", "PHASE", "AGE", "WAITS FOR"), rows)


def age_of(obj: Json) -> str:
    """The age of an object in its two largest units, as kubectl prints it."""
    seconds = max(0, int(time.time() - seconds_of(obj["metadata"]["creationTimestamp"])))
    for limit, size, unit, rest, small in ((120, 1, "s", 0, ""), (7200, 60, "m", 1, "s"), (172800, 3600, "h", 60, "m")):
        if seconds < limit:
            whole, left = divmod(seconds, size)
            return f"{whole}{unit}" + (f"{left // rest}{small}" if rest and left // rest and whole < 10 else "")
    return f"{seconds // 86400}d"
