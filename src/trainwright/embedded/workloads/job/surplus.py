"""Which active pods of a Job go when there are too many: those that lose the least work, in kube-controller-manager's
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def surplus(active: Iterable[ApiObject], least: int, completions: int | None) -> list[ApiObject]:
    """At least `least` pods. Of an Indexed Job (`completions` given) also every pod with no index, one that is out of
    range, or one that another pod has too.
    """
    ordered = sorted(active, key=_advance)
    if completions is None:
        return ordered[:least]
    found: list[ApiObject] = []
    left: list[ApiObject] = []
    for index, same in groupby(sorted(ordered, key=_index), key=_index):
        of_index = list(same)
        if index < 0 or index >= completions:
            found += of_index
        else:
            found += of_index[:-1]
            left.append(of_index[-1])
    left.sort(key=_advance)
    return found + left[: max(0, least - len(found))]


def _index(pod: ApiObject) -> int:
    index = pods.index_of(pod)
    return -1 if index is None else index


def _advance(pod: ApiObject) -> tuple[bool, int, bool, float, int, float, str]:
    """How far a pod has come: one with a node, running, ready for long, rarely restarted and old is worth the most."""
    ready = pod.condition("Ready") or {}
    is_ready = ready.get("status") == "True"
    since = _seconds(ready.get("lastTransitionTime")) if is_ready else 0.0
    restarts = max((_restarts(status) for status in pod.status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod.spec.get("nodeName")),
        _PHASES.get(pod.phase, 1),
        is_ready,
        -since,
        -restarts,
        -_seconds(pod.metadata.creation_timestamp),
        pod.name,
    )


def _restarts(status: Json) -> int:
    return int(status.get("restartCount", 0))


def _seconds(text: str | None) -> float:
    """Infinite for a time that is not known: such a pod is worth the least."""
    return seconds_of(text) if text else float("inf")
