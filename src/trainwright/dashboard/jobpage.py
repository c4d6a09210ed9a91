"""One TrainJob as its page shows it: why it is as it is, its ranks, and what happened when. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.pipeline.reasons import Reason
from trainwright.pipeline.reasons.evidence import (
    condition_of,
    conditions_of,
    container_statuses,
    index_of,
    label_of,
    labels_of,
    name_of,
    phase_name,
    status_of,
)
from trainwright.pipeline.reasons.ranks import speaker, without_marks
from trainwright.pipeline.reasons.sentences import how_it_ended, waiting_reason
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
GPU_MEMORY = "trainwright.dev/gpu-memory"
COMMAND = re.compile(r"\b(?:trainwright|kubectl) [a-z][^,;:()]*?(?=$|[,;:()]|\.(?:\s|$)| and | or |\s*$)")


def why_of(reason: Reason | None, flag: str, namespace: str) -> Json | None:
    """The reason with the commands that its mend names, ready to be typed."""
    if reason is None:
        return None
    return {
        "code": reason.code,
        "headline": reason.headline,
        "mend": reason.mend,
        "commands": commands_of(reason.mend, flag, namespace),
        "rank": reason.rank,
        "details": [without_marks(line) for line in reason.details],
        "chain": msgspec.to_builtins(reason.chain),
    }


def commands_of(mend: str, flag: str, namespace: str) -> list[str]:
    """The commands of a sentence. Ours get the flags that choose this cluster, all get the namespace."""
    home = "" if namespace in ("", "default") else f" -n {namespace}"
    found = []
    for command in COMMAND.findall(mend):
        command = command.strip().rstrip(".")
        found.append(f"{command}{home}{flag}" if command.startswith("trainwright") else f"{command}{home}")
    return found


def ranks_of(pods: Iterable[Json], usages: Mapping[str, Json], subdomain: str) -> list[Json]:
    """The pods of a TrainJob in the order of their ranks."""
    return [
        _rank(pod, usages.get(name_of(pod)), subdomain)
        for pod in sorted(pods, key=lambda pod: (label_of(pod).rstrip("0123456789"), index_of(pod), name_of(pod)))
    ]


def _rank(pod: Json, usage: Json | None, subdomain: str) -> Json:
    status, spec = status_of(pod), pod.get("spec") or {}
    who = speaker(pod)
    ranks: list[int] = []
    if who.node is not None:
        each = who.processes or 1
        ranks = list(range(who.node * each, (who.node + 1) * each))
    host, domain = str(spec.get("hostname") or ""), str(spec.get("subdomain") or subdomain)
    return {
        "label": label_of(pod),
        "ranks": ranks,
        "pod": name_of(pod),
        "phase": phase_name(pod),
        "ready": condition_of(pod, "Ready") is not None,
        "deleting": bool((pod.get("metadata") or {}).get("deletionTimestamp")),
        "node": str(spec.get("nodeName") or ""),
        "ip": str(status.get("podIP") or ""),
        "host": f"{host}.{domain}" if host and domain else host,
        "attempt": _attempt(pod),
        "restarts": sum(int(item.get("restartCount") or 0) for item in container_statuses(pod)),
        "started": status.get("startTime"),
        "why": _why(pod),
        "containers": [_container(item) for item in container_statuses(pod)],
        "asks": _asked(spec),
        "uses": usage,
    }


def _attempt(pod: Json) -> int:
    text = str(labels_of(pod).get(ATTEMPT) or ((pod.get("metadata") or {}).get("annotations") or {}).get(ATTEMPT) or 0)
    return int(text) + 1 if text.isdecimal() else 1


def _why(pod: Json) -> str:
    if waiting := waiting_reason(pod):
        return waiting
    for container in container_statuses(pod):
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode") != 0:
            return how_it_ended(ended)
    return str(status_of(pod).get("message") or "")


def _container(item: Json) -> Json:
    state = item.get("state") or {}
    name = next(iter(state), "waiting")
    detail = state.get(name) or {}
    return {
        "name": str(item.get("name") or ""),
        "state": name,
        "reason": str(detail.get("reason") or ""),
        "code": detail.get("exitCode"),
        "restarts": int(item.get("restartCount") or 0),
    }


def _asked(spec: Json) -> Json:
    """What the containers ask for together: cores, bytes, devices."""
    sums: dict[str, float] = {}
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            sums[name] = sums.get(name, 0.0) + parse_quantity(str(amount)).nano / 1e9
    gpus = sum(amount for name, amount in sums.items() if "gpu" in name.lower())
    return {"cpu": sums.get("cpu"), "memory": sums.get("memory"), "gpu": gpus or None}


def usage_of(metrics: Iterable[Json]) -> dict[str, Json]:
    """What pods use now, by their names: cores, bytes of memory and of GPU memory."""
    found = {}
    for item in metrics:
        sums: dict[str, float] = {}
        for container in item.get("containers") or ():
            for resource, amount in (container.get("usage") or {}).items():
                sums[resource] = sums.get(resource, 0.0) + parse_quantity(str(amount)).nano / 1e9
        found[name_of(item)] = {
            "cpu": round(sums.get("cpu", 0.0), 3),
            "memory": int(sums.get("memory", 0)),
            "gpuMemory": int(sums[GPU_MEMORY]) if GPU_MEMORY in sums else None,
        }
    return found


def timeline_of(
    job: Json, jobset: Json | None, pods: Iterable[Json], events: Iterable[Json], kept: Iterable[Json]
) -> list[Json]:
    """Phases, attempts and events, oldest first. `kept` are those of the run's own record."""
    items = [_kept_item(item) for item in kept]
    if not items:
        items = [_event_item(event) for event in events]
    for condition in conditions_of(job):
        if condition.get("status") == "True":
            items.append(_moment(condition, f"{TRAIN_JOBS.kind}/{name_of(job)}", "Phase"))
    for condition in conditions_of(jobset or {}):
        if condition.get("status") == "True":
            items.append(_moment(condition, f"{JOB_SETS.kind}/{name_of(jobset or {})}", "Workload"))
    begun: dict[int, str] = {}
    for pod in pods:
        if started := status_of(pod).get("startTime"):
            begun[_attempt(pod)] = min(begun.get(_attempt(pod), started), started)
    for attempt, time in begun.items():
        if attempt > 1:
            what = f"Attempt {attempt}"
            items.append({"time": time, "kind": "Phase", "reason": what, "object": "", "message": "", "count": 1})
    created = (job.get("metadata") or {}).get("creationTimestamp")
    if created:
        items.append({"time": created, "kind": "Phase", "reason": "Created", "object": "", "message": "", "count": 1})
    seen: dict[tuple[Any, ...], Json] = {}
    for item in items:
        seen[item["kind"], item["reason"], item["object"], item["message"], item["time"]] = item
    return sorted(seen.values(), key=lambda item: (str(item["time"] or "")[:19], item["reason"] != "Created"))


def _kept_item(item: Json) -> Json:
    kind = "Phase" if item.get("type") == "Phase" else str(item.get("type") or "Normal")
    return {
        "time": item.get("time"),
        "kind": kind,
        "reason": str(item.get("reason") or ""),
        "object": str(item.get("object") or ""),
        "message": str(item.get("message") or ""),
        "count": int(item.get("count") or 1),
    }


def _event_item(event: Json) -> Json:
    about = event.get("involvedObject") or {}
    return {
        "time": event.get("lastTimestamp")
        or event.get("eventTime")
        or (event.get("metadata") or {}).get("creationTimestamp"),
        "kind": str(event.get("type") or "Normal"),
        "reason": str(event.get("reason") or ""),
        "object": f"{about.get('kind')}/{about.get('name')}",
        "message": str(event.get("message") or ""),
        "count": int(event.get("count") or 1),
    }


def _moment(condition: Json, what: str, kind: str) -> Json:
    return {
        "time": condition.get("lastTransitionTime"),
        "kind": kind,
        "reason": str(condition.get("type") or ""),
        "object": what,
        "message": str(condition.get("message") or ""),
        "count": 1,
    }
