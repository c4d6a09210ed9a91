"""Lives of JobSets: seeded JobSets, and what happens to their Jobs step by step, played on any API server.

In: a REST client and how many. Out: after each step the state that users see, with uids masked. No Job controller runs:
the steps write what one would write into Jobs, so that only the JobSet controller is compared.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from jobsetadmission.cases import job_set, replicated
from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Refused, Rest

STEPS = 4
SETTLED_SECONDS = 2.5
LONGEST_SECONDS = 60.0
REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy")


def life(seed: int) -> Json:
    """The JobSet of this seed."""
    rng = Random(seed)
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    jobs = []
    for number, name in enumerate(names):
        more: Json = {"parallelism": 2, "completions": 2} if rng.random() < 0.5 else {}
        if number and rng.random() < 0.3:
            more["dependsOn"] = [{"name": names[number - 1], "status": rng.choice(("Ready", "Complete"))}]
        if rng.random() < 0.2:
            more["groupName"] = "group"
        jobs.append(replicated(name, rng.randint(1, 2), **more))
    spec: Json = {}
    if rng.random() < 0.6:
        spec["failurePolicy"] = _policy(rng, names)
    if rng.random() < 0.4:
        targets = [rng.choice(names)] if rng.random() < 0.5 else []
        spec["successPolicy"] = {"operator": rng.choice(("All", "Any")), "targetReplicatedJobs": targets}
    if not any("dependsOn" in job for job in jobs) and rng.random() < 0.3:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if rng.random() < 0.2:
        spec["suspend"] = True
    if rng.random() < 0.2:
        spec["network"] = {"enableDNSHostnames": rng.random() < 0.5, "subdomain": "net"}
    return job_set(*jobs, **spec)


def _policy(rng: Random, names: list[str]) -> Json:
    policy: Json = {"maxRestarts": rng.randint(0, 2)}
    if rng.random() < 0.3:
        policy["restartStrategy"] = "BlockingRecreate"
    rules = []
    for _ in range(rng.randint(0, 2)):
        action = rng.choice(("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"))
        rule: Json = {"action": action}
        if rng.random() < 0.5:
            rule["onJobFailureReasons"] = [rng.choice(REASONS)]
        if rng.random() < 0.4:
            rule["targetReplicatedJobs"] = [rng.choice(names)]
        rules.append(rule)
    return {**policy, "rules": rules} if rules else policy


class Lives:
    """All lives on one server, each in a namespace of its own."""

    def __init__(self, rest: Rest, count: int) -> None:
        self._rest = rest
        self._count = count

    def begin(self) -> None:
        for seed in range(self._count):
            self._rest.create("/api/v1/namespaces", {"metadata": {"name": f"life-{seed}"}})
            self._rest.create(f"{_job_sets(seed)}", life(seed))

    def step(self, number: int) -> None:
        """What happens next to each JobSet, chosen by its seed and by the names of its Jobs."""
        for seed in range(self._count):
            rng = Random(seed * 1000 + number)
            jobs = sorted(self._rest.items(_jobs(seed)), key=lambda job: str(job["metadata"]["name"]))
            open_jobs = [job for job in jobs if not _has_ended(job) and "deletionTimestamp" not in job["metadata"]]
            what = rng.choice(("ready", "ready", "complete", "complete", "fail", "suspend", "resume"))
            one = rng.random()
            try:
                if what in ("suspend", "resume"):
                    self._rest.patch(f"{_job_sets(seed)}/js", {"spec": {"suspend": what == "suspend"}})
                elif open_jobs:
                    chosen = open_jobs if what == "ready" else [open_jobs[int(one * len(open_jobs))]]
                    for job in chosen:
                        path = f"{_jobs(seed)}/{job['metadata']['name']}/status"
                        self._rest.patch(path, {"status": _status(job, what, rng)})
            except Refused as refused:
                if refused.code not in (404, 409, 422):
                    raise

    def settled(self) -> dict[int, Json]:
        """The states once they have not changed for a while."""
        began = since = time.monotonic()
        last: dict[int, Json] = {}
        while time.monotonic() - since < SETTLED_SECONDS and time.monotonic() - began < LONGEST_SECONDS:
            now = {seed: self._state(seed) for seed in range(self._count)}
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.2)
        return last

    def _state(self, seed: int) -> Json:
        found = self._rest.find(f"{_job_sets(seed)}/js") or {}
        status = found.get("status") or {}
        uid = (found.get("metadata") or {}).get("uid", "")
        conditions = sorted((c["type"], c["status"], c["reason"], c["message"]) for c in status.get("conditions") or ())
        services = self._rest.items(f"/api/v1/namespaces/life-{seed}/services")
        return {
            "conditions": conditions,
            "counts": sorted(status.get("replicatedJobsStatus") or (), key=lambda each: str(each["name"])),
            "rest": {key: status.get(key) for key in ("restarts", "restartsCountTowardsMax", "terminalState")},
            "jobs": {job["metadata"]["name"]: _seen(job, uid) for job in self._rest.items(_jobs(seed))},
            "services": [each["metadata"]["name"] for each in services],
        }


def _job_sets(seed: int) -> str:
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/life-{seed}/jobsets"


def _jobs(seed: int) -> str:
    return f"/apis/batch/v1/namespaces/life-{seed}/jobs"


def _has_ended(job: Json) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def _status(job: Json, what: str, rng: Random) -> Json:
    pods = min(job["spec"].get("parallelism", 1), job["spec"].get("completions", 1))
    if what == "ready":
        return {"active": pods, "ready": pods, "startTime": rfc3339(time.time())}
    now = rfc3339(time.time())
    ends = ("SuccessCriteriaMet", "Complete") if what == "complete" else ("FailureTarget", "Failed")
    reason = "CompletionsReached" if what == "complete" else rng.choice(REASONS)
    base = {"status": "True", "reason": reason, "message": "as the story goes", "lastTransitionTime": now}
    status: Json = {
        "active": 0,
        "ready": 0,
        "terminating": 0,
        "startTime": job.get("status", {}).get("startTime") or now,
        "conditions": [{"type": end, "lastProbeTime": now, **base} for end in ends],
    }
    return {**status, "completionTime": now} if what == "complete" else status


def _seen(job: Json, uid: str) -> Json:
    def masked(labels: Any) -> Json:
        return {key: "<uid>" if value == uid else value for key, value in (labels or {}).items()}

    template = job["spec"]["template"]
    own = {
        key: value for key, value in masked(template["metadata"].get("labels")).items() if "controller-uid" not in key
    }
    return {
        "labels": masked(job["metadata"].get("labels")),
        "annotations": masked(job["metadata"].get("annotations")),
        "pods": {"labels": own, "annotations": masked(template["metadata"].get("annotations"))},
        "suspend": job["spec"].get("suspend"),
        "subdomain": template["spec"].get("subdomain"),
        "deleted": "deletionTimestamp" in job["metadata"],
        "mode": [job["spec"].get(key) for key in ("completionMode", "parallelism", "completions", "backoffLimit")],
    }
