"""Queues and gangs: Kueue's Workload, Volcano's and scheduler-plugins' PodGroup, Kubernetes' own gang scheduling."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence, condition_of, conditions_of, labels_of, name_of, status_of
from trainwright.schema.jsonobject import Json

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

KUEUE_QUOTA = Cause(
    "KueueQuota",
    "Kueue has no quota for the job yet",
    "The job is queued: Kueue keeps it suspended until its ClusterQueue has enough quota free.",
    "Wait for other jobs of the queue to end, or ask for less: kubectl get workloads.kueue.x-k8s.io",
)
KUEUE_QUEUE = Cause(
    "KueueQueueMissing",
    "The job's queue does not exist or is stopped",
    "The label kueue.x-k8s.io/queue-name names a LocalQueue that is not in the namespace, or whose ClusterQueue is"
    " inactive.",
    "Correct the label, or create the LocalQueue: kubectl get localqueues",
)
KUEUE_EVICTED = Cause(
    "KueueEvicted",
    "Kueue took the quota back",
    "Kueue suspended a job that had been admitted: one of higher priority needed the quota, its pods were not ready in"
    " time, or its queue was stopped. It is queued again and continues when there is quota.",
    "Wait for it to be admitted again; save checkpoints, so that it goes on where it was",
)
KUEUE_WAITS = Cause(
    "KueueQueued",
    "The job waits in Kueue's queue",
    "The job has a queue, and Kueue has not admitted it yet. Why is in Kueue's Workload, which not everybody may read.",
    "See its place: kubectl get workloads.kueue.x-k8s.io, or trainwright why JOB",
)
GANG = Cause(
    "GangWaits",
    "There is no room for all pods at once",
    "The pods of the job form a gang: they start together or not at all, and the cluster has no room for all of them at"
    " present. One that asks for more than the whole cluster has will wait for ever.",
    "Use fewer nodes or ask for less on each, or wait until other jobs end",
)
GANG_NEVER_FITS = Cause(
    "GangNeverFits",
    "The machines are too few or too small for all pods at once",
    "The pods of the job start together or not at all, and even an empty cluster has no room for all of them. The job"
    " would wait for ever.",
    "Use fewer nodes (--nodes) or ask for less on each (--cpus, --memory, --gpus)",
)
VOLCANO_QUEUE = Cause(
    "VolcanoQueue",
    "Volcano's queue does not admit the job",
    "The job's queue does not exist, is closed, or has used its share.",
    "Name a queue that exists and is open in the runtime's podGroupPolicy: kubectl get queues.scheduling.volcano.sh",
)
CAUSES = (KUEUE_QUOTA, KUEUE_QUEUE, KUEUE_EVICTED, KUEUE_WAITS, GANG, GANG_NEVER_FITS, VOLCANO_QUEUE)


def find(evidence: Evidence) -> Iterator[Finding]:
    if (evidence.job.get("spec") or {}).get("suspend"):
        yield from _kueue(evidence)
    else:
        for group in evidence.pod_groups:
            yield from _of_pod_group(group)


def _kueue(evidence: Evidence) -> Iterator[Finding]:
    queue = labels_of(evidence.job).get(QUEUE_LABEL)
    for workload in evidence.queued:
        if condition_of(workload, "Admitted") is None and (found := _of_kueue(workload)):
            yield msgspec.structs.replace(found, details=(*found.details, *_place(evidence, name_of(workload))))
            return
    if queue:
        yield Finding(cause=KUEUE_WAITS, what=f'it waits in Kueue\'s queue "{queue}"')


def _place(evidence: Evidence, workload: str) -> Iterator[str]:
    """Its place in the queue, which Kueue counts from zero."""
    for item in evidence.places:
        here, all_in_all = item.get("positionInLocalQueue"), item.get("positionInClusterQueue")
        if name_of(item) != workload or here is None:
            continue
        queue = item.get("localQueueName") or ""
        further = f", number {all_in_all + 1} in its ClusterQueue" if all_in_all is not None else ""
        yield f'number {here + 1} in the queue "{queue}"{further}'


def _of_kueue(workload: Json) -> Finding | None:
    name = name_of(workload)
    evicted = condition_of(workload, "Evicted")
    reserved = condition_of(workload, "QuotaReserved", "False")
    if evicted is not None:
        reason, message = str(evicted.get("reason") or ""), str(evicted.get("message") or "").rstrip(". ")
        what = f"Kueue took its quota back ({reason}): {message}"
        return Finding(cause=KUEUE_EVICTED, what=what, kind="Workload", name=name)
    if reserved is None:
        return None
    message = str(reserved.get("message") or "").rstrip(". ")
    queue = (workload.get("spec") or {}).get("queueName") or ""
    if reserved.get("reason") == "Inadmissible" or "doesn't exist" in message or "is inactive" in message:
        what = f'Kueue\'s queue "{queue}" does not admit it: {message}'
        return Finding(cause=KUEUE_QUEUE, what=what, kind="Workload", name=name)
    what = f'it waits in Kueue\'s queue "{queue}": {message}'
    return Finding(cause=KUEUE_QUOTA, what=what, kind="Workload", name=name)


def _of_pod_group(group: Json) -> Iterator[Finding]:
    """A PodGroup of Volcano, of scheduler-plugins or of Kubernetes that says why its pods wait."""
    name, status = name_of(group), status_of(group)
    for condition in conditions_of(group):
        message = str(condition.get("message") or "").rstrip(". ")
        kind, state = condition.get("type"), condition.get("status")
        if (kind, state) not in (("Unschedulable", "True"), ("PodGroupScheduled", "False")):
            continue
        is_queue = "queue" in message.lower() and "gang" not in message.lower().split("queue")[0][-20:]
        cause = VOLCANO_QUEUE if is_queue else GANG
        yield Finding(cause=cause, what=f"its pods wait together: {message}", kind="PodGroup", name=name)
        return
    if "volcano" in str(group.get("apiVersion") or "") and status.get("phase") in ("", None, "Pending"):
        queue = (group.get("spec") or {}).get("queue") or "default"
        what = f'its pods wait: Volcano\'s queue "{queue}" has not admitted their PodGroup'
        yield Finding(cause=VOLCANO_QUEUE, what=what, kind="PodGroup", name=name)
