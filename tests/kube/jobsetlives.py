"""Lives of JobSets: seeded JobSets, and what happens to their Jobs step by step, played on any API server.

In: a REST client and seeds. Out: after each step the state that users see, with uids masked. `Lives` has no Job
controller: its steps write what one would write into Jobs, so that only the JobSet controller is compared. `PodLives`
has one, and its steps are what happens to pods.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from jobsetadmission.cases import job_set, replicated
from kube.podacts import PodActs
from trainwright.api.times import rfc3339
from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Refused, Rest

STEPS = 4
POD_STEPS = 5
COUNTS = ("active", "ready", "succeeded", "failed", "completedIndexes")
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
    _add_more(Random(f"more of {seed}"), spec, jobs)
    return job_set(*jobs, **spec)


def _add_more(rng: Random, spec: Json, jobs: list[Json]) -> None:
    leading = [job["name"] for job in jobs if "completions" in job["template"]["spec"]]
    if leading and rng.random() < 0.3:
        spec["coordinator"] = {"replicatedJob": rng.choice(leading), "jobIndex": 0, "podIndex": 0}
    if rng.random() < 0.2:
        spec["ttlSecondsAfterFinished"] = rng.randint(0, 1)
    if rng.random() < 0.05:
        spec["managedBy"] = "example.com/another"
    if rng.random() < 0.2:
        spec["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}
    if rng.random() < 0.3:
        spec.setdefault("network", {})["publishNotReadyAddresses"] = rng.random() < 0.5


def life_of_pods(seed: int) -> Json:
    """The same with Jobs that soon give up. Without exclusive placement, which needs nodes."""
    made = life(seed)
    made["metadata"].pop("annotations", None)
    rng = Random(f"pods of {seed}")
    for job in made["spec"]["replicatedJobs"]:
        job["template"]["spec"]["backoffLimit"] = rng.randint(0, 1)
        if rng.random() < 0.3:
            rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
            job["template"]["spec"]["podFailurePolicy"] = {"rules": [rule]}
            job["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return made


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

    def __init__(self, rest: Rest, seeds: Iterable[int], prefix: str = "life") -> None:
        self._rest = rest
        self._seeds = tuple(seeds)
        self._prefix = prefix

    def begin(self) -> None:
        for seed in self._seeds:
            self._rest.create("/api/v1/namespaces", {"metadata": {"name": f"{self._prefix}-{seed}"}})
            self._rest.create(self._job_sets(seed), self._made(seed))

    def _made(self, seed: int) -> Json:
        return life(seed)

    def step(self, number: int) -> None:
        """What happens next to each JobSet, chosen by its seed and by the names of its Jobs."""
        all_jobs = self._by_seed("/apis/batch/v1/jobs")
        for seed in self._seeds:
            rng = Random(seed * 1000 + number)
            jobs = sorted(all_jobs.get(seed, ()), key=lambda job: str(job["metadata"]["name"]))
            open_jobs = [job for job in jobs if not _has_ended(job) and "deletionTimestamp" not in job["metadata"]]
            what = rng.choice(("ready", "ready", "complete", "complete", "complete", "fail", "fail", *ANYWHERE))
            one = rng.random()
            with _harmless():
                if what in ANYWHERE:
                    self._change(what, seed, open_jobs, rng)
                elif open_jobs:
                    chosen = open_jobs if what == "ready" else [open_jobs[int(one * len(open_jobs))]]
                    for job in chosen:
                        path = f"{self._jobs(seed)}/{job['metadata']['name']}/status"
                        self._rest.patch(path, {"status": _status(job, what, rng)})

    def _change(self, what: str, seed: int, open_jobs: list[Json], rng: Random) -> None:
        """What users do to a JobSet, or to a Job of it."""
        path = f"{self._job_sets(seed)}/js"
        if what == "delete":
            self._rest.raw("DELETE", path, {"propagationPolicy": rng.choice(("Background", "Foreground"))})
        elif what == "delete a job":
            for job in open_jobs[:1]:
                self._rest.raw(
                    "DELETE", f"{self._jobs(seed)}/{job['metadata']['name']}", {"propagationPolicy": "Background"}
                )
        elif what == "change":
            found = self._rest.find(path)
            jobs = found["spec"]["replicatedJobs"] if found else []
            for job in jobs:
                job["template"]["spec"]["template"].setdefault("metadata", {})["annotations"] = {"changed": "yes"}
            self._rest.patch(path, {"spec": {"suspend": False, "replicatedJobs": jobs}})
        else:
            self._rest.patch(path, {"spec": {"suspend": what == "suspend"}})

    def states(self) -> dict[int, Json]:
        sets, jobs = self._by_seed(JOB_SETS), self._by_seed("/apis/batch/v1/jobs")
        services, events = self._by_seed("/api/v1/services"), self._by_seed("/api/v1/events")
        return {seed: _state(*(each.get(seed, []) for each in (sets, jobs, services, events))) for seed in self._seeds}

    def _by_seed(self, path: str) -> dict[int, list[Json]]:
        found: dict[int, list[Json]] = {}
        for item in self._rest.items(path):
            prefix, _, seed = item["metadata"]["namespace"].rpartition("-")
            if prefix == self._prefix:
                found.setdefault(int(seed), []).append(item)
        return found

    def _job_sets(self, seed: int) -> str:
        return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{self._prefix}-{seed}/jobsets"

    def _jobs(self, seed: int) -> str:
        return f"/apis/batch/v1/namespaces/{self._prefix}-{seed}/jobs"


class PodLives(Lives):
    """Lives whose Jobs have a controller: what happens, happens to pods."""

    def _made(self, seed: int) -> Json:
        return life_of_pods(seed)

    def step(self, number: int) -> None:
        all_pods, all_jobs = self._by_seed("/api/v1/pods"), self._by_seed("/apis/batch/v1/jobs")
        for seed in self._seeds:
            rng = Random(f"step {number} of {seed}")
            pods = sorted(all_pods.get(seed, ()), key=lambda pod: repr(_seen_pod(pod)))
            jobs = sorted(all_jobs.get(seed, ()), key=lambda job: str(job["metadata"]["name"]))
            open_jobs = [job for job in jobs if not _has_ended(job) and "deletionTimestamp" not in job["metadata"]]
            acts = PodActs(self._rest, rng, pods, away=False).acts()
            what = rng.choice((*POD_EVENTS, *ANYWHERE)) if number else rng.choice(("bind", "ready", "fail", "vanish"))
            with _harmless():
                if what in acts:
                    acts[what]()
                else:
                    self._change(what, seed, open_jobs, rng)

    def states(self) -> dict[int, Json]:
        found, pods = super().states(), self._by_seed("/api/v1/pods")
        for seed, state in found.items():
            state["pods"] = sorted((_seen_pod(pod) for pod in pods.get(seed, ())), key=repr)
        return found


ANYWHERE = ("suspend", "resume", "change", "delete a job", "delete")
POD_EVENTS = (
    *("ready", "bind", "succeed", "succeed all", "succeed all", "fail", "fail", "disrupt", "delete", "vanish"),
    *("let go", "let go", "end and let go"),
)
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


@contextmanager
def _harmless() -> Iterator[None]:
    """Refusals that both servers give, or that come from an object that went in between."""
    try:
        yield
    except Refused as refused:
        if refused.code not in (404, 409, 422):
            raise


def _is_late(event: Json) -> bool:
    """JobSet's controller made a Job that its cache did not show yet, and tells of it; ours reads the Job."""
    return bool(event["reason"] == "JobCreationFailed" and event.get("message", "").endswith("already exists"))


def _state(sets: list[Json], jobs: list[Json], services: list[Json], events: list[Json]) -> Json:
    found = sets[0] if sets else {}
    status = found.get("status") or {}
    uid = (found.get("metadata") or {}).get("uid", "")
    conditions = sorted((c["type"], c["status"], c["reason"], c["message"]) for c in status.get("conditions") or ())
    lives = bool(found) and "deletionTimestamp" not in found["metadata"]
    about = [event for event in events if lives and event["involvedObject"]["kind"] == "JobSet" and not _is_late(event)]
    return {
        "there": bool(found),
        "conditions": conditions,
        "counts": sorted(status.get("replicatedJobsStatus") or (), key=lambda each: str(each["name"])),
        "rest": {key: status.get(key) for key in ("restarts", "restartsCountTowardsMax", "terminalState")},
        "jobs": {job["metadata"]["name"]: _seen(job, uid) for job in jobs},
        "services": [
            (each["metadata"]["name"], each["spec"].get("publishNotReadyAddresses"), each["spec"].get("selector"))
            for each in services
        ],
        "events": sorted({(event["type"], event["reason"], event.get("message", "")) for event in about}),
    }


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
        "counts": [job.get("status", {}).get(key) for key in COUNTS],
        "ended": [(c["type"], c.get("reason")) for c in job.get("status", {}).get("conditions") or ()],
    }


def _seen_pod(pod: Json) -> Json:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}

    def masked(values: Any) -> Json:
        return {key: "<uid>" if "uid" in key else value for key, value in sorted((values or {}).items())}

    return {
        "labels": masked(metadata.get("labels")),
        "annotations": masked(metadata.get("annotations")),
        "finalizers": metadata.get("finalizers"),
        "deleted": "deletionTimestamp" in metadata,
        "phase": status.get("phase"),
        "host": [spec.get("hostname"), spec.get("subdomain"), spec.get("nodeName"), spec.get("nodeSelector")],
    }
