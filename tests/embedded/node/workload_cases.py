"""JobSets with every policy, and the traces that they leave, without what differs from run to run.

`observe` creates them all, waits for their ends and returns the traces: statuses, labels, annotations, events. Run on
JobSet v0.12 and kube-controller-manager 1.36 it gives the recording, run on the embedded cluster it must give the
same.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.resources import EVENTS, JOB_SETS, JOBS, PODS, SERVICES
from trainwright.client import Client
from trainwright.schema.jsonobject import Json
from waiting import until

RECORDING = Path(__file__).parent / "recorded_workloads.json"

FIRST_FAILS = 'if [ "$JOB_COMPLETION_INDEX" = 0 ]; then sleep 0.3; exit 3; fi; sleep 600'


def replicated(
    name: str, script: str, *, replicas: int = 1, pods: int = 1, job: Json | None = None, **more: Any
) -> Json:
    container = {"name": "node", "image": "none", "command": ["sh", "-c", script]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    spec = {"completions": pods, "parallelism": pods, "backoffLimit": 0, "template": {"spec": pod}, **(job or {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def after(name: str, status: str) -> list[Json]:
    return [{"name": name, "status": status}]


def cases(scratch: Path) -> dict[str, Json]:
    """The specs by name. `scratch` is an empty directory in which the first attempt of a pod leaves a mark."""
    fails_once = f"mkdir {scratch}/$HOSTNAME 2>/dev/null && exit 1; sleep 0.3"
    on_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    leader = {"rules": [{"succeededIndexes": "0"}]}
    not_first = 'if [ "$JOB_COMPLETION_INDEX" = 1 ]; then sleep 600; fi; sleep 0.3'
    fail_jobset = {"name": "fatal", "action": "FailJobSet", "onJobFailureReasons": ["BackoffLimitExceeded"]}
    every: dict[str, tuple[list[Json], Json]] = {
        "completes": ([replicated("node", "sleep 0.3", pods=2)], {}),
        "fails": ([replicated("node", FIRST_FAILS, pods=2)], {}),
        "several": (
            [replicated("a", "sleep 0.2", replicas=2), replicated("b", "sleep 0.4")],
            {"coordinator": {"replicatedJob": "a", "jobIndex": 1, "podIndex": 0}},
        ),
        "depends": (
            [replicated("init", "sleep 0.3"), replicated("node", "sleep 0.3", dependsOn=after("init", "Complete"))],
            {},
        ),
        "depends-ready": (
            [
                replicated("node", "sleep 600", pods=2),
                replicated("lead", "sleep 0.3", dependsOn=after("node", "Ready")),
            ],
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["lead"]}},
        ),
        "any": (
            [replicated("lead", "sleep 0.3"), replicated("work", "sleep 600")],
            {"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["lead"]}},
        ),
        "in-order": (
            [replicated("a", "sleep 2"), replicated("b", "sleep 2")],
            {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
        ),
        "restarts": ([replicated("node", fails_once)], {"failurePolicy": {"maxRestarts": 2}}),
        "gives-up": ([replicated("node", "exit 1")], {"failurePolicy": {"maxRestarts": 1}}),
        "rule": ([replicated("node", "exit 1")], {"failurePolicy": {"maxRestarts": 1, "rules": [fail_jobset]}}),
        "deadline": ([replicated("node", "sleep 600", job={"activeDeadlineSeconds": 1})], {}),
        "exit-code": ([replicated("node", "exit 42", job={"backoffLimit": 3, "podFailurePolicy": on_42})], {}),
        "leader-succeeds": ([replicated("node", not_first, pods=2, job={"successPolicy": leader})], {}),
        "suspended": ([replicated("node", "sleep 0.5", pods=2)], {"suspend": True}),
        "unindexed": ([replicated("node", "sleep 0.3", pods=2, job={"completionMode": "NonIndexed"})], {}),
    }
    return {name: {"replicatedJobs": jobs, **spec} for name, (jobs, spec) in every.items()}


async def observe(client: Client, scratch: Path) -> dict[str, Json]:
    """Run all cases and return their traces, by case."""
    specs = cases(scratch)
    for name, spec in specs.items():
        metadata = {"name": name, "namespace": "default"}
        await client.create(
            JOB_SETS,
            {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind, "metadata": metadata, "spec": spec},
            "default",
        )
    await _until(client, ["suspended"], lambda status: bool(status.get("conditions")))
    await until("the Job to be suspended too", lambda: _is_suspended(client, "suspended-node-0"), 90.0)
    await client.patch(JOB_SETS, {"spec": {"suspend": False}}, name="suspended", namespace="default")
    await _until(client, list(specs), lambda status: bool(status.get("terminalState")))
    return await _settled(client, list(specs))


async def _until(client: Client, names: list[str], holds: Any, seconds: float = 90.0) -> None:
    async def all_hold() -> bool:
        found = (await client.list(JOB_SETS, "default")).items or ()
        statuses = {item["metadata"]["name"]: item.get("status", {}) for item in found}
        return all(holds(statuses.get(name, {})) for name in names)

    await until(f"{', '.join(names)} to come to an end", all_hold, seconds)


async def _is_suspended(client: Client, job: str) -> bool:
    """Whether the Job controller has seen a Job that was created suspended: else it is never told that it resumes."""
    found = (await client.list(JOBS, "default")).items or ()
    statuses = {item["metadata"]["name"]: item.get("status") or {} for item in found}
    return bool(statuses.get(job, {}).get("conditions"))


async def _settled(client: Client, names: list[str]) -> dict[str, Json]:
    """Wait until the traces no longer change, and return them: a finished JobSet takes a moment to end its pods."""
    before: dict[str, Json] = {}
    for _ in range(20):
        await asyncio.sleep(1.0)
        now = await _traces(client, names)
        if now == before:
            return now
        before = now
    raise AssertionError("the cluster does not come to rest")


async def _traces(client: Client, names: list[str]) -> dict[str, Json]:
    traces: dict[str, Json] = {name: {"jobs": {}, "pods": [], "events": []} for name in names}
    for job_set in (await client.list(JOB_SETS, "default")).items or ():
        traces[job_set["metadata"]["name"]]["status"] = _status(job_set)
    for job in (await client.list(JOBS, "default")).items or ():
        metadata = job["metadata"]
        case = traces[metadata["labels"]["jobset.sigs.k8s.io/jobset-name"]]
        marks = {"labels": metadata["labels"], "annotations": metadata["annotations"]}
        case["jobs"][metadata["name"]] = {**marks, "status": _status(job)}
    for pod in (await client.list(PODS, "default")).items or ():
        case = traces[pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]]
        case["pods"].append(_pod(pod))
    for service in (await client.list(SERVICES, "default")).items or ():
        if service["metadata"]["name"] in traces:
            shown = ("clusterIP", "selector", "publishNotReadyAddresses")
            traces[service["metadata"]["name"]]["service"] = {key: service["spec"].get(key) for key in shown}
    for event in (await client.list(EVENTS, "default")).items or ():
        about = event["involvedObject"]
        case_name = next(
            (name for name in sorted(names, key=len, reverse=True) if about["name"].startswith(name)), None
        )
        if case_name and about["kind"] in ("JobSet", "Job"):
            line = f"{about['kind']} {about['name']}: {event['type']} {event['reason']}: {event['message']}"
            traces[case_name]["events"].append(line)
    for case in traces.values():
        case["pods"].sort(key=str)
        case["events"] = sorted({_anonymous(line) for line in case["events"]})
    return {name: msgspec.json.decode(_anonymous(msgspec.json.encode(case).decode())) for name, case in traces.items()}


def _status(thing: Json) -> Json:
    """The status, with its conditions by type; of times only the presence counts."""
    status = dict(thing.get("status", {}))
    shown = ("status", "reason", "message")
    status["conditions"] = {c["type"]: {key: c.get(key, "") for key in shown} for c in status.get("conditions", ())}
    return status


def _pod(pod: Json) -> Json:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    states = [container["state"] for container in status.get("containerStatuses", ())]
    # JobSet's pod webhook, which the embedded cluster does without, copies the pod's priority into a label.
    labels = {key: value for key, value in metadata["labels"].items() if key != "jobset.sigs.k8s.io/priority"}
    return {
        "name": re.sub(r"-[a-z0-9]{5}$", "-*", metadata["name"]),
        "labels": labels,
        "annotations": metadata["annotations"],
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "phase": status["phase"],
        "exitCodes": [state.get("terminated", {}).get("exitCode") for state in states],
    }


def _anonymous(text: str) -> str:
    """Without uids, times and the random ends of pod names."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "*", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "*", text)
    return re.sub(r"(pod: [\w-]+|pod default/[\w-]+)-[a-z0-9]{5}\b", r"\1-*", text)
