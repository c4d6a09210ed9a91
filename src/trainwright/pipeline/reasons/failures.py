"""Pods that failed: what their containers said, or why they never ran, or who took them away.

In: the evidence. Out: one finding for each container or pod that failed. Which of them is the reason is decided by
weight and time: a rank that only lost its connection to another is no reason while there is a better one.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.pipeline.reasons import logs, scheduling, signals
from trainwright.pipeline.reasons.cause import FIRST, Cause, Finding
from trainwright.pipeline.reasons.evidence import (
    Ended,
    Evidence,
    condition_of,
    ended,
    label_of,
    name_of,
    phase_name,
    status_of,
)
from trainwright.pipeline.reasons.ranks import speaker
from trainwright.schema.jsonobject import Json

REFUSED = Cause(
    "PodRefused",
    "The node does not support what the pod asks for",
    "The node refused the pod before it started anything, and says which field it cannot honour. The local node runs"
    " pods as processes and refuses what it would otherwise ignore silently.",
    "Take the field out of the runtime or the TrainJob, or run it on a cluster: trainwright run --context NAME",
)
PROGRAM_MISSING = Cause(
    "ProgramMissing",
    "The command cannot be started",
    "The first word of the command is no program where the pod runs, or may not be executed.",
    "Correct the command, or install the program where the pod runs",
    "On the local node a command runs with the programs of this machine; the image is not used. In a cluster the image"
    " must have it.",
)
EVICTED = Cause(
    "Evicted",
    "The pod was evicted",
    "The node ended the pod because it ran short of memory, disk or processes, or somebody drained the node.",
    "Ask for what the pod really uses (resourcesPerNode), so that it gets a node with room, and start it again",
    "A pod that asks for less than it uses is evicted first. `--retries` starts a job again after such an end.",
)
PREEMPTED = Cause(
    "Preempted",
    "A pod of higher priority took its place",
    "The scheduler ended the pod to make room for one of higher priority.",
    "Start it again when there is room, give it a higher priority (podPriorityPolicy), or allow restarts (--retries)",
)
NODE_LOST = Cause(
    "NodeLost",
    "The node went away",
    "The node stopped reporting, was shut down or was removed, and its pods with it.",
    "Start it again; with restarts (--retries, or failurePolicy) and checkpoints it would have gone on by itself",
)
SUPERVISOR_LOST = Cause(
    "ProcessesLost",
    "The pod's processes are gone",
    "The process that looks after the pod on this machine was killed, and its containers with it: by a person, by a"
    " restart of the machine, or by the kernel because memory ran out.",
    "Start it again; if it happens again, look at memory first: dmesg",
)
POD_DEADLINE = Cause(
    "PodDeadline",
    "The pod was active for longer than it may be",
    "The pod's own activeDeadlineSeconds is over.",
    "Raise activeDeadlineSeconds in the runtime, or make the work shorter",
)
POD_FAILED = Cause(
    "PodFailed",
    "The pod failed",
    "The pod ended without a container that failed; its status says why in the words of the node.",
    "Look at the pod: trainwright get pods, and kubectl describe pod",
)
NEVER_FITS = (
    "Ask for less (--cpus, --memory, --gpus, or resourcesPerNode), or use a larger machine:"
    " trainwright run --context NAME"
)
_BY_REASON = {
    "NotSupported": REFUSED,
    "StartError": PROGRAM_MISSING,
    "Evicted": EVICTED,
    "Preempting": PREEMPTED,
    "Preempted": PREEMPTED,
    "NodeLost": NODE_LOST,
    "NodeShutdown": NODE_LOST,
    "Terminated": NODE_LOST,
    "Shutdown": NODE_LOST,
    "SupervisorLost": SUPERVISOR_LOST,
    "DeadlineExceeded": POD_DEADLINE,
}
_DISRUPTIONS = {
    "PreemptionByScheduler": PREEMPTED,
    "DeletionByTaintManager": NODE_LOST,
    "DeletionByPodGC": NODE_LOST,
    "EvictionByEvictionAPI": EVICTED,
    "TerminationByKubelet": EVICTED,
}
_START_ERRORS = ("StartError", "ContainerCannotRun", "RunContainerError")


def find(evidence: Evidence) -> Iterator[Finding]:
    for pod in evidence.pods:
        if disrupted := _disruption(pod):
            yield disrupted
        elif phase_name(pod) == "Failed" and status_of(pod).get("reason"):
            yield _of_pod(pod)
    yield from map(of_container, ended(evidence))


def of_container(one: Ended) -> Finding:
    """Why a container ended with an error."""
    if one.reason in _START_ERRORS:
        rank = signals.rank_of(one)
        message = str(one.terminated.get("message") or one.reason)
        return Finding(
            cause=PROGRAM_MISSING,
            what=f"{signals.who_failed(one, rank)} could not be started: {message.splitlines()[0]}",
            kind="Pod",
            name=name_of(one.pod),
            rank=rank,
            time=one.time,
        )
    if one.reason == "OOMKilled":
        return signals.by_exit_code(one)
    return logs.find(one) or signals.by_exit_code(one)


def _of_pod(pod: Json) -> Finding:
    status = status_of(pod)
    reason = str(status["reason"])
    short = scheduling.cause_of_refusal(reason)
    cause = short or _BY_REASON.get(reason, POD_FAILED)
    message = str(status.get("message") or reason).rstrip(". ")
    refused = "was refused by the node" if short or cause is REFUSED else f"failed ({reason})"
    return Finding(
        cause=cause,
        what=f"{who(pod)} {refused}: {message}",
        mend=NEVER_FITS if short else "",
        kind="Pod",
        name=name_of(pod),
        rank=rank_of_pod(pod),
        weight=FIRST,
        time=str(status.get("startTime") or ""),
    )


def _disruption(pod: Json) -> Finding | None:
    disrupted = condition_of(pod, "DisruptionTarget")
    if disrupted is None:
        return None
    reason = str(disrupted.get("reason") or "")
    cause = _DISRUPTIONS.get(reason, EVICTED)
    detail = str(disrupted.get("message") or reason).rstrip(". ")
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    return Finding(
        cause=cause,
        what=f"{who(pod)} was taken away{f' from node {node}' if node else ''} ({reason}): {detail}",
        kind="Pod",
        name=name_of(pod),
        rank=rank_of_pod(pod),
        time=str(disrupted.get("lastTransitionTime") or ""),
    )


def rank_of_pod(pod: Json) -> int | None:
    """The rank, of a pod that has one."""
    speaks = speaker(pod)
    return speaks.node if speaks.processes == 1 else None


def who(pod: Json) -> str:
    rank = rank_of_pod(pod)
    return f"rank {rank}" if rank is not None else label_of(pod)


CAUSES = (REFUSED, PROGRAM_MISSING, EVICTED, PREEMPTED, NODE_LOST, SUPERVISOR_LOST, POD_DEADLINE, POD_FAILED)
