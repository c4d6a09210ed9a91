"""Builds a JobSet's children: Jobs `<jobset>-<replicatedJob>-<index>` with JobSet's labels, and a headless service."""

from __future__ import annotations

import copy
import hashlib

from trainwright.api.metadata import controller_reference
from trainwright.api.resources import JOB_SETS, JOBS
from trainwright.api.wellknown import JOBSET_NAME, REPLICATED_JOB
from trainwright.embedded.workloads.features import DEFAULTS, Features
from trainwright.embedded.workloads.jobset import job_restarts, volume_claims
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

PREFIX = "jobset.sigs.k8s.io/"
JOB_INDEX = f"{PREFIX}job-index"
RESTART_ATTEMPT = f"{PREFIX}restart-attempt"
NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
NO_SCHEDULE_TAINT = "alpha.jobset.sigs.k8s.io/no-schedule"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"


def job_name(job_set: ApiObject, replicated_job: str, index: int) -> str:
    return f"{job_set.name}-{replicated_job}-{index}"


def subdomain(job_set: ApiObject, spec: Json) -> str:
    return str(spec["network"].get("subdomain") or job_set.name)


def service(job_set: ApiObject, spec: Json) -> Json:
    """The headless service by which pods find each other by name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain(job_set, spec),
            "namespace": job_set.metadata.namespace,
            "ownerReferences": [controller_reference(JOB_SETS, job_set.metadata)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME: job_set.name},
            "publishNotReadyAddresses": spec["network"]["publishNotReadyAddresses"],
        },
    }


def job(job_set: ApiObject, spec: Json, replicated: Json, index: int, gates: Features = DEFAULTS) -> Json:
    """The Job to create, suspended if the JobSet is."""
    template = replicated["template"]
    metadata = template.get("metadata") or {}
    marks = labels(job_set, spec, replicated, index, gates)
    placement = _placement(job_set, metadata)
    job_spec: Json = copy.deepcopy(template["spec"])
    pod = job_spec["template"]
    pod_metadata = pod.setdefault("metadata", {}) or {}
    pod["metadata"] = {
        **pod_metadata,
        "labels": {**(pod_metadata.get("labels") or {}), **marks},
        "annotations": {
            **(pod_metadata.get("annotations") or {}),
            **marks,
            **placement,
        },
    }
    if spec["network"]["enableDNSHostnames"]:
        pod["spec"]["subdomain"] = subdomain(job_set, spec)
    job_spec["suspend"] = bool(spec.get("suspend"))
    name = job_name(job_set, replicated["name"], index)
    job_annotations = {**(metadata.get("annotations") or {}), **marks, **placement}
    if EXCLUSIVE_TOPOLOGY in job_annotations and NODE_SELECTOR_STRATEGY in job_annotations:
        _bind_to_labelled_nodes(pod["spec"], f"{job_set.metadata.namespace}_{name}")
    volume_claims.add_volumes(pod["spec"], job_set, spec)
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": job_set.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **marks},
            "annotations": job_annotations,
            "ownerReferences": [controller_reference(JOB_SETS, job_set.metadata)],
        },
        "spec": job_spec,
    }


def _bind_to_labelled_nodes(pod: Json, namespaced_job: str) -> None:
    """Exclusive placement by labels that somebody has put on the nodes beforehand, one Job for each node pool."""
    pod["nodeSelector"] = {**(pod.get("nodeSelector") or {}), NAMESPACED_JOB: namespaced_job}
    toleration = {"key": NO_SCHEDULE_TAINT, "operator": "Exists", "effect": "NoSchedule"}
    pod["tolerations"] = [*(pod.get("tolerations") or []), toleration]


def labels(job_set: ApiObject, spec: Json, replicated: Json, index: int, gates: Features = DEFAULTS) -> dict[str, str]:
    """JobSet's labels, which Jobs and pods carry as annotations too."""
    everyone, group = spec["replicatedJobs"], replicated["groupName"]
    name = job_name(job_set, replicated["name"], index)
    grouped = [other for other in everyone if other["groupName"] == group]
    result = {
        JOBSET_NAME: job_set.name,
        f"{PREFIX}jobset-uid": job_set.metadata.uid,
        REPLICATED_JOB: replicated["name"],
        RESTART_ATTEMPT: str(job_set.status.get("restarts", 0)),
        f"{PREFIX}replicatedjob-replicas": str(replicated["replicas"]),
        f"{PREFIX}global-replicas": str(sum(other["replicas"] for other in everyone)),
        JOB_INDEX: str(index),
        f"{PREFIX}job-key": hashlib.sha1(f"{job_set.metadata.namespace}/{name}".encode()).hexdigest(),  # noqa: S324
        f"{PREFIX}job-global-index": str(_before(everyone, replicated["name"]) + index),
        f"{PREFIX}group-name": group,
        f"{PREFIX}group-replicas": str(sum(other["replicas"] for other in grouped)),
        f"{PREFIX}job-group-index": str(_before(grouped, replicated["name"]) + index),
    }
    if gates.restart_job:
        restarts = job_restarts.of(spec, job_set.status, replicated["name"])
        result[job_restarts.JOB_RESTART_ATTEMPT] = str(restarts[index] if index < len(restarts) else 0)
    if coordinator := spec.get("coordinator"):
        job_index, pod_index = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
        host = f"{job_set.name}-{coordinator.get('replicatedJob', '')}-{job_index}-{pod_index}"
        result[f"{PREFIX}coordinator"] = f"{host}.{subdomain(job_set, spec)}"
    return result


def _before(replicated_jobs: list[Json], name: str) -> int:
    """The number of Jobs of all replicated jobs before this one."""
    total = 0
    for replicated in replicated_jobs:
        if replicated["name"] == name:
            break
        total += replicated["replicas"]
    return total


def _placement(job_set: ApiObject, template_metadata: Json) -> dict[str, str]:
    """Annotations for exclusive placement, from the JobSet or from the replicated job, which wins."""
    result: dict[str, str] = {}
    for level in (job_set.metadata.annotations or {}, template_metadata.get("annotations") or {}):
        if EXCLUSIVE_TOPOLOGY in level:
            for key in (EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY):
                if key in level:
                    result[key] = level[key]
    return result


def resumed(child: ApiObject, replicated: Json) -> Json:
    """The merge patch that resumes a suspended Job, with the changes made to the JobSet's template while it was
    suspended.
    """
    template = replicated["template"]["spec"]["template"]
    mine, theirs = child.spec.get("template") or {}, template.get("metadata") or {}
    metadata: Json = {}
    for field in ("labels", "annotations"):
        if theirs.get(field):
            metadata[field] = theirs[field]
    pod: Json = {}
    if selector := template["spec"].get("nodeSelector"):
        pod["nodeSelector"] = selector
    for field in ("tolerations", "schedulingGates"):
        present = (mine.get("spec") or {}).get(field) or []
        added = [item for item in template["spec"].get(field) or [] if item not in present]
        if added:
            pod[field] = present + added
    changes: Json = {key: value for key, value in (("metadata", metadata), ("spec", pod)) if value}
    spec: Json = {"suspend": False, **({"template": changes} if changes else {})}
    return {"metadata": {"resourceVersion": child.metadata.resource_version}, "spec": spec}
