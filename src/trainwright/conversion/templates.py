"""Pod templates of the converted job: v1's templates with the variables v1 would add.

In: a layout. Out: replicated jobs for a runtime of the job's own.
"""

from __future__ import annotations

import copy
from typing import Any

from trainwright.api.wellknown import PEER_VARIABLES, PORT_VARIABLES
from trainwright.conversion.layout import NODE, Group, Layout
from trainwright.conversion.policies import Gang, pod_restart_policy, restarts, success
from trainwright.conversion.v1job import TENSORFLOW, V1Job
from trainwright.conversion.v1pods import JOB_NAME, OPERATOR, REPLICA_TYPE, pods_of
from trainwright.conversion.variables import PEERS, PORTS, variables_for
from trainwright.schema.jsonobject import Json

ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"


def replicated_jobs(layout: Layout, gang: Gang) -> list[Json]:
    return [replicated_job(layout, group, gang) for group in layout.groups]


def replicated_job(layout: Layout, group: Group, gang: Gang) -> Json:
    _, of_jobs = success(layout)
    spec: Json = {
        "parallelism": group.pods,
        "completions": group.pods,
        "completionMode": "Indexed",
        **restarts(layout.job, group),
        "template": {"metadata": pod_metadata(layout, group), "spec": pod_spec(layout, group, gang)},
    }
    if group.name in of_jobs:
        spec["successPolicy"] = of_jobs[group.name]
    template: Json = {"spec": spec}
    if group.is_trainer:
        template["metadata"] = {"labels": {ANCESTOR_LABEL: "trainer"}}
    return {"name": group.name, "replicas": group.jobs, "template": template}


def pod_metadata(layout: Layout, group: Group) -> Json:
    """The template's labels and annotations, and those labels of v1 that all pods of the group share."""
    job, metadata = layout.job, group.replica.template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), JOB_NAME: job.name, OPERATOR: job.kind.operator}
    if not layout.is_merged:
        labels[REPLICA_TYPE] = group.replica.role
    result: Json = {"labels": labels}
    annotations = dict(metadata.get("annotations") or {})
    set_here = {entry["name"] for entry in variables_for(layout, group)}
    for annotation, variables in ((PORT_VARIABLES, PORTS), (PEER_VARIABLES, PEERS)):
        if listed := [name for name in variables.get(job.kind.name, ()) if name in set_here]:
            annotations[annotation] = ",".join(listed)
    if annotations:
        result["annotations"] = annotations
    return result


def pod_spec(layout: Layout, group: Group, gang: Gang) -> Json:
    job = layout.job
    spec = copy.deepcopy(group.replica.pod_spec)
    spec["restartPolicy"] = pod_restart_policy(group.replica)
    if gang.scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = gang.scheduler
    if gang.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = gang.priority_class
    entries = variables_for(layout, group)
    main = job.main_container(spec)
    _add_port(job, main)
    for container in spec["containers"]:
        if entries and (job.kind is not TENSORFLOW or container is main):
            container["env"] = env_with(container.get("env") or [], entries)
    if group.is_trainer:
        main["name"] = NODE
    return spec


def env_with(given: list[Json], entries: list[Json]) -> list[Json]:
    """The user's variables, less those that v1 overrides, then v1's."""
    names = {entry["name"] for entry in entries}
    return [*(copy.deepcopy(each) for each in given if each.get("name") not in names), *copy.deepcopy(entries)]


def _add_port(job: V1Job, container: Json) -> None:
    if not job.kind.container:
        return
    ports = container.setdefault("ports", [])
    if not any(port.get("name") == job.kind.port_name for port in ports):
        ports.append({"name": job.kind.port_name, "containerPort": job.kind.port})


def mentions(job: V1Job) -> list[tuple[str, str]]:
    """Host names of v1's own pods that commands, arguments or variables of the job spell out, with where."""
    names = sorted({pod.name for pod in pods_of(job)}, key=len, reverse=True)
    found: list[tuple[str, str]] = []
    for replica in job.replicas.values():
        for container in [*replica.pod_spec["containers"], *(replica.pod_spec.get("initContainers") or ())]:
            texts: list[Any] = [*(container.get("command") or ()), *(container.get("args") or ())]
            texts += [variable.get("value") or "" for variable in container.get("env") or ()]
            for text in texts:
                if name := next((name for name in names if name in str(text)), None):
                    found.append((name, f"{replica.type}, container {container.get('name')}"))
    return found
