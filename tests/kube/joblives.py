"""Lives of Jobs: seeded Jobs, and what happens to them and to their pods step by step, played on any API server.

In: a REST client and seeds. Out: after each step the state that users see, with uids, times and the ends of names
masked. No scheduler and no kubelet runs: the steps do what they would do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from kube.podacts import PodActs
from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Refused, Rest

STEPS = 6
NAME = "work"
INDEX = "batch.kubernetes.io/job-completion-index"
HARMLESS = (404, 409, 422)
SHAPES = (
    "plain",
    "queue",
    "indexed",
    "per-index",
    "policy",
    "policy-per-index",
    "success-policy",
    "replace-failed",
    "suspended",
    "deadline",
    "short-lived",
    "elastic",
    "elsewhere",
    "on-failure",
)
OFTEN = {
    "per-index": ("fail",) * 12,
    "policy": ("fail", "disrupt") * 4,
    "policy-per-index": ("fail", "disrupt") * 6,
    "success-policy": ("succeed",) * 12,
    "replace-failed": ("bind", "delete", "end and let go") * 3,
    "suspended": ("resume",) * 6,
    "deadline": ("deadline",) * 4,
    "short-lived": ("succeed all",) * 6,
    "elastic": ("scale",) * 10,
    "on-failure": ("restart",) * 8,
}
"""What happens more often to Jobs of a shape, so that its rules matter."""
STATUS_COUNTS = ("active", "ready", "terminating", "succeeded", "failed", "completedIndexes", "failedIndexes")


def shape_of(seed: int) -> str:
    return SHAPES[seed % len(SHAPES)]


def life(seed: int) -> Json:
    """The Job of this seed. Seeds that follow each other have different shapes."""
    rng, shape = Random(seed), shape_of(seed)
    container = {"name": "main", "image": "none"}
    template: Json = {"metadata": {"labels": {"of": "life"}}, "spec": {"restartPolicy": "Never", "containers": []}}
    template["spec"]["containers"] = [container, {"name": "side", "image": "none"}][: rng.randint(1, 2)]
    if rng.random() < 0.3:
        template["spec"]["initContainers"] = [{"name": "first", "image": "none"}]
    count = rng.randint(1, 4)
    spec: Json = {"template": template, "backoffLimit": rng.randint(0, 3)}
    spec |= {"parallelism": rng.randint(1, count), "completions": count}
    if shape == "queue":
        del spec["completions"]
    if shape not in ("plain", "queue", "replace-failed", "elsewhere") or rng.random() < 0.3:
        spec |= {"completionMode": "Indexed", "completions": count}
    if "per-index" in shape:
        spec["backoffLimitPerIndex"] = rng.randint(0, 2)
        del spec["backoffLimit"]
        if rng.random() < 0.5:
            spec["maxFailedIndexes"] = rng.randint(0, count)
    if shape.startswith("policy"):
        spec["podFailurePolicy"] = {"rules": _rules(rng, per_index="per-index" in shape)}
    if shape == "success-policy":
        rules: list[Json] = [{"succeededIndexes": "0"}, {"succeededCount": 1}]
        both: Json = {"succeededIndexes": f"0-{count - 1}" if count > 1 else "0", "succeededCount": 1}
        spec["successPolicy"] = {"rules": rng.sample([*rules, both], rng.randint(1, 2))}
    if shape == "replace-failed" or rng.random() < 0.1:
        spec["podReplacementPolicy"] = "Failed"
    if shape == "suspended":
        spec["suspend"] = True
    if shape == "deadline":
        spec["activeDeadlineSeconds"] = 100_000
    if shape == "short-lived":
        spec["ttlSecondsAfterFinished"] = rng.randint(0, 1)
    if shape == "elastic":
        spec |= {"parallelism": count, "completions": count, "completionMode": "Indexed"}
    if shape == "elsewhere":
        spec["managedBy"] = rng.choice(("example.com/other", "kubernetes.io/job-controller"))
    if shape == "on-failure":
        template["spec"]["restartPolicy"] = "OnFailure"
    return {"metadata": {"name": NAME, "labels": {"life": "one"}}, "spec": spec}


def _rules(rng: Random, *, per_index: bool) -> list[Json]:
    rules = []
    for _ in range(rng.randint(1, 3)):
        action = rng.choice(("FailJob", "Ignore", "Count", *(["FailIndex"] * 2 if per_index else [])))
        rule: Json = {"action": action}
        if rng.random() < 0.7:
            codes: Json = {"operator": rng.choice(("In", "NotIn")), "values": sorted(rng.sample((1, 42, 137), 2))}
            if rng.random() < 0.3:
                codes["containerName"] = "main"
            rule["onExitCodes"] = codes
        else:
            rule["onPodConditions"] = [{"type": "DisruptionTarget", "status": "True"}]
        rules.append(rule)
    return rules


class Lives:
    """All lives on one server, each in a namespace of its own."""

    def __init__(self, rest: Rest, seeds: Iterable[int]) -> None:
        self._rest = rest
        self._seeds = tuple(seeds)

    def begin(self) -> None:
        for seed in self._seeds:
            self._rest.create("/api/v1/namespaces", {"metadata": {"name": f"life-{seed}"}})
            self._rest.create(_jobs(seed), life(seed))

    def step(self, number: int, before: dict[int, Json]) -> None:
        """What happens next, chosen by the seed and by the state before, which both servers share."""
        pods = self._by_seed("/api/v1/pods")
        for seed in self._seeds:
            rng = Random(seed * 1000 + number)
            own = sorted(pods.get(seed, ()), key=lambda pod: repr(_seen_pod(pod, "")))
            _Step(self._rest, seed, rng, own).happen(number, gone=before[seed]["job"] is None)

    def states(self) -> dict[int, Json]:
        jobs, pods = self._by_seed("/apis/batch/v1/jobs"), self._by_seed("/api/v1/pods")
        events = self._by_seed("/api/v1/events")
        return {seed: _state(jobs.get(seed, []), pods.get(seed, []), events.get(seed, [])) for seed in self._seeds}

    def _by_seed(self, path: str) -> dict[int, list[Json]]:
        found: dict[int, list[Json]] = {}
        for item in self._rest.items(path):
            namespace = item["metadata"]["namespace"]
            if namespace.startswith("life-"):
                found.setdefault(int(namespace.removeprefix("life-")), []).append(item)
        return found


class _Step:
    """One step of one life."""

    def __init__(self, rest: Rest, seed: int, rng: Random, pods: list[Json]) -> None:
        self._rest = rest
        self._seed = seed
        self._rng = rng
        self._pods = PodActs(rest, rng, pods)

    def happen(self, number: int, *, gone: bool) -> None:
        shape = shape_of(self._seed)
        what = ["succeed", "succeed", "succeed all", "fail", "fail", "fail", "disrupt", "delete", "vanish", "let go"]
        what += ["bind", "ready", "suspend", "resume", "end and let go"]
        what += {"suspended": ["resume"] * 6, "deadline": ["deadline"] * 4, "on-failure": ["restart"] * 8}.get(
            shape, []
        )
        what += ["scale"] * 10 if shape == "elastic" else []
        chosen = self._rng.choice(what)
        if number == 0 and shape != "suspended":
            chosen = self._rng.choice(("bind", "ready", "delete", *OFTEN.get(shape, ())[:3]))
        if number == STEPS - 1:
            chosen = "delete the job"
        if gone:
            return
        acts: dict[str, Callable[[], None]] = {
            **self._pods.acts(),
            "suspend": lambda: self._change({"suspend": True}),
            "resume": lambda: self._change({"suspend": False}),
            "deadline": lambda: self._change({"activeDeadlineSeconds": 1}),
            "scale": self._scale,
            "delete the job": self._delete_job,
        }
        try:
            acts[chosen]()
        except Refused as refused:
            if refused.code not in HARMLESS:
                raise

    def _change(self, spec: Json) -> None:
        self._rest.patch(f"{_jobs(self._seed)}/{NAME}", {"spec": spec})

    def _scale(self) -> None:
        count = self._rng.randint(1, 5)
        self._change({"parallelism": count, "completions": count})

    def _delete_job(self) -> None:
        policy = self._rng.choice(("Background", "Foreground", "Orphan"))
        self._rest.raw("DELETE", f"{_jobs(self._seed)}/{NAME}", {"propagationPolicy": policy})


def _jobs(seed: int) -> str:
    return f"/apis/batch/v1/namespaces/life-{seed}/jobs"


def _state(jobs: list[Json], pods: list[Json], events: list[Json]) -> Json:
    """Events of a Job that goes are left out: whether its controller or the garbage collector comes first is chance."""
    job = jobs[0] if jobs else None
    uid = job["metadata"]["uid"] if job else ""
    lives = job is not None and "deletionTimestamp" not in job["metadata"]
    about = [event for event in events if lives and event["involvedObject"]["kind"] == "Job"]
    return {
        "job": _seen_job(job) if job else None,
        "pods": sorted((_seen_pod(pod, uid) for pod in pods), key=repr),
        "events": sorted(set(map(_event, about))),
    }


def _masked(text: str) -> str:
    text = text.removeprefix("(combined from similar events): ")
    return re.sub(rf"\b({NAME}-(?:\d+-)?)[a-z0-9]{{5}}\b", r"\1?", text)


def _event(event: Json) -> str:
    return f"{event['type']} {event['reason']}: {_masked(event.get('message', ''))}"


def _seen_job(job: Json) -> Json:
    status = job.get("status") or {}
    conditions = [
        (c["type"], c["status"], c.get("reason"), _masked(c.get("message", ""))) for c in status.get("conditions") or ()
    ]
    times = {key: key in status for key in ("startTime", "completionTime")}
    counts = {key: status.get(key) for key in (*STATUS_COUNTS, "uncountedTerminatedPods")}
    deleted = "deletionTimestamp" in job["metadata"]
    finalizers = job["metadata"].get("finalizers")
    return {"conditions": conditions, **times, **counts, "deleted": deleted, "finalizers": finalizers}


def _seen_pod(pod: Json, uid: str) -> Json:
    metadata, spec = pod["metadata"], pod["spec"]

    def masked(values: Any) -> Json:
        return {
            key: "<uid>" if "controller-uid" in key and (not uid or value == uid) else value
            for key, value in sorted((values or {}).items())
        }

    owners = [
        (owner["kind"], owner["name"], owner.get("controller"), owner.get("blockOwnerDeletion"))
        for owner in metadata.get("ownerReferences") or ()
    ]
    environment = [each.get("env") for each in [*(spec.get("initContainers") or ()), *spec["containers"]]]
    return {
        "name": _masked(metadata["name"]),
        "generateName": metadata.get("generateName"),
        "labels": masked(metadata.get("labels")),
        "annotations": masked(metadata.get("annotations")),
        "finalizers": metadata.get("finalizers"),
        "owners": owners,
        "deleted": "deletionTimestamp" in metadata,
        "phase": pod.get("status", {}).get("phase"),
        "states": [list(each["state"]) for each in pod.get("status", {}).get("containerStatuses") or ()],
        "ready": [c["status"] for c in pod.get("status", {}).get("conditions") or () if c["type"] == "Ready"],
        "hostname": spec.get("hostname"),
        "node": spec.get("nodeName"),
        "environment": environment,
    }
