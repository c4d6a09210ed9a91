"""The state of a TrainJob as a sentence: what it is doing, and what it waits for.

In: a TrainJob, its JobSet and its pods as the API serves them. Out: one `Phase`, a name and a sentence. Pure, so that
`run` and `get` say the same about the same state.
"""

from __future__ import annotations

from typing import NamedTuple

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.schema.jsonobject import Json


class Phase(NamedTuple):
    name: str
    """Pending, Running, Suspended, Complete or Failed: the words of `status.state`."""
    sentence: str

    @property
    def is_final(self) -> bool:
        return self.name in ("Complete", "Failed")


def condition(obj: Json, kind: str) -> Json | None:
    """The condition of this type, when it is True."""
    for item in obj.get("status", {}).get("conditions", []):
        if item["type"] == kind and item["status"] == "True":
            return dict(item)
    return None


def phase_of(job: Json, jobset: Json | None, pods: list[Json]) -> Phase:
    """The phase of a TrainJob, with what it waits for."""
    for kind in ("Complete", "Failed"):
        if found := condition(job, kind):
            return Phase(kind, found.get("message") or found.get("reason", ""))
    if job.get("spec", {}).get("suspend"):
        return Phase("Suspended", "suspended by spec.suspend; set it to false to start")
    if jobset is None:
        return Phase("Pending", job.get("status", {}).get("message") or "waiting for the operator to build its JobSet")
    return _phase_of_pods(jobset, pods)


def _phase_of_pods(jobset: Json, pods: list[Json]) -> Phase:
    expected = expected_pods(jobset)
    if not pods:
        return Phase("Pending", "waiting for the JobSet controller to create its jobs and pods")
    for pod in sorted(pods, key=name_of):
        if reason := waiting_reason(pod):
            return Phase("Pending", f"{label_of(pod)} waits: {reason}")
    running = [pod for pod in pods if phase_name(pod) == "Running"]
    if waiting := _waiting_for_dependencies(jobset, pods):
        return Phase("Pending" if not running else "Running", f"{_count(len(running), 'pod')} running; {waiting}")
    finished = sum(phase_name(pod) == "Succeeded" for pod in pods)
    failed = sum(phase_name(pod) == "Failed" for pod in pods)
    if len(pods) < expected and not failed:
        return Phase("Pending", f"{len(pods)} of {_count(expected, 'pod')} created")
    tail = "".join(f", {count} {word}" for count, word in ((finished, "finished"), (failed, "failed")) if count)
    return Phase("Running", f"{len(running)} of {_count(expected, 'pod')} running{tail}")


def expected_pods(jobset: Json) -> int:
    total = 0
    for job in jobset["spec"].get("replicatedJobs", []):
        total += int(job.get("replicas", 1)) * int(job["template"]["spec"].get("parallelism", 1))
    return total


def _waiting_for_dependencies(jobset: Json, pods: list[Json]) -> str:
    """What the first replicated job without pods waits for."""
    begun = {pod["metadata"].get("labels", {}).get(REPLICATED_JOB) for pod in pods}
    for job in jobset["spec"].get("replicatedJobs", []):
        if job["name"] not in begun and (needs := job.get("dependsOn")):
            wanted = " and ".join(f"{need['name']} to be {need['status']}" for need in needs)
            return f"{job['name']} waits for {wanted}"
    return ""


def waiting_reason(pod: Json) -> str:
    """Why a pod does not run yet; empty if it runs or has run."""
    if phase_name(pod) != "Pending":
        return ""
    status = pod.get("status", {})
    for item in status.get("conditions", []):
        if item["type"] == "PodScheduled" and item["status"] == "False":
            return item.get("message") or "no node fits it yet"
    for container in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            detail = f": {waiting['message']}" if waiting.get("message") else ""
            return f"container {container['name']} is {waiting.get('reason', 'waiting')}{detail}"
    return "it is being started" if pod.get("spec", {}).get("nodeName") else "no node has been chosen for it yet"


def failed_containers(pods: list[Json]) -> list[tuple[Json, str, str]]:
    """The containers that failed, in the order they did: pod, container, and how it ended."""
    failures: list[tuple[str, Json, str, str]] = []
    for pod in pods:
        for container in pod.get("status", {}).get("initContainerStatuses", []) + pod.get("status", {}).get(
            "containerStatuses", []
        ):
            for state in (container.get("state", {}), container.get("lastState", {})):
                ended = state.get("terminated")
                if ended and ended.get("exitCode") != 0:
                    failures.append((ended.get("finishedAt", ""), pod, container["name"], how_it_ended(ended)))
                    break
    return [(pod, container, how) for _, pod, container, how in sorted(failures, key=lambda item: item[0])]


def how_it_ended(terminated: Json) -> str:
    text = (
        f"ended by signal {terminated['signal']}"
        if terminated.get("signal")
        else f"exited with code {terminated.get('exitCode')}"
    )
    if terminated.get("reason") not in (None, "Error", "Completed"):
        text += f" ({terminated['reason']})"
    return f"{text}: {terminated['message']}" if terminated.get("message") else text


def phase_name(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def label_of(pod: Json) -> str:
    """A short name for a pod: `node-0`, or the initializer's name."""
    labels = pod["metadata"].get("labels", {})
    job = labels.get(REPLICATED_JOB) or name_of(pod)
    index = labels.get(COMPLETION_INDEX)
    return job if index is None or job.endswith("-initializer") else f"{job}-{index}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
