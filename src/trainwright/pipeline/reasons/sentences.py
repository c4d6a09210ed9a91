"""The state of a TrainJob as a sentence: what it is doing, and what it waits for.

In: a TrainJob, its JobSet and its pods as the API serves them. Out: one `Phase`, a name and a sentence. Pure, so that
`run` and `get` say the same about the same state. Why a job failed or waits comes from `pipeline.reasons`, from which
the operator has it too; what a job does that is well is said here.
"""

from __future__ import annotations

from trainwright.api.phases import Phase as Phase
from trainwright.api.phases import condition as condition
from trainwright.api.phases import name_of as name_of
from trainwright.api.wellknown import ELASTIC, REPLICATED_JOB
from trainwright.pipeline.reasons import Evidence, reason_of
from trainwright.pipeline.reasons.evidence import label_of as label_of
from trainwright.pipeline.reasons.evidence import phase_name as phase_name
from trainwright.schema.jsonobject import Json

GOES_ON = ("Hang", "Straggler", "ProbeFails")
"""Reasons of a job whose processes run."""
BUILDING = "waiting for the workload to be created"


def phase_of(job: Json, jobset: Json | None, pods: list[Json], now: float = 0.0) -> Phase:
    """The phase of a TrainJob, with what it waits for. Without `now`, nothing is said that depends on the time."""
    if complete := condition(job, "Complete"):
        return Phase("Complete", complete.get("message") or complete.get("reason", ""))
    said = str((job.get("status") or {}).get("message") or "")
    if failed := condition(job, "Failed"):
        reason = reason_of(Evidence(job=job, workload=jobset, pods=pods))
        return Phase("Failed", reason.message if reason else said or failed.get("message") or failed.get("reason", ""))
    problem = said if jobset is None and said != BUILDING else ""
    reason = reason_of(Evidence(job=job, workload=jobset, pods=pods, problem=problem, now=now))
    if (job.get("spec") or {}).get("suspend"):
        return Phase("Suspended", reason.message if reason else "suspended by spec.suspend")
    if jobset is None:
        return Phase("Pending", reason.message if reason else "waiting for the operator to build its JobSet")
    elastic = (job.get("status") or {}).get("elastic")
    if elastic and said and elastic["readyNodes"] >= elastic["minNodes"]:
        return Phase("Running", said)
    if reason is not None and not any(phase_name(pod) == "Failed" for pod in pods):
        return Phase("Running" if reason.code in GOES_ON else "Pending", reason.message)
    return _phase_of_pods(job, jobset, pods)


def _phase_of_pods(job: Json, jobset: Json, pods: list[Json]) -> Phase:
    expected = expected_pods(job, jobset)
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


def expected_pods(job: Json, jobset: Json) -> int:
    """The pods of the JobSet; of an elastic TrainJob's nodes, as many as it asks for now."""
    total = 0
    elastic = (job.get("status") or {}).get("elastic")
    for replicated in jobset["spec"].get("replicatedJobs", []):
        template = replicated["template"]
        pods = int(template["spec"].get("parallelism", 1))
        if elastic and ELASTIC in ((template.get("metadata") or {}).get("labels") or {}):
            pods = int(elastic["wantedNodes"])
        total += int(replicated.get("replicas", 1)) * pods
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
    message = str(terminated.get("message") or "")
    if message and terminated.get("reason") not in ("Error", "OOMKilled"):  # else it is the end of its output
        text += f": {message.splitlines()[0]}"
    return text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
