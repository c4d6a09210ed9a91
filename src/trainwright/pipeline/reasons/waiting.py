"""Pods that have a node and do not run well there: configuration, images, crash loops, probes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.api.times import seconds_of
from trainwright.pipeline.reasons import failures, images, volumes
from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import (
    Ended,
    Evidence,
    container_statuses,
    index_of,
    label_of,
    name_of,
    phase_name,
    status_of,
)
from trainwright.schema.jsonobject import Json

PROBE_SECONDS = 10.0
"""How long a container that has a probe may run without being ready."""

CONFIG_MISSING = Cause(
    "ConfigMapMissing",
    "A ConfigMap, or a key of it, is missing",
    "A variable or a volume of the pod takes its value from a ConfigMap that is not in the namespace, or that has no"
    " such key. The pod starts as soon as it is there.",
    "Create it in the job's namespace: kubectl create configmap",
)
SECRET_MISSING = Cause(
    "SecretMissing",
    "A Secret, or a key of it, is missing",
    "A variable or a volume of the pod takes its value from a Secret that is not in the namespace, or that has no such"
    " key. The pod starts as soon as it is there.",
    "Create it in the job's namespace: kubectl create secret generic",
)
CONFIG_INVALID = Cause(
    "ContainerConfigInvalid",
    "The container cannot be configured",
    "The node cannot make the container as the pod describes it.",
    "Correct what the message names, in the runtime or the TrainJob",
)
CRASH_LOOP = Cause(
    "CrashLoop",
    "A container fails again and again",
    "The container ends with an error soon after each start, and the node waits longer before each next start.",
    "Mend what its last lines say: trainwright logs JOB --previous",
)
PROBE_FAILS = Cause(
    "ProbeFails",
    "A probe never succeeds",
    "The container runs, and its readiness or startup probe does not succeed: the probe asks for the wrong port or"
    " path, or the program takes longer to start than the probe allows.",
    "Compare the probe in the runtime with where the program listens, or give it more time (initialDelaySeconds,"
    " failureThreshold)",
)
CAUSES = (CONFIG_MISSING, SECRET_MISSING, CONFIG_INVALID, CRASH_LOOP, PROBE_FAILS)
_CONFIG_REASONS = ("CreateContainerConfigError", "CreateContainerError", "CreatePodSandboxError")
_START_REASONS = ("RunContainerError", "StartError", "ContainerCannotRun")


def find(evidence: Evidence) -> Iterator[Finding]:
    for pod in sorted(evidence.pods, key=lambda pod: (index_of(pod), name_of(pod))):
        if phase_name(pod) not in ("Pending", "Running"):
            continue
        for container in container_statuses(pod):
            waiting = (container.get("state") or {}).get("waiting")
            if waiting and (found := _of_waiting(evidence, pod, container, waiting)):
                yield found
        if found := _unready(evidence, pod):
            yield found


def _of_waiting(evidence: Evidence, pod: Json, container: Json, waiting: Json) -> Finding | None:
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "").rstrip(". ")
    who = label_of(pod)
    if reason == "CrashLoopBackOff":
        return _crash_loop(evidence, pod, container)
    if cause := images.cause_of(reason):
        image = str(container.get("image") or _image(pod, str(container.get("name"))))
        what = f"{who} waits: image {image} cannot be pulled ({reason}){f': {message}' if message else ''}"
        return Finding(cause=cause, what=what, kind="Pod", name=name_of(pod))
    if reason in _START_REASONS:
        what = f"{who} could not be started: {message or reason}"
        return Finding(cause=failures.PROGRAM_MISSING, what=what, kind="Pod", name=name_of(pod))
    if reason in _CONFIG_REASONS:
        what = f"{who} waits: {message or reason}"
        return Finding(cause=_config_cause(message), what=what, kind="Pod", name=name_of(pod))
    return volumes.in_scheduling(evidence, pod, who, message)  # the local node has no scheduler for volumes


def _config_cause(message: str) -> Cause:
    if re.search(r"\bsecret", message, re.IGNORECASE):
        return SECRET_MISSING
    if re.search(r"config ?map", message, re.IGNORECASE):
        return CONFIG_MISSING
    return CONFIG_INVALID


def _crash_loop(evidence: Evidence, pod: Json, container: Json) -> Finding:
    last = (container.get("lastState") or {}).get("terminated") or {}
    name = str(container.get("name") or "")
    lines = evidence.logs.get(f"{name_of(pod)}/{name}", str(last.get("message") or "").splitlines())
    inner = failures.of_container(Ended(pod, name, last, lines)) if last.get("exitCode") else None
    count = int(container.get("restartCount") or 0)
    again = f"{label_of(pod)} fails again and again ({count} restarts so far)"
    return Finding(
        cause=CRASH_LOOP,
        what=f"{again}: {inner.what}" if inner else again,
        mend=inner.cause.mend if inner and inner.cause.code not in ("ExitCode", "Exception") else "",
        kind="Pod",
        name=name_of(pod),
        rank=inner.rank if inner else None,
        details=inner.details if inner else (),
    )


def _unready(evidence: Evidence, pod: Json) -> Finding | None:
    """A container that runs, has a probe, and is not ready after a while."""
    if phase_name(pod) != "Running":
        return None
    specs = {str(spec.get("name")): spec for spec in (pod.get("spec") or {}).get("containers") or ()}
    for container in status_of(pod).get("containerStatuses") or ():
        running = (container.get("state") or {}).get("running") or {}
        spec = specs.get(str(container.get("name")), {})
        probe = next((kind for kind in ("startupProbe", "readinessProbe") if spec.get(kind)), "")
        if container.get("ready") or not running or not probe:
            continue
        since = running.get("startedAt")
        if evidence.now and since and evidence.now - seconds_of(str(since)) < PROBE_SECONDS:
            continue
        words = "startup" if probe == "startupProbe" else "readiness"
        told = next((e for e in reversed(evidence.events) if _is_about_probe(e, pod)), None)
        detail = f": {str(told.get('message') or '').rstrip('. ')}" if told else ""
        what = f"{label_of(pod)} runs and is not ready: its {words} probe does not succeed"
        return Finding(
            cause=PROBE_FAILS, what=what, kind="Pod", name=name_of(pod), details=(detail[2:],) if detail else ()
        )
    return None


def _is_about_probe(event: Json, pod: Json) -> bool:
    return event.get("reason") == "Unhealthy" and (event.get("involvedObject") or {}).get("name") == name_of(pod)


def _image(pod: Json, container: str) -> str:
    for spec in (pod.get("spec") or {}).get("containers") or ():
        if spec.get("name") == container:
            return str(spec.get("image") or "")
    return ""
