"""What is known of a Job and its pods before anything is decided: who is active, who has ended and is not counted yet,
which indexes have succeeded or failed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.embedded.workloads.job import backoff, indexes, pod_failure_policy, pods
from trainwright.embedded.workloads.job.accounting import (
    Uncounted,
    has_failed,
    is_active,
    is_terminating,
    is_tracked,
    replaces_only_failed,
)
from trainwright.embedded.workloads.objects import ApiObject


class Facts:
    """Facts of one moment. Pods without the tracking finalizer have been counted before."""

    def __init__(self, job: ApiObject, owned: Iterable[ApiObject]) -> None:
        spec = job.spec
        self.job = job
        self.indexed: bool = spec.get("completionMode") == "Indexed"
        self.parallelism: int = spec.get("parallelism", 1)
        self.completions: int | None = spec.get("completions", 1 if "parallelism" not in spec else None)
        if self.indexed and self.completions is None:
            self.completions = self.parallelism
        self.suspended = bool(spec.get("suspend"))
        self.replaces_only_failed = replaces_only_failed(job)
        self.limit_per_index: int | None = spec.get("backoffLimitPerIndex") if self.indexed else None
        self.pods = sorted(owned, key=lambda pod: (pods.index_of(pod) or 0, pod.metadata.creation_timestamp or ""))
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.terminating = [pod for pod in self.pods if is_terminating(pod)]
        self.uncounted = Uncounted(job.status)
        self._matches: dict[str, pod_failure_policy.Match] = {}
        valid = [pod for pod in self.pods if is_tracked(pod) and self.has_valid_index(pod)]
        self._failed_valid = [pod for pod in valid if self.has_failed(pod)]
        self.new_succeeded = [
            pod for pod in valid if pod.phase == "Succeeded" and pod.metadata.uid not in self.uncounted.succeeded
        ]
        self.new_failed = [pod for pod in self._failed_valid if pod.metadata.uid not in self.uncounted.failed]
        self.failed: int = (
            self.uncounted.failed_count + len(self.uncounted.failed) + sum(map(self.counts, self.new_failed))
        )
        self.succeeded: int = self.uncounted.succeeded_count + len(self.uncounted.succeeded) + len(self.new_succeeded)
        self.succeeded_before: set[int] = set()
        self.succeeded_indexes: set[int] = set()
        self.failed_indexes: set[int] = set()
        self.awaiting_replacement: dict[int, ApiObject] = {}
        if self.indexed:
            self._look_at_indexes(valid)

    def _look_at_indexes(self, valid: list[ApiObject]) -> None:
        assert self.completions is not None
        self.succeeded_before = indexes.parse(self.job.status.get("completedIndexes"), self.completions)
        self.succeeded_indexes = self.succeeded_before | {
            index for pod in valid if pod.phase == "Succeeded" and (index := pods.index_of(pod)) is not None
        }
        self.succeeded = len(self.succeeded_indexes)
        if self.limit_per_index is None:
            return
        self.failed_indexes = indexes.parse(self.job.status.get("failedIndexes"), self.completions)
        for pod in self._failed_valid:
            index = pods.index_of(pod)
            if index is not None and self._fails_its_index(pod, self.limit_per_index):
                self.failed_indexes.add(index)
        self.awaiting_replacement = self._last_failed_by_index()

    def _fails_its_index(self, pod: ApiObject, limit: int) -> bool:
        if self.action(pod) == "FailIndex":
            return True
        return self.counts(pod) and pods.failures_before(pod).counted >= limit

    def _last_failed_by_index(self) -> dict[int, ApiObject]:
        """The last failed pod of each index that waits for a replacement: the failures written on it go on to that,
        so it keeps its finalizer until then.
        """
        busy = {pods.index_of(pod) for pod in self.active} | self.succeeded_indexes | self.failed_indexes
        found: dict[int, ApiObject] = {}
        for pod in self._failed_valid:
            index = pods.index_of(pod)
            if index is None or index in busy:
                continue
            before = found.get(index)
            if before is None or (
                sum(pods.failures_before(before)) <= sum(pods.failures_before(pod))
                and backoff.finished_at(pod) >= backoff.finished_at(before)
            ):
                found[index] = pod
        return found

    def has_valid_index(self, pod: ApiObject) -> bool:
        """Whether a pod is one of those that the Job wants: always, unless the Job is Indexed."""
        if not self.indexed:
            return True
        index = pods.index_of(pod)
        return index is not None and index < (self.completions or 0)

    def has_failed(self, pod: ApiObject) -> bool:
        return has_failed(pod, self.job)

    def match(self, pod: ApiObject) -> pod_failure_policy.Match:
        uid = pod.metadata.uid
        if uid not in self._matches:
            self._matches[uid] = pod_failure_policy.match(self.job.spec.get("podFailurePolicy"), pod)
        return self._matches[uid]

    def action(self, pod: ApiObject) -> pod_failure_policy.Action:
        return self.match(pod).action

    def counts(self, pod: ApiObject) -> bool:
        """Whether the failure of the pod counts."""
        return self.action(pod) != "Ignore"
