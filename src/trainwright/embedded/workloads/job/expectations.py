"""What this process has written and its stores do not show yet, so that no pod is counted or deleted twice."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.job.accounting import FINALIZER, is_tracked
from trainwright.embedded.workloads.job.backoff import Record
from trainwright.embedded.workloads.objects import ApiObject


class Expectations:
    """Of one Job: finalizers taken off, pods deleted, the version of the last status, and the back-off."""

    def __init__(self) -> None:
        self.released: set[str] = set()
        self.deleted: set[str] = set()
        self.version = ""
        self.record: Record | None = None

    def shows(self, job: ApiObject) -> bool:
        """Whether the Job in the store is at least as new as the last status that was written."""
        seen, written = job.metadata.resource_version, self.version
        if not (seen.isdecimal() and written.isdecimal()):
            return True
        return int(seen) >= int(written)

    def applied(self, pods: Iterable[ApiObject], now: float) -> list[ApiObject]:
        """The pods of the store as they will be shown. Whatever the store shows already is forgotten."""
        found, released, deleted = [], set(), set()
        for pod in pods:
            metadata, uid = pod.metadata, pod.metadata.uid
            if uid in self.released and is_tracked(pod):
                released.add(uid)
                left = [name for name in metadata.finalizers or () if name != FINALIZER]
                metadata = msgspec.structs.replace(metadata, finalizers=left)
            if uid in self.deleted and not metadata.is_being_deleted:
                deleted.add(uid)
                metadata = msgspec.structs.replace(metadata, deletion_timestamp=rfc3339(now))
            found.append(pod if metadata is pod.metadata else msgspec.structs.replace(pod, metadata=metadata))
        self.released, self.deleted = released, deleted
        return found
