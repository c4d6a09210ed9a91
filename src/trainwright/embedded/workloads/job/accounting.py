"""Counts each finished pod of a Job exactly once, with Kubernetes' tracking finalizer. Pure.

A pod keeps the finalizer until it is counted, so none is lost when somebody deletes it. First its uid is stored in
`status.uncountedTerminatedPods`, then the finalizer is taken off, then the uid becomes part of a counter: whoever reads
the status after any of these steps knows what is left to do. Succeeded pods of an Indexed Job need no uid, because
`completedIndexes` names them.
"""

from __future__ import annotations

from collections.abc import Collection

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

FINALIZER = "batch.kubernetes.io/job-tracking"
MOST_AT_ONCE = 500
"""How many pods one step counts at most, so that the status stays small."""

ENDED = ("Succeeded", "Failed")


def is_tracked(pod: ApiObject) -> bool:
    return FINALIZER in (pod.metadata.finalizers or ())


def is_active(pod: ApiObject) -> bool:
    return pod.phase not in ENDED and not pod.is_being_deleted


def is_terminating(pod: ApiObject) -> bool:
    return pod.phase not in ENDED and pod.is_being_deleted


def replaces_only_failed(job: ApiObject) -> bool:
    """Whether a pod that is being deleted counts as failed, and is replaced, only when it has ended."""
    return job.spec.get("podReplacementPolicy") == "Failed" or job.spec.get("podFailurePolicy") is not None


def has_failed(pod: ApiObject, job: ApiObject) -> bool:
    """A pod that is deleted counts as failed: without a node it would never get to the phase Failed."""
    if pod.phase == "Failed":
        return True
    return not replaces_only_failed(job) and pod.is_being_deleted and pod.phase != "Succeeded"


class Uncounted:
    """The uids of `status.uncountedTerminatedPods`, with the two counters that they end in."""

    def __init__(self, status: Json) -> None:
        stored = status.get("uncountedTerminatedPods") or {}
        self.succeeded: list[str] = list(stored.get("succeeded") or ())
        self.failed: list[str] = list(stored.get("failed") or ())
        self.succeeded_count: int = status.get("succeeded", 0)
        self.failed_count: int = status.get("failed", 0)

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)

    def count(self, tracked: Collection[str]) -> None:
        """Count those whose pods no longer have the finalizer. `tracked`: the uids of pods that still do."""
        left = [uid for uid in self.succeeded if uid in tracked]
        self.succeeded_count += len(self.succeeded) - len(left)
        self.succeeded = left
        left = [uid for uid in self.failed if uid in tracked]
        self.failed_count += len(self.failed) - len(left)
        self.failed = left

    def json(self) -> Json:
        """The member of the status. Empty lists are absent."""
        return {name: uids for name, uids in (("succeeded", self.succeeded), ("failed", self.failed)) if uids}
