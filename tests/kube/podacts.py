"""What a scheduler, a kubelet or a user does to pods, played on any API server.

In: a REST client, a namespace's pods and a seeded chance. Pods that end did so an hour ago, so that no back-off holds
up their replacement, or (with `away`, now and then) an hour from now, so that it holds it up for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Rest

HOUR = 3600.0


def has_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


class PodActs:
    """What may happen to the pods of one life, by name."""

    def __init__(self, rest: Rest, rng: Random, pods: list[Json], *, away: bool = True) -> None:
        self._rest = rest
        self._rng = rng
        self._away = away
        deleted = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        self._going = [pod for pod in deleted if not has_ended(pod)]
        self._open = [pod for pod in pods if pod not in deleted and not has_ended(pod)]

    def acts(self) -> dict[str, Callable[[], None]]:
        return {
            "succeed": lambda: self._end(self._one(self._open), "Succeeded"),
            "succeed all": lambda: self._end(self._open, "Succeeded"),
            "fail": lambda: self._end(self._one(self._open), "Failed"),
            "disrupt": lambda: self._end(self._one(self._open), "Failed", disrupted=True),
            "delete": lambda: self._delete(self._one(self._open), {}),
            "vanish": lambda: self._delete(self._one(self._open), {"gracePeriodSeconds": 0}),
            "let go": lambda: self._delete(self._going, {"gracePeriodSeconds": 0}),
            "end and let go": self._end_and_let_go,
            "bind": self._bind,
            "ready": self._ready,
            "restart": self._restart,
        }

    def _one(self, pods: list[Json]) -> list[Json]:
        return [pods[self._rng.randrange(len(pods))]] if pods else []

    def _path(self, pod: Json) -> str:
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def _tell(self, pod: Json, **status: Any) -> None:
        self._rest.patch(f"{self._path(pod)}/status", {"status": status})

    def _containers(self, pod: Json, state: Json, **more: Any) -> list[Json]:
        base = {"image": "none", "imageID": "", "restartCount": 0, "ready": False}
        return [{**base, "name": each["name"], "state": state, **more} for each in pod["spec"]["containers"]]

    def _end(self, pods: list[Json], phase: str, *, disrupted: bool = False) -> None:
        code = self._rng.choice((1, 42, 137)) if phase == "Failed" else 0
        away = HOUR if self._away and self._rng.random() < 0.1 else -HOUR
        at = rfc3339(time.time() + away)
        ended = {"terminated": {"exitCode": code, "startedAt": at, "finishedAt": at}}
        conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": at}]
        if disrupted:
            conditions.append({"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at})
        for pod in pods:
            self._tell(pod, phase=phase, containerStatuses=self._containers(pod, ended), conditions=conditions)

    def _delete(self, pods: list[Json], options: Json) -> None:
        """By hand. The pod was not ready for an hour, so its replacement need not wait."""
        at = rfc3339(time.time() - HOUR)
        for pod in pods:
            self._tell(pod, conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": at}])
            self._rest.raw("DELETE", self._path(pod), options)

    def _end_and_let_go(self) -> None:
        self._end(self._going, "Failed")
        for pod in self._going:
            self._rest.raw("DELETE", self._path(pod), {"gracePeriodSeconds": 0})

    def _bind(self) -> None:
        for pod in self._open:
            if not pod["spec"].get("nodeName"):
                target = {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
                self._rest.create(f"{self._path(pod)}/binding", {**body, "target": target})

    def _ready(self) -> None:
        at = rfc3339(time.time() - HOUR)
        for pod in self._open:
            running = self._containers(pod, {"running": {"startedAt": at}}, ready=True)
            ready = [{"type": "Ready", "status": "True", "lastTransitionTime": at}]
            self._tell(pod, phase="Running", containerStatuses=running, conditions=ready)

    def _restart(self) -> None:
        at = rfc3339(time.time() - HOUR)
        for pod in self._one(self._open):
            again = self._containers(pod, {"running": {"startedAt": at}}, restartCount=self._rng.randint(1, 3))
            self._tell(pod, phase="Running", containerStatuses=again)
