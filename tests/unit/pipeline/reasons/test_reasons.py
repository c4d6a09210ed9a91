"""Each state that a TrainJob can wait or fail in has one sentence: who, why, and what to do.

The messages are those of kube-scheduler, kubelet, kube-apiserver, Kueue and Volcano.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trainwright.pipeline.reasons import Evidence, Reason, reason_of
from trainwright.schema.jsonobject import Json
from unit.pipeline.reasons.objects import (
    FAILED_JOB,
    NOW,
    ON_A_NODE,
    ended,
    event,
    pod,
    train_job,
    unschedulable,
    waiting,
)

LONG_AGO = "2020-01-01T00:00:00Z"
JOBSET = {"kind": "JobSet", "metadata": {"name": "job", "creationTimestamp": LONG_AGO}, "status": {}}
REFUSED = 'Error creating: pods "job-node-0-0" is forbidden: '


def why(job: Json | None = None, **evidence: Any) -> Reason:
    found = reason_of(Evidence(job=job or train_job(), **evidence))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available", "TooLittleCpu"),
        ("0/1 nodes are available: 1 Insufficient memory.", "TooLittleMemory"),
        ("0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.", "NoGpu"),
        ("0/1 nodes are available: 1 Insufficient example.com/widget.", "TooLittleOfAResource"),
        ("0/1 nodes are available: 1 Too many pods.", "TooManyPods"),
        ("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", "NoMatchingNode"),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: infra}.", "TaintNotTolerated"),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", "NodesClosed"),
        ("no nodes available to schedule pods", "NoNodes"),
        ("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", "Unschedulable"),
        ("gang job can never fit: it asks for 8 cpu in all, the nodes have 2", "GangNeverFits"),
        ("gang job waits: 2 of 4 pods fit", "GangWaits"),
        ('persistentvolumeclaim "data" not found', "ClaimMissing"),
        ("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", "ClaimUnbound"),
    ],
)
def test_a_pod_without_a_node_says_what_is_missing(message: str, code: str) -> None:
    found = why(pods=[unschedulable(message)])
    assert (found.code, found.headline.split()[0]) == (code, "node-0")
    assert found.mend


def test_a_job_too_large_for_every_node_says_how_much_it_asks_for_and_what_there_is() -> None:
    spec = {"containers": [{"name": "node", "resources": {"requests": {"cpu": "64"}}}]}
    nodes = [{"metadata": {"name": "local"}, "status": {"allocatable": {"cpu": "2"}}}]
    found = why(pods=[unschedulable("0/1 nodes are available: 1 Insufficient cpu.", spec=spec)], nodes=nodes)
    assert found.headline == "node-0 waits for 64 cpu: 0/1 nodes are available: 1 Insufficient cpu"
    assert found.details == ("node local has 2 cpu in all",)


def test_an_unbound_claim_is_shown_with_its_own_events() -> None:
    spec = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
    told = event("PersistentVolumeClaim", "data", "ProvisioningFailed", 'storageclass "fast" not found')
    said = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    found = why(pods=[unschedulable(said, spec=spec)], claims=[claim], events=[told])
    assert found.details == (
        "claim data is Pending; storage class: fast",
        'ProvisioningFailed: storageclass "fast" not found',
    )


def test_gates_are_named() -> None:
    gated = unschedulable("", reason="SchedulingGated", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]})
    found = why(pods=[gated])
    assert found.code == "SchedulingGated"
    assert "kueue.x-k8s.io/topology" in found.headline


def test_of_a_gang_the_pod_that_says_most_is_told() -> None:
    rejected = unschedulable("0/1 nodes are available: 1 optimistic rejection in PostFilter.")
    assert why(pods=[rejected]).code == "GangWaits"
    released = unschedulable("0/1 nodes are available: 1 rejection in Unreserve.")
    assert why(pods=[released]).code == "GangWaits"
    first = unschedulable("0/2 nodes are available: 2 Insufficient cpu.")
    found = why(pods=[rejected, first])
    assert (found.code, "Insufficient cpu" in found.headline) == ("TooLittleCpu", True)


def test_a_scheduler_that_says_nothing_is_named() -> None:
    silent = pod(spec={"schedulerName": "volcano"})
    silent["metadata"]["creationTimestamp"] = LONG_AGO
    found = why(pods=[silent], workload=JOBSET, now=NOW)
    assert (found.code, "scheduler volcano" in found.headline) == ("SchedulerAway", True)


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("CreateContainerConfigError", 'configmap "settings" not found', "ConfigMapMissing"),
        ("CreateContainerConfigError", 'secret "token" not found', "SecretMissing"),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root",
            "ContainerConfigInvalid",
        ),
        ("ImagePullBackOff", 'Back-off pulling image "registry/train:1"', "ImagePull"),
        ("ErrImagePull", "not found", "ImagePull"),
        ("InvalidImageName", "couldn't parse image name", "ImageNameInvalid"),
        ("RunContainerError", 'exec: "trian": executable file not found in $PATH', "ProgramMissing"),
    ],
)
def test_a_container_that_waits_says_for_what(reason: str, message: str, code: str) -> None:
    found = why(pods=[waiting(reason, message)])
    assert found.code == code
    assert message in found.headline


def test_a_crash_loop_says_what_the_container_fails_of() -> None:
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": "ModuleNotFoundError: No module named 'x'"}}
    found = why(pods=[waiting("CrashLoopBackOff", "back-off 20s", lastState=last, restartCount=3)])
    assert found.code == "CrashLoop"
    assert "3 restarts so far" in found.headline
    assert "No module named 'x'" in found.headline
    assert found.mend.startswith("Install the module"), "the mend is that of what it fails of"


def test_a_probe_that_never_succeeds_is_told_once_the_container_had_time() -> None:
    spec = {"containers": [{"name": "node", "readinessProbe": {"httpGet": {"port": 80}}}]}
    state = {"running": {"startedAt": "2027-01-15T08:00:00Z"}}  # NOW, to the second
    running = pod(phase="Running", spec=spec, containerStatuses=[{"name": "node", "ready": False, "state": state}])
    assert reason_of(Evidence(job=train_job(), pods=[running], now=NOW + 5)) is None
    assert why(pods=[running], now=NOW + 15).code == "ProbeFails"


def test_a_volume_that_cannot_be_mounted_is_told_by_its_event() -> None:
    creating = waiting("ContainerCreating")
    told = event("Pod", "job-node-0-0", "FailedMount", 'MountVolume.SetUp failed: configmap "c" not found')
    assert why(pods=[creating], events=[told]).code == "MountFailed"


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("NotSupported", "persistentVolumeClaim volumes are not supported by the local node yet", "PodRefused"),
        ("Evicted", "The node was low on resource: memory.", "Evicted"),
        ("NodeShutdown", "Pod was terminated in response to imminent node shutdown.", "NodeLost"),
        ("SupervisorLost", "the pod's supervisor died, and its containers with it", "ProcessesLost"),
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", "PodDeadline"),
        ("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present", "PodFailed"),
        ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 999, capacity: 2", "TooLittleCpu"),
        ("OutOfmemory", "Node didn't have enough resource: memory", "TooLittleMemory"),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu", "NoGpu"),
        ("OutOfpods", "Node didn't have enough resource: pods", "TooManyPods"),
        ("Preempting", "Preempted in order to admit critical pod", "Preempted"),
    ],
)
def test_a_pod_that_failed_without_a_container_says_why(reason: str, message: str, code: str) -> None:
    found = why(FAILED_JOB, pods=[pod(1, phase="Failed", reason=reason, message=message)])
    assert (found.code, found.rank) == (code, 1)
    assert message.rstrip(".") in found.headline


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("PreemptionByScheduler", "Preempted"),
        ("DeletionByTaintManager", "NodeLost"),
        ("EvictionByEvictionAPI", "Evicted"),
        ("TerminationByKubelet", "Evicted"),
    ],
)
def test_a_pod_that_was_taken_away_says_by_whom(reason: str, code: str) -> None:
    gone = ended(0, code=143)
    gone["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}]
    gone["spec"]["nodeName"] = "worker-1"
    found = why(FAILED_JOB, pods=[gone])
    assert found.code == code
    assert "from node worker-1" in found.headline


def test_a_command_that_is_no_program_is_named() -> None:
    state = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no program trian on PATH"}}
    failed = pod(phase="Failed", containerStatuses=[{"name": "node", "state": state}])
    found = why(FAILED_JOB, pods=[failed])
    assert found.code == "ProgramMissing"
    assert "no program trian" in found.headline


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (REFUSED + "exceeded quota: team, requested: cpu=4, used: cpu=8, limited: 10", "QuotaExceeded"),
        (REFUSED + "maximum cpu usage per Container is 2, but limit is 4", "LimitRangeRefused"),
        (REFUSED + 'violates PodSecurity "restricted:latest": privileged', "PodSecurityRefused"),
        (REFUSED + 'error looking up service account ns/trainer: serviceaccount "trainer" not found',
         "ServiceAccountMissing"),
        ('admission webhook "policy.example.com" denied the request: no label owner', "WebhookRefused"),
        ('failed calling webhook "mjob.kb.io": Post "https://w/": connect: connection refused', "WebhookAway"),
        ('failed calling webhook "mjob.kb.io": tls: failed to verify certificate: x509: certificate has expired',
         "CertificateExpired"),
        (REFUSED + "something else", "PodsNotCreated"),
    ],
)  # fmt: skip
def test_pods_that_cannot_be_created_say_what_refuses_them(message: str, code: str) -> None:
    found = why(workload=JOBSET, events=[event("Job", "job-node-0", "FailedCreate", message)])
    assert found.code == code


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (
            'not found ClusterTrainingRuntime specified in TrainJob: "x" not found',
            "RuntimeMissing",
        ),
        ("plugin JobSet cannot watch jobsets: jobsets.jobset.x-k8s.io is not served", "JobSetNotInstalled"),
        ('JobSet "job" exists already and does not belong to this TrainJob; delete it or give …', "NameTaken"),
        ("metadata.name: Invalid value: must be no more than 63 characters", "NameTooLong"),
        ('admission webhook "vjobset.kb.io" denied the request: spec is immutable', "WebhookRefused"),
        ('failed calling webhook "vjobset.kb.io": connection refused', "WebhookAway"),
        ('jobsets is forbidden: User "system:serviceaccount:kubeflow-system:x" cannot create', "Forbidden"),
        ("plugin Spot failed in build: 'nodes'", "PluginFailed"),
        ("the runtime's template has no container named node", "RuntimeInvalid"),
        ("something that nobody has met before", "NotBuilt"),
    ],
)
def test_what_the_operator_cannot_do_has_a_code(problem: str, code: str) -> None:
    found = why(problem=problem)
    assert (found.code, found.headline) == (code, problem)
    assert why(problem=found.message) == found, "the job's status has the mend, and nobody says it twice"


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("DeadlineExceeded", "TrainJob exceeded its active deadline", "DeadlineExceeded"),
        ("WorkloadLost", 'the workload of TrainJob "job" is gone. To run it again', "WorkloadLost"),
        ("TrainingRuntimeNotSupported", "unsupported runtime: Job.batch", "RuntimeNotSupported"),
    ],
)
def test_an_end_that_no_pod_caused_has_a_code(reason: str, message: str, code: str) -> None:
    found = why(train_job(failed={"reason": reason, "message": message}))
    assert found.code == code


def test_a_job_that_nobody_acts_on_says_so() -> None:
    job = {"metadata": {"name": "job", "creationTimestamp": LONG_AGO}, "spec": {}}
    assert why(job, now=NOW).code == "OperatorAway"
    assert why(workload=JOBSET, now=NOW).code == "JobSetControllerAway"
    zeros = {**JOBSET, "status": {"replicatedJobsStatus": [{"name": "node", "active": 0, "ready": 0}]}}
    assert why(workload=zeros, now=NOW).code == "NoPodsYet"


def test_a_suspended_job_says_how_to_start_it() -> None:
    found = why(train_job(suspend=True))
    assert (found.code, found.mend) == ("Suspended", "Start it: trainwright resume job")


def queued(*conditions: Json, places: Sequence[Json] = ()) -> Reason:
    job = train_job(suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    workload = {"metadata": {"name": "w"}, "spec": {"queueName": "team"}, "status": {"conditions": list(conditions)}}
    return why(job, queued=[workload] if conditions else [], places=places)


def test_a_job_in_kueues_queue_says_what_kueue_says() -> None:
    short = "couldn't assign flavors to pod set node: insufficient unused quota for cpu, 2 more needed"
    reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": short}
    found = queued(reserved)
    assert (found.code, short in found.headline) == ("KueueQuota", True)
    absent = {**reserved, "message": "LocalQueue team doesn't exist"}
    assert queued(absent).code == "KueueQueueMissing"
    preempted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "by a job of higher priority"}
    assert queued(preempted, reserved).code == "KueueEvicted"
    assert queued().code == "KueueQueued", "who may not read the Workload knows the queue at least"


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (
            {"positionInLocalQueue": 0, "positionInClusterQueue": 4, "localQueueName": "team"},
            ('number 1 in the queue "team", number 5 in its ClusterQueue',),
        ),
        ({"positionInLocalQueue": 2, "positionInClusterQueue": None}, ('number 3 in the queue ""',)),
        ({"positionInLocalQueue": None}, ()),
        ({}, ()),
    ],
)
def test_its_place_in_the_queue_is_told_where_it_is_known(place: Json, told: tuple[str, ...]) -> None:
    reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "short"}
    other = {"metadata": {"name": "another"}, "positionInLocalQueue": 0}
    found = queued(reserved, places=[other, {"metadata": {"name": "w"}, **place}])
    assert found.details == told
    assert found.headline == queued(reserved).headline, "the headline is the operator's too, who does not ask"


def test_a_gang_says_what_its_podgroup_says() -> None:
    gang = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "metadata": {"name": "job"},
        "spec": {"queue": "team"},
        "status": {"phase": "Inqueue"},
    }
    short = "2/4 tasks in gang unschedulable: pod group is not ready, 2 Pending, 4 minAvailable"
    unfit = [{"type": "Unschedulable", "status": "True", "message": short}]
    found = why(pod_groups=[{**gang, "status": {"phase": "Inqueue", "conditions": unfit}}], workload=JOBSET)
    assert (found.code, short in found.headline) == ("GangWaits", True)
    assert why(pod_groups=[{**gang, "status": {"phase": "Pending"}}], workload=JOBSET).code == "VolcanoQueue"
    native = [{"type": "PodGroupScheduled", "status": "False", "message": "0/2 nodes are available"}]
    assert why(pod_groups=[{"metadata": {"name": "job"}, "status": {"conditions": native}}]).code == "GangWaits"


def quiet(index: int, *stacks: str) -> Json:
    message = "\n".join(["no output for 120 s", *stacks])
    condition = {"type": "trainwright.dev/Quiet", "status": "True", "reason": "NoOutput", "message": message}
    return pod(index, phase="Running", conditions=[{**condition, "lastTransitionTime": "2026-01-01T00:02:00Z"}])


TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
WAITS = (
    f"wait ({TORCH}:80) <- all_reduce ({TORCH}:3000) <- step (/home/ada/train.py:9) <- <module> (/home/ada/train.py:30)"
)
LOADS = "recv (/usr/lib/python3.11/socket.py:7) <- load (/home/ada/train.py:14) <- <module> (/home/ada/train.py:31)"


def test_a_hang_names_the_rank_that_the_others_wait_for() -> None:
    found = why(pods=[quiet(0, f"rank 0 (pid 7): {WAITS}"), quiet(1, f"rank 1 (pid 8): {LOADS}")])
    assert (found.code, found.rank) == ("Hang", 1)
    silent = "no output and no progress for 120 s"
    assert found.headline == f"rank 1 hangs at train.py:14 in load, {silent}; the others wait for it"
    assert found.details == (f"rank 0 (pid 7): {WAITS}", f"rank 1 (pid 8): {LOADS}")


def test_a_hang_inside_one_pod_names_the_true_ranks() -> None:
    both = quiet(1, f"rank 2 (pid 7): {WAITS}", f"rank 3 (pid 8): {LOADS}")
    assert why(pods=[both]).headline.startswith("rank 3 hangs at train.py:14 in load")


def test_ranks_that_all_hang_at_one_place_are_named_with_it() -> None:
    found = why(pods=[quiet(0, f"rank 0 (pid 7): {LOADS}"), quiet(1, f"rank 1 (pid 8): {LOADS}")])
    assert found.headline == "ranks 0, 1 hang at train.py:14 in load: no output and no progress for 120 s"


def test_a_hang_of_all_names_all() -> None:
    assert why(pods=[quiet(0), quiet(1)]).headline == "ranks 0, 1 hang: no output and no progress for 120 s"


def test_a_training_that_reports_progress_does_not_hang() -> None:
    job = train_job()
    job["status"]["trainerStatus"] = {"lastUpdatedTime": "2026-01-01T00:01:30Z"}
    assert reason_of(Evidence(job=job, pods=[quiet(0)])) is None


def test_a_rank_that_falls_silent_while_others_go_on_is_a_straggler() -> None:
    found = why(pods=[pod(0, phase="Running"), quiet(1)])
    assert (found.code, found.rank) == ("Straggler", 1)


def test_a_rank_that_is_steps_behind_is_a_straggler() -> None:
    pods = [pod(index, phase="Running") for index in range(3)]
    steps = {0: 40, 1: 22, 2: 41}
    logs = {f"job-node-0-{index}/node": [f"step {steps[index]} loss 0.1"] for index in range(3)}
    found = why(pods=pods, logs=logs)
    assert (found.code, found.rank, "18 steps behind" in found.headline) == ("Straggler", 1, True)
    even = {f"job-node-0-{index}/node": [f"step {40 + index % 2}"] for index in range(3)}
    assert reason_of(Evidence(job=train_job(), pods=pods, logs=even)) is None


# What holds for all


def test_a_job_that_is_well_has_no_reason() -> None:
    assert reason_of(Evidence(job=train_job(), pods=[pod(phase="Running"), pod(1, phase="Running")])) is None


def test_what_a_failed_job_said_stays_when_its_pods_tell_less() -> None:
    said = "rank 1 failed: ValueError: nan. Mend the code"
    job = train_job(failed={"reason": "FailedJobs", "message": "jobset failed"}, message=said)
    told = [event("TrainJob", "job", "Exception", said)]
    for pods in ([], [ended(0, "RuntimeError: Connection reset by peer")], [ended(0, code=143)]):
        found = why(job, pods=pods, events=told)
        assert (found.message, found.code) == (said, "Exception")


def test_the_chain_leads_from_the_job_to_the_node() -> None:
    failed = ended(1)
    failed["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "job-node-0"
    failed["spec"]["nodeName"] = "worker-1"
    job = {"metadata": {"name": "job-node-0"}, "status": {"failed": 1}}
    found = why(FAILED_JOB, workload=JOBSET, jobs=[job], pods=[failed])
    assert [(link.kind, link.name) for link in found.chain] == [
        ("TrainJob", "job"),
        ("JobSet", "job"),
        ("Job", "job-node-0"),
        ("Pod", "job-node-0-1"),
        ("Node", "worker-1"),
    ]


@pytest.mark.parametrize("empty", [None, [], {}])
def test_any_optional_field_may_be_null(empty: Any) -> None:
    job = {"metadata": {"name": "job", "labels": None}, "spec": empty, "status": empty}
    bare = {"metadata": {"name": "p", "labels": None}, "spec": empty, "status": empty}
    half = pod(phase="Running", conditions=None, containerStatuses=None, initContainerStatuses=None)
    state = {"name": "node", "state": None, "lastState": None}
    odd = pod(phase="Pending", containerStatuses=[state], spec={**ON_A_NODE, "containers": None, "volumes": None})
    workload = {"metadata": None, "status": empty}
    for given in (job, {**FAILED_JOB}, {**job, "spec": {"suspend": True}}):
        reason_of(Evidence(job=given, workload=workload, pods=[bare, half, odd], events=[{}], nodes=[bare], now=NOW))
