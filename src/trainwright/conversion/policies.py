"""What a v1 job says about its run as a whole: restarts, success, clean-up, deadline, queue and gang.

In: a job and its layout. Out: the parts of a JobSet, Job, TrainJob or runtime that say the same, and findings that say
how well they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.conversion.findings import Finding, Refused, Verdict
from trainwright.conversion.layout import Group, Layout, main_container_name
from trainwright.conversion.v1job import MPI, PYTORCH, TENSORFLOW, Replica, V1Job
from trainwright.schema.jsonobject import Json

ENDLESS = 2147483647
"""v1 retries without end where the job names no limit; a Job's limit is a number."""
PERMANENT = list(range(1, 128))
"""Exit codes after which `ExitCode` does not try again."""
TTL_ANNOTATION = "trainer.kubeflow.org/ttl-seconds-after-finished"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GANG_SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}


def restarts(job: V1Job, group: Group) -> Json:
    """The fields of the Job that restart its pods as v1 would."""
    policy, limit = group.replica.restart_policy, job.run_policy.get("backoffLimit")
    if policy == "Never":
        return {"backoffLimit": 0}
    fields: Json = {"backoffLimit": ENDLESS if limit is None else limit}
    if policy == "ExitCode":
        codes = {"containerName": main_container_name(job, group), "operator": "In", "values": PERMANENT}
        fields["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
    return fields


def pod_restart_policy(replica: Replica) -> str:
    return {"Always": "OnFailure", "OnFailure": "OnFailure"}.get(replica.restart_policy, "Never")


def success(layout: Layout) -> tuple[Json, dict[str, Json]]:
    """The JobSet's success policy, and success policies of Jobs by the group's name."""
    job = layout.job
    leader = next((name for name in ("Launcher", "Chief", "Master") if name in job.replicas), None)
    if leader is not None and layout.is_merged:
        return {}, {layout.groups[0].name: {"rules": [{"succeededIndexes": "0"}]}}
    if leader is not None:
        group = layout.places[leader, 0].replicated_job
        return (_target(group), {}) if len(layout.groups) > 1 else ({}, {})
    if job.kind is PYTORCH and job.elastic is not None:
        return {}, {layout.groups[0].name: {"rules": [{"succeededCount": 1}]}}
    if job.kind is TENSORFLOW:
        by_first = {"worker": {"rules": [{"succeededIndexes": "0"}]}}
        return _target("worker"), {} if job.spec.get("successPolicy") == "AllWorkers" else by_first
    return {}, {}


def _target(group: str) -> Json:
    return {"operator": "All", "targetReplicatedJobs": [group]}


@dataclass(frozen=True, slots=True)
class Gang:
    """The gang scheduling that a job asks for."""

    scheduler: str | None = None
    policy: Json | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    priority_class: str | None = None
    findings: tuple[Finding, ...] = ()


def gang(job: V1Job, asked: str | None) -> Gang:
    """The gang policy. Which gang scheduler there is, is a flag of v1's operator and in no job: `asked` says it, or
    the scheduler's name in a template; raises `Refused` when a schedulingPolicy leaves it open.
    """
    policy = job.run_policy.get("schedulingPolicy")
    named = {str(replica.pod_spec.get("schedulerName") or "") for replica in job.replicas.values()}
    found = asked or next((gang for gang, name in GANG_SCHEDULERS.items() if name in named), None)
    if found is None and policy:
        raise Refused(
            [
                "spec.runPolicy.schedulingPolicy: which gang scheduler v1 uses is a flag of its operator; say it with "
                "--gang volcano, --gang coscheduling, or --gang none if it has none"
            ]
        )
    if found in (None, "none"):
        reason = "without a gang scheduler v1 ignores it" if policy else ""
        return Gang(findings=(Finding("schedulingPolicy", Verdict.EQUAL, reason),) if policy else ())
    assert found is not None
    policy = policy or {}
    volcano = found == "volcano"
    timeout = policy.get("scheduleTimeoutSeconds")
    own: Json = {} if volcano or timeout is None else {"scheduleTimeoutSeconds": timeout}
    queue = ((QUEUE_ANNOTATION, str(policy["queue"])),) if volcano and policy.get("queue") else ()
    return Gang(
        GANG_SCHEDULERS[found],
        {found: own},
        queue,
        policy.get("priorityClass") if volcano else None,
        tuple(_gang_findings(job, policy, volcano)),
    )


def _gang_findings(job: V1Job, policy: Json, volcano: bool) -> Iterator[Finding]:
    yield Finding("schedulingPolicy", Verdict.SAME, "all pods start together, by a PodGroup of the TrainJob's name")
    least = policy.get("minAvailable")
    if least is not None and least != job.total:
        yield Finding(
            "minAvailable", Verdict.DIFFERS, f"v1 starts {least} of {job.total} pods together; a TrainJob starts all"
        )
    if policy.get("minResources"):
        yield Finding("minResources", Verdict.DIFFERS, "the PodGroup asks for the sum of what its pods request")
    priority = policy.get("priorityClass")
    others = {str(replica.pod_spec.get("priorityClassName") or priority) for replica in job.replicas.values()}
    if volcano and priority and others != {priority}:
        yield Finding("priorityClass", Verdict.DIFFERS, "the PodGroup's priority is that of its pods, which is another")


def trainjob_fields(job: V1Job) -> tuple[Json, dict[str, str]]:
    """Fields of the TrainJob's spec, and annotations of the TrainJob."""
    policy, spec, annotations = job.run_policy, {}, {}
    if policy.get("suspend"):
        spec["suspend"] = True
    if policy.get("activeDeadlineSeconds") is not None:
        spec["activeDeadlineSeconds"] = policy["activeDeadlineSeconds"]
    if policy.get("managedBy") == "kueue.x-k8s.io/multikueue":
        spec["managedBy"] = policy["managedBy"]
    if policy.get("ttlSecondsAfterFinished") is not None:
        annotations[TTL_ANNOTATION] = str(policy["ttlSecondsAfterFinished"])
    return spec, annotations


def findings(layout: Layout, shipped: bool) -> Iterator[Finding]:
    """How well the run's policies are kept."""
    job = layout.job
    yield from _restart_findings(layout, shipped)
    yield _success_finding(layout, shipped)
    yield _clean_up_finding(job)
    for field, reason in (
        ("activeDeadlineSeconds", ""),
        ("ttlSecondsAfterFinished", f"as annotation {TTL_ANNOTATION}"),
        ("suspend", ""),
        ("managedBy", ""),
    ):
        if job.run_policy.get(field) is not None:
            yield Finding(field, Verdict.EQUAL, reason)
    if job.elastic is not None:
        yield from _elastic_findings(job)
    if job.spec.get("enableDynamicWorker"):
        yield Finding("enableDynamicWorker", Verdict.DIFFERS, "v1 goes on when a worker fails; a TrainJob fails")


def _restart_findings(layout: Layout, shipped: bool) -> Iterator[Finding]:
    job = layout.job
    policies = {replica.restart_policy for replica in job.replicas.values()}
    if "Always" in policies:
        reason = "a Job's pods cannot be restarted after success: they are after a failure only"
        yield Finding("restartPolicy", Verdict.DIFFERS, reason)
    elif shipped:
        reason = "a failing pod ends the job; one that is lost with its node is replaced, where v1 fails"
        yield Finding("restartPolicy", Verdict.SAME, reason)
    else:
        text = "retryable exit codes by a pod failure policy" if "ExitCode" in policies else ""
        yield Finding("restartPolicy", Verdict.SAME if text else Verdict.EQUAL, text)
    if job.run_policy.get("backoffLimit") is not None and policies != {"Never"}:
        jobs = sum(group.jobs for group in layout.groups)
        if jobs == 1:
            yield Finding("backoffLimit", Verdict.EQUAL)
        else:
            yield Finding(
                "backoffLimit", Verdict.DIFFERS, f"v1 counts all pods together, a JobSet its {jobs} Jobs apart"
            )


def _success_finding(layout: Layout, shipped: bool) -> Finding:
    whole, of_jobs = success(layout)
    if shipped and (whole or of_jobs):
        return Finding(
            "success", Verdict.SAME, "complete when all ranks are, which in collective training end together"
        )
    by = "JobSet's success policy" if whole else "the Job's success policy" if of_jobs else "all pods succeed"
    return Finding("success", Verdict.EQUAL, f"by {by}" if whole or of_jobs else by)


def _clean_up_finding(job: V1Job) -> Finding:
    if job.clean_pod_policy == "All":
        return Finding("cleanPodPolicy", Verdict.EQUAL, "the JobSet and its pods are deleted when the job ends")
    if job.clean_pod_policy == "Running":
        return Finding("cleanPodPolicy", Verdict.EQUAL)
    reason = "pods that have ended stay, with their logs; a pod that still runs at the end of the job is ended"
    return Finding("cleanPodPolicy", Verdict.SAME, reason)


def _elastic_findings(job: V1Job) -> Iterator[Finding]:
    policy = job.elastic or {}
    worker = job.replicas["Worker"]
    reason = f"torchrun takes the same numbers of nodes; the job has {worker.count} pods from beginning to end"
    yield Finding("elasticPolicy", Verdict.SAME, reason)
    if policy.get("metrics"):
        reason = "v1 makes a HorizontalPodAutoscaler of them; the converted job has none"
        yield Finding("elasticPolicy.metrics", Verdict.DIFFERS, reason)


def clean_up(job: V1Job) -> Json:
    return {"ttlSecondsAfterFinished": 0} if job.clean_pod_policy == "All" else {}


def needs_own_runtime(layout: Layout, gang: Gang) -> bool:
    """Whether a policy of the run can be said in a runtime only."""
    job = layout.job
    return (
        any(replica.restart_policy != "Never" for replica in job.replicas.values())
        or job.clean_pod_policy == "All"
        or gang.policy is not None
        or job.elastic is not None
        or job.kind in (MPI, TENSORFLOW)
    )
