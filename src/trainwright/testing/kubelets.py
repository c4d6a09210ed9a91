"""Fake kubelets for a control plane without KWOK: pods complete, fail or hang as a test asks.

In: a REST client. Out: Nodes that are Ready, and pods bound to them with the outcome that `trainwright.testing.nodes`
describes (annotation or environment variable). One thread watches, another acts at the right time.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from types import TracebackType

from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.rest import Refused, Rest

PODS = "/api/v1/pods"
ENDINGS = {"complete": ("Succeeded", 0, "Completed"), "fail": ("Failed", 1, "Error")}


class Kubelets:
    """`with Kubelets(rest, count):`. Every action is decided by the pod's state at that moment."""

    def __init__(self, rest: Rest, count: int = 2) -> None:
        self._rest = rest
        self._count = count
        self._stopped = threading.Event()
        self._due: list[tuple[float, int, str, str]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()

    def __enter__(self) -> Kubelets:
        for number in range(self._count):
            self._add_node(f"node-{number}")
        for work in (self._watch, self._act):
            threading.Thread(target=work, name=f"kubelets {work.__name__}", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    def _add_node(self, name: str) -> None:
        node = nodes.node(name)
        status = {**node.pop("status"), "conditions": [_condition("Ready", "True")]}
        status["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
        try:
            self._rest.create("/api/v1/nodes", node)
        except Refused as refused:
            if refused.code != 409:
                raise
        self._rest.patch(f"/api/v1/nodes/{name}/status", {"status": status})

    def _watch(self) -> None:
        while not self._stopped.is_set():
            try:
                listed = self._rest.get(PODS)
                for pod in listed["items"]:
                    self._look(pod)
                for event in self._rest.watch(PODS, listed["metadata"]["resourceVersion"], idle=600):
                    if self._stopped.is_set():
                        return
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._look(event["object"])
                    elif event["type"] == "ERROR":
                        break
            except (OSError, ValueError, Refused):
                self._stopped.wait(0.2)

    def _look(self, pod: Json) -> None:
        """Schedules the pod's next action."""
        wait = {"Running": nodes.RUN_MILLISECONDS / 1000}.get(pod.get("status", {}).get("phase", ""), 0.0)
        if next_step(pod) is None:
            return
        if "deletionTimestamp" in pod["metadata"]:
            wait = 0.0
        with self._changed:
            entry = (time.monotonic() + wait, next(self._order), pod["metadata"]["namespace"], pod["metadata"]["name"])
            heapq.heappush(self._due, entry)
            self._changed.notify_all()

    def _act(self) -> None:
        while not self._stopped.is_set():
            with self._changed:
                wait = self._due[0][0] - time.monotonic() if self._due else 60.0
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                _, _, namespace, name = heapq.heappop(self._due)
            try:
                self._step(f"/api/v1/namespaces/{namespace}/pods/{name}")
            except (OSError, ValueError, Refused):
                continue  # gone, changed or the server is away: the watch tells when to look again

    def _step(self, path: str) -> None:
        pod = self._rest.find(path)
        step = next_step(pod) if pod is not None else None
        if pod is None or step is None:
            return
        uid = pod["metadata"]["uid"]
        if step == "delete":
            self._rest.delete(path, gracePeriodSeconds=0, preconditions={"uid": uid})
            return
        self._rest.patch(f"{path}/status", {"metadata": {"uid": uid}, "status": status_after(pod, step)})


def next_step(pod: Json) -> str | None:
    """A kubelet's next action for the pod: `delete`, `run`, `complete`, `fail` or none."""
    if not pod["spec"].get("nodeName"):
        return None
    if "deletionTimestamp" in pod["metadata"]:
        return "delete"
    outcome = outcome_of(pod)
    phase = pod.get("status", {}).get("phase", "Pending")
    if phase == "Pending":
        return None if outcome == "pending" else "run"
    return outcome if phase == "Running" and outcome in ENDINGS else None


def outcome_of(pod: Json) -> str:
    annotated = pod["metadata"].get("annotations", {}).get(nodes.OUTCOME_ANNOTATION)
    variables = {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0].get("env", [])}
    return str(annotated or variables.get(nodes.OUTCOME_VARIABLE) or "complete")


def status_after(pod: Json, step: str) -> Json:
    now = _now()
    if step == "run":
        state: Json = {"running": {"startedAt": now}}
        conditions = [_condition(kind, "True") for kind in ("PodScheduled", "Initialized", "Ready", "ContainersReady")]
        status: Json = {"phase": "Running", "startTime": now, "podIP": "127.0.0.1", "hostIP": "127.0.0.1"}
    else:
        phase, code, reason = ENDINGS[step]
        state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
        conditions = [_condition(kind, "False") for kind in ("Ready", "ContainersReady")]
        status = {"phase": phase}
    status["conditions"] = conditions
    status["containerStatuses"] = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "restartCount": 0,
            "ready": step == "run",
            "started": step == "run",
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
    return status


def _condition(kind: str, status: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": _now(), "reason": "Test", "message": ""}


def _now() -> str:
    return rfc3339(time.time())
