"""Which user a container's processes are to be, and whether that can be had here.

In: a pod's spec and one of its containers. Out: the uid and gid that they see as their own. In a user namespace the
caller, and nobody else, is mapped to them: files that the caller owns are the container's own, and the processes have
no rights that the caller has not. Pure, but for the caller's own ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json

NONROOT = 65532
"""The user of a container that must not be root and names no user, if the caller is root."""


def run_as(spec: Json, container: Json) -> list[int] | None:
    """The uid and gid inside, if they are not the caller's own."""
    mine = [os.geteuid(), os.getegid()]
    uid, gid = _asked(spec, container, "runAsUser"), _asked(spec, container, "runAsGroup")
    if uid is None and mine[0] == 0 and _asked(spec, container, "runAsNonRoot"):
        uid = NONROOT
    inside = [mine[0] if uid is None else uid, mine[1] if gid is None else gid]
    return None if inside == mine else inside


def refusals(spec: Json, container: Json, tier: Tier) -> Iterator[str]:
    """Refuses users that cannot be mapped: the user is part of what a command does (ssh refuses keys of others)."""
    where = f"container {container['name']}"
    wanted = run_as(spec, container)
    if wanted is not None and not tier.maps_users:
        asked = [field for field in ("runAsUser", "runAsGroup", "runAsNonRoot") if _asked(spec, container, field)]
        yield (
            f"{where}: {' and '.join(asked)} cannot be honoured: there is no user namespace to map user"
            f" {wanted[0]}:{wanted[1]} in, and processes run as {os.geteuid()}:{os.getegid()}"
        )
    if _asked(spec, container, "runAsNonRoot") and _asked(spec, container, "runAsUser") == 0:
        yield f"{where}: container's runAsUser breaks non-root policy"


def _asked(spec: Json, container: Json, field: str) -> int | None:
    """The container's own setting, else the pod's."""
    own = (container.get("securityContext") or {}).get(field)
    value = own if own is not None else (spec.get("securityContext") or {}).get(field)
    return None if value is None else int(value)
