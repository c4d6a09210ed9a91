"""The TrainJob itself: what keeps the operator from building its workload, and ends that are nobody's failure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.api.times import seconds_of
from trainwright.pipeline.reasons import webhooks
from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence, condition_of, labels_of, name_of, status_of
from trainwright.pipeline.reasons.queues import QUEUE_LABEL
from trainwright.schema.jsonobject import Json

OPERATOR_SECONDS = 15.0
"""How long a new TrainJob may be without a word of the operator."""
IDLE_SECONDS = 10.0
"""How long a new workload may be without Jobs or pods."""

RUNTIME_MISSING = Cause(
    "RuntimeMissing",
    "The runtime does not exist",
    "runtimeRef names a runtime that is not there. The job starts as soon as it is.",
    "Name one that exists: trainwright get runtimes, or create it",
)
RUNTIME_KIND = Cause(
    "RuntimeNotSupported",
    "runtimeRef names something that is no runtime",
    "A TrainJob runs with a ClusterTrainingRuntime, or with a TrainingRuntime of its own namespace.",
    "Create the TrainJob anew with another runtimeRef: trainwright get runtimes",
)
NO_JOBSET = Cause(
    "JobSetNotInstalled",
    "JobSet is not installed, or may not be watched",
    "The operator runs TrainJobs as JobSets and cannot watch them: the cluster does not have JobSet's CRD, or the"
    " operator's role does not cover it.",
    "Install JobSet, which kubectl get crd jobsets.jobset.x-k8s.io then shows, or apply the operator's role again",
)
NAME_TAKEN = Cause(
    "NameTaken",
    "An object of this name belongs to somebody else",
    "The job needs an object of its own name, and there is one already that it does not own. It is left alone.",
    "Delete that object, or give the TrainJob another name",
)
NAME_TOO_LONG = Cause(
    "NameTooLong",
    "The name is too long",
    "Names of pods and their host names are made from the TrainJob's name, and may have 63 characters.",
    "Create the TrainJob anew with a shorter name",
)
TEMPLATE = Cause(
    "RuntimeInvalid",
    "The runtime cannot carry this TrainJob",
    "The runtime's template, or a patch of it, cannot be merged with what the TrainJob says.",
    "Correct the runtime or runtimePatches: trainwright validate and trainwright explain say where",
)
PLUGIN = Cause(
    "PluginFailed",
    "A plugin failed",
    "A plugin of the operator raised an error, or one that is needed is not loaded.",
    "See trainwright plugins, and the operator's log",
)
WORKLOAD_LOST = Cause(
    "WorkloadLost",
    "The JobSet is gone, and nobody saw how it ended",
    "Somebody deleted the JobSet while the operator was away. Training that may be complete is not started again by"
    " itself.",
    "To run it again, delete the TrainJob and create it anew",
)
DEADLINE = Cause(
    "DeadlineExceeded",
    "The job's deadline is over",
    "The TrainJob has activeDeadlineSeconds, and that time has passed since it started or was resumed last.",
    "Create it anew with a larger activeDeadlineSeconds, or make the work shorter",
)
SUSPENDED = Cause(
    "Suspended",
    "The job is suspended",
    "spec.suspend is true: no pod runs, and the job keeps its place.",
    "Start it: trainwright resume JOB",
)
OPERATOR_AWAY = Cause(
    "OperatorAway",
    "No operator takes care of the job",
    "Nobody has acted on the TrainJob since it was created: the operator is not running, cannot reach the API server,"
    " or the job is managed by somebody else (spec.managedBy).",
    "Start the operator: kubectl -n kubeflow-system get pods; on the local cluster: trainwright up --detach",
)
WORKLOAD_IGNORED = Cause(
    "JobSetControllerAway",
    "Nobody acts on the JobSet",
    "The operator has built the JobSet, and JobSet's controller has created no Jobs for it: it is not running, or its"
    " webhook or its rights are broken.",
    "Start JobSet's controller: kubectl -n jobset-system get pods; on the local cluster: trainwright status",
)
NO_PODS = Cause(
    "NoPodsYet",
    "The Jobs have no pods",
    "The Jobs exist and their pods do not: a quota, a LimitRange, a webhook or a security policy refuses them, or the"
    " Job controller is away. Its events say which; the operator does not read them.",
    "See what its events say: trainwright why JOB",
)
OTHER_PROBLEM = Cause(
    "NotBuilt",
    "The operator cannot build what the job needs",
    "The operator says in the job's status what it could not do, and tries again with growing pauses.",
    "Do what the message says",
)
CAUSES = (
    RUNTIME_MISSING, RUNTIME_KIND, NO_JOBSET, NAME_TAKEN, NAME_TOO_LONG, TEMPLATE, PLUGIN, WORKLOAD_LOST, DEADLINE,
    SUSPENDED, OPERATOR_AWAY, WORKLOAD_IGNORED, NO_PODS, OTHER_PROBLEM,
)  # fmt: skip
_ENDS = {"DeadlineExceeded": DEADLINE, "WorkloadLost": WORKLOAD_LOST, "TrainingRuntimeNotSupported": RUNTIME_KIND}
_PROBLEMS = (
    (RUNTIME_MISSING, re.compile(r"TrainingRuntime specified in TrainJob")),
    (NO_JOBSET, re.compile(r"cannot watch jobsets")),
    (NAME_TAKEN, re.compile(r"exists already and does not belong")),
    (NAME_TOO_LONG, re.compile(r"must be no more than \d+ (?:characters|bytes)|[Tt]oo long: may not be")),
    (PLUGIN, re.compile(r"^plugin \S+ |plugins? \S+ (?:and \S+ both )?(?:built?|failed)")),
    (TEMPLATE, re.compile(r"template|patch")),
)
_TOLD = re.compile(r"delete it or give|to run it again|disable one of them|load it again")
"""Messages of the operator that say already what to do."""


def of_end(reason: str, message: str) -> Finding | None:
    """Why a job has Failed, where the condition's reason tells."""
    cause = _ENDS.get(reason)
    return None if cause is None else Finding(cause=cause, what=_first_sentence(message))


def of_problem(text: str, job: str) -> Finding:
    """Why the operator cannot go on, by what it says of it: its error, or the job's status, which has the mend too."""
    cause = next((cause for cause, pattern in _PROBLEMS[:4] if pattern.search(text)), None)
    cause = cause or webhooks.cause_of(text)
    cause = cause or next((cause for cause, pattern in _PROBLEMS[4:] if pattern.search(text)), OTHER_PROBLEM)
    what = text.rstrip(". ").removesuffix(mend_for(cause.mend, job))
    return Finding(cause=cause, what=what.rstrip(". "))


def mend_for(mend: str, job: str) -> str:
    """What to do about this job, where the table says what to do about any."""
    return mend.replace("JOB", job or "JOB")


def says_what_to_do(found: Finding) -> bool:
    """Whether there is no need to add a mend."""
    return found.cause is OTHER_PROBLEM or _TOLD.search(found.what) is not None


def find(evidence: Evidence) -> Iterator[Finding]:
    job = evidence.job
    failed = condition_of(job, "Failed")
    if failed is not None:
        found = of_end(str(failed.get("reason") or ""), str(failed.get("message") or ""))
        if found is not None:
            yield found
        return
    spec = job.get("spec") or {}
    if evidence.problem:
        yield of_problem(evidence.problem, name_of(job))
    elif spec.get("suspend"):
        if not labels_of(job).get(QUEUE_LABEL):
            yield Finding(cause=SUSPENDED, what="suspended by spec.suspend")
    elif evidence.workload is None and _is_forgotten(evidence):
        what = "nobody has acted on this TrainJob since it was created"
        yield Finding(cause=OPERATOR_AWAY, what=what)


def find_idle(evidence: Evidence) -> Iterator[Finding]:
    """A workload that nobody acts on, or whose Jobs get no pods: asked last, when nothing says why."""
    workload = evidence.workload
    if workload is None or evidence.pods or (evidence.job.get("spec") or {}).get("suspend"):
        return
    kind, name = str(workload.get("kind") or "JobSet"), name_of(workload)
    parts = status_of(workload).get("replicatedJobsStatus") or ()
    if not _is_older(workload, evidence.now, IDLE_SECONDS):
        return
    if not parts:
        yield Finding(cause=WORKLOAD_IGNORED, what=f"nobody has acted on its {kind}", kind=kind, name=name)
    elif not any(part.get(field) for part in parts for field in ("ready", "succeeded", "failed")):
        yield Finding(cause=NO_PODS, what="its Jobs exist and have no pods", kind=kind, name=name)


def _is_forgotten(evidence: Evidence) -> bool:
    if status_of(evidence.job).get("state"):
        return False
    return _is_older(evidence.job, evidence.now, OPERATOR_SECONDS)


def _is_older(obj: Json, now: float, seconds: float) -> bool:
    created = (obj.get("metadata") or {}).get("creationTimestamp")
    return bool(now and created and now - seconds_of(str(created)) >= seconds)


def _first_sentence(text: str) -> str:
    return text.split(". ", 1)[0].rstrip(". ")
