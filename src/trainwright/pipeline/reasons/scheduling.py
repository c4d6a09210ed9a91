"""Pods that no node takes: what they ask for, and what the scheduler says.

In: pods without a node. Out: a finding for the first of them, in kube-scheduler's own words. The local scheduler uses
the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.api.times import seconds_of
from trainwright.pipeline.reasons import volumes
from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence, condition_of, index_of, label_of, name_of, phase_name
from trainwright.pipeline.reasons.queues import GANG, GANG_NEVER_FITS
from trainwright.schema.jsonobject import Json

SILENCE_SECONDS = 30.0
"""How long a pod may be without a word of any scheduler."""
GPU = re.compile(r"Insufficient ([^\s,]*(?:gpu|gaudi|tpu|neuron)[^\s,.]*)", re.IGNORECASE)
GANG_REJECTION = re.compile(r"rejection in (PostFilter|Unreserve)")
"""What scheduler-plugins' coscheduling says of a pod whose gang has no room; of the pod that had none it says more."""
INSUFFICIENT = re.compile(r"Insufficient ([^\s,]*[^\s,.])")

NO_CPU = Cause(
    "TooLittleCpu",
    "No node has so many CPUs free",
    "Each node of the job asks for more CPUs than any machine has free. If it asks for more than any machine has at"
    " all, it will wait for ever.",
    "Ask for fewer CPUs (--cpus, or resourcesPerNode) or fewer nodes, or wait until other jobs end",
    "`trainwright why JOB` shows what the nodes have. On the local cluster the node is this machine.",
)
NO_MEMORY = Cause(
    "TooLittleMemory",
    "No node has so much memory free",
    "Each node of the job asks for more memory than any machine has free.",
    "Ask for less memory (--memory, or resourcesPerNode) or fewer nodes, or wait until other jobs end",
)
NO_GPU = Cause(
    "NoGpu",
    "No node has such a GPU free",
    "The job asks for GPUs, and no machine has as many of that kind free. A machine without any will never have one.",
    "Leave out --gpus to train on the CPU, or use a cluster that has GPUs: trainwright run --context NAME",
)
NO_RESOURCE = Cause(
    "TooLittleOfAResource",
    "No node has enough of a resource",
    "The job asks for a resource, such as disk or a device, of which no machine has enough free.",
    "Ask for less of it in resourcesPerNode, or install the device plugin that provides it",
)
TOO_MANY_PODS = Cause(
    "TooManyPods",
    "The nodes are full of pods",
    "A node runs only so many pods, whatever they use.",
    "Wait until other jobs end, or use fewer nodes with more processes each (--procs)",
)
NODE_SELECTOR = Cause(
    "NoMatchingNode",
    "No node has the labels that the job asks for",
    "A nodeSelector or a node affinity of the runtime, the TrainJob or the queue's flavor matches no node.",
    "Correct nodeSelector and affinity, or label a node: kubectl get nodes --show-labels",
)
TAINT = Cause(
    "TaintNotTolerated",
    "Every node has a taint that the job does not tolerate",
    "Nodes that are reserved, cordoned or not ready carry a taint, and only pods that tolerate it may run there.",
    "Add the toleration to the TrainJob (runtimePatches), or remove the taint: kubectl describe node",
)
NODES_CLOSED = Cause(
    "NodesClosed",
    "The nodes take no pods",
    "The nodes are cordoned or not ready.",
    "Open a node: kubectl uncordon NODE; on the local cluster: trainwright status",
)
NO_NODES = Cause(
    "NoNodes",
    "The cluster has no nodes",
    "The scheduler knows no node at all.",
    "Add a node, or wait for the autoscaler; on the local cluster: trainwright status",
)
GATED = Cause(
    "SchedulingGated",
    "Somebody holds the pods back",
    "The pods have scheduling gates, which whoever set them takes away: Kueue, for one, until it admits the job.",
    "See who set the gate: kubectl get pod -o yaml, under spec.schedulingGates",
)
NO_SCHEDULER = Cause(
    "SchedulerAway",
    "No scheduler takes care of the pods",
    "The pods name a scheduler (schedulerName) of which nothing is heard: it is not installed, or it is not running.",
    "Start that scheduler, or use a runtime without schedulerName",
)
UNSCHEDULABLE = Cause(
    "Unschedulable",
    "No node takes the pod",
    "The scheduler found no node for the pod, for reasons that it names.",
    "Change what the reason names, or wait until other jobs end",
)
CAUSES = (
    NO_CPU, NO_MEMORY, NO_GPU, NO_RESOURCE, TOO_MANY_PODS, NODE_SELECTOR, TAINT, NODES_CLOSED, NO_NODES, GATED,
    NO_SCHEDULER, UNSCHEDULABLE,
)  # fmt: skip


def find(evidence: Evidence) -> Iterator[Finding]:
    waiting = sorted((pod for pod in evidence.pods if _has_no_node(pod)), key=lambda pod: (index_of(pod), name_of(pod)))
    told = [(pod, said) for pod in waiting if (said := condition_of(pod, "PodScheduled", "False"))]
    told.sort(
        key=lambda each: bool(GANG_REJECTION.search(str(each[1].get("message") or "")))
    )  # another pod of it may say more
    for pod, said in told[:1]:
        yield _unschedulable(evidence, pod, said, len(told))
    if not told:
        for pod in waiting:
            if _is_silent(pod, evidence.now):
                yield Finding(
                    cause=NO_SCHEDULER,
                    what=f"{label_of(pod)} waits: scheduler {_scheduler(pod)} has said nothing about it",
                    kind="Pod",
                    name=name_of(pod),
                )
                return


def _is_rejected_with_its_gang(said: Json) -> bool:
    return GANG_REJECTION.search(str(said.get("message") or "")) is not None


def _unschedulable(evidence: Evidence, pod: Json, said: Json, count: int) -> Finding:
    message = str(said.get("message") or "no node fits it").rstrip(". ")
    who = label_of(pod) if count == 1 else f"{label_of(pod)} and {count - 1} more"
    if said.get("reason") == "SchedulingGated":
        gates = ", ".join(str(gate.get("name")) for gate in (pod.get("spec") or {}).get("schedulingGates") or ())
        what, cause = f"{who} waits for its scheduling gates to be taken away: {gates or message}", GATED
        return Finding(cause=cause, what=what, kind="Pod", name=name_of(pod))
    if found := volumes.in_scheduling(evidence, pod, who, message):
        return found
    cause = _cause_of(message)
    return Finding(
        cause=cause,
        what=f"{who} waits{_asked(pod, message)}: {message}",
        kind="Pod",
        name=name_of(pod),
        time=str(said.get("lastTransitionTime") or ""),
        details=tuple(_rooms(evidence, message)),
    )


def _cause_of(message: str) -> Cause:
    if GANG_REJECTION.search(message):
        return GANG
    if message.startswith("gang "):
        return GANG_NEVER_FITS if "can never fit" in message else GANG
    if GPU.search(message):
        return NO_GPU
    if found := INSUFFICIENT.search(message):
        return {"cpu": NO_CPU, "memory": NO_MEMORY}.get(found[1], NO_RESOURCE)
    for words, cause in (
        ("Too many pods", TOO_MANY_PODS),
        ("node affinity/selector", NODE_SELECTOR),
        ("untolerated taint", TAINT),
        ("were unschedulable", NODES_CLOSED),
        ("were not ready", NODES_CLOSED),
        ("no nodes available", NO_NODES),
        ("0/0 nodes", NO_NODES),
    ):
        if words in message:
            return cause
    return UNSCHEDULABLE


def cause_of_refusal(reason: str) -> Cause | None:
    """The cause, for the reason of a pod that a node refused for want of a resource: `OutOfcpu`."""
    if not reason.startswith("OutOf"):
        return None
    resource = reason.removeprefix("OutOf")
    return TOO_MANY_PODS if resource == "pods" else _cause_of(f"Insufficient {resource}")


def _asked(pod: Json, message: str) -> str:
    """` for 64 cpu`: how much the pod asks for of what is missing."""
    found = GPU.search(message) or INSUFFICIENT.search(message)
    if found is None:
        return ""
    asked = []
    for container in (pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        amount = (resources.get("requests") or {}).get(found[1]) or (resources.get("limits") or {}).get(found[1])
        if amount is not None:
            asked.append(str(amount))
    return f" for {' + '.join(asked)} {found[1]}" if asked else ""


def _rooms(evidence: Evidence, message: str) -> Iterator[str]:
    """What each node has of what is missing."""
    found = GPU.search(message) or INSUFFICIENT.search(message)
    if found is None:
        return
    for node in evidence.nodes:
        room = ((node.get("status") or {}).get("allocatable") or {}).get(found[1]) or 0
        yield f"node {name_of(node)} has {room} {found[1]} in all"


def _has_no_node(pod: Json) -> bool:
    return phase_name(pod) == "Pending" and not (pod.get("spec") or {}).get("nodeName")


def _scheduler(pod: Json) -> str:
    return str((pod.get("spec") or {}).get("schedulerName") or "default-scheduler")


def _is_silent(pod: Json, now: float) -> bool:
    created = (pod.get("metadata") or {}).get("creationTimestamp")
    return bool(now and created and now - seconds_of(str(created)) > SILENCE_SECONDS)
