"""Writes a TrainJob's status: last, once, bound to the version it was derived from, only when it is news (I6, I8)."""

from __future__ import annotations

from typing import Any

import msgspec

from trainwright.api.mergepatches import changed_members, status_patch
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import TrainJob, TrainJobStatus
from trainwright.client import Client
from trainwright.operator.applier import FIELD_MANAGER


def difference(old: TrainJobStatus | None, new: TrainJobStatus) -> dict[str, Any]:
    """The merge patch from one status to the other: changed members whole, vanished ones null, else empty."""
    before: dict[str, Any] = msgspec.to_builtins(old) if old is not None else {}
    after: dict[str, Any] = msgspec.to_builtins(new)
    patch = changed_members(before, after)
    patch.pop("trainerStatus", None)  # the progress server's alone
    return patch


async def write_status(client: Client, job: TrainJob, new: TrainJobStatus) -> bool:
    """Patches the status if it differs; `Conflict` when the TrainJob has changed since `job` was read."""
    patch = difference(job.status, new)
    if not patch:
        return False
    await client.patch(
        TRAIN_JOBS,
        status_patch(job.metadata, patch),
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        subresource="status",
        field_manager=FIELD_MANAGER,
        decode=bytes,
    )
    return True
