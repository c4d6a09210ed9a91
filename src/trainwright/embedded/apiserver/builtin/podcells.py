"""The Ready, Status and Restarts cells of a pod, computed from its containers as kubectl shows them."""

from __future__ import annotations

import datetime

from trainwright.embedded.apiserver.http.age import human_duration, parse
from trainwright.schema.jsonobject import Json


def _statuses(obj: Json, member: str) -> list[Json]:
    return (obj.get("status") or {}).get(member) or []


def _sidecars(obj: Json) -> set[str]:
    return {
        c.get("name", "")
        for c in (obj.get("spec") or {}).get("initContainers") or ()
        if c.get("restartPolicy") == "Always"
    }


def pod_ready(obj: Json) -> str:
    sidecars = _sidecars(obj)
    total = len((obj.get("spec") or {}).get("containers") or ()) + len(sidecars)
    ready = 0
    for status in _statuses(obj, "initContainerStatuses"):
        if status.get("name") in sidecars and status.get("ready"):
            ready += 1
    for status in _statuses(obj, "containerStatuses"):
        if status.get("ready") and (status.get("state") or {}).get("running") is not None:
            ready += 1
    return f"{ready}/{total}"


def pod_restarts(obj: Json, now: float) -> str:
    sidecars = _sidecars(obj)
    counts = init_counts = 0
    last: datetime.datetime | None = None
    init_last: datetime.datetime | None = None
    initializing = False
    for status in _statuses(obj, "initContainerStatuses"):
        init_counts += status.get("restartCount", 0)
        init_last = _later(init_last, status)
        terminated = (status.get("state") or {}).get("terminated")
        done = terminated is not None and terminated.get("exitCode") == 0
        if status.get("name") in sidecars:
            counts += status.get("restartCount", 0)
            last = _later(last, status)
            done = done or bool(status.get("started"))
        initializing = initializing or not done
    if initializing and _statuses(obj, "initContainerStatuses"):
        counts, last = init_counts, init_last
    else:
        for status in _statuses(obj, "containerStatuses"):
            counts += status.get("restartCount", 0)
            last = _later(last, status)
    if counts and last is not None:
        return f"{counts} ({human_duration(now - last.timestamp())} ago)"
    return str(counts)


def _later(last: datetime.datetime | None, status: Json) -> datetime.datetime | None:
    moment = parse(((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
    if moment is None:
        return last
    return moment if last is None or moment > last else last


def pod_status(obj: Json) -> str:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    reason = str(status.get("reason") or status.get("phase", ""))
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    waiting_for_init, init_reason = _init_reason(obj, spec)
    if waiting_for_init:
        reason = init_reason
    if not waiting_for_init or _initialized(status):
        reason = _container_reason(obj, status, reason)
    if obj["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Failed", "Succeeded"):
            return "Terminating"
    return reason


def _initialized(status: Json) -> bool:
    return any(c.get("type") == "Initialized" and c.get("status") == "True" for c in status.get("conditions") or ())


def _init_reason(obj: Json, spec: Json) -> tuple[bool, str]:
    sidecars = _sidecars(obj)
    total = len(spec.get("initContainers") or ())
    for index, container in enumerate(_statuses(obj, "initContainerStatuses")):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        if terminated is not None:
            return True, "Init:" + _terminated_reason(terminated)
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return True, f"Init:{waiting['reason']}"
        return True, f"Init:{index}/{total}"
    return False, ""


def _terminated_reason(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _container_reason(obj: Json, status: Json, reason: str) -> str:
    running, failure = False, ""
    for container in reversed(_statuses(obj, "containerStatuses")):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = str(waiting["reason"])
        elif terminated is not None:
            reason = _terminated_reason(terminated)
            if terminated.get("exitCode"):
                failure = reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        if ready:
            return "Running"
    if reason == "Completed":
        return failure or ("NotReady" if running else reason)
    return reason


def pod_conditions(obj: Json) -> list[Json]:
    """The condition of a table row for a pod that has ended."""
    phase = (obj.get("status") or {}).get("phase")
    texts = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    if phase not in texts:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": texts[phase]}]
