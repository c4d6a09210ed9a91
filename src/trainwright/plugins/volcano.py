"""Volcano: a PodGroup for the Volcano scheduler, with queue, priority and network topology.

The operator's role needs, in `scheduling.volcano.sh`: create, get, list, patch and watch of `podgroups`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import VOLCANO_POD_GROUPS
from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply
from trainwright.pipeline.workload import Watch
from trainwright.schema.errors import FieldError, invalid
from trainwright.schema.jsonobject import Json

GROUP_NAME_ANNOTATION = "scheduling.k8s.io/group-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")


class Volcano:
    """Runtimes with `podGroupPolicy.volcano`. The scheduler's name is the runtime author's to set."""

    name = "Volcano"

    def enforce_pod_group_policy(self, info: Info, job: TrainJob) -> None:
        if info.pod_group_policy.volcano is not None:
            for pod_set in info.gang:
                pod_set.set_pod_annotation(GROUP_NAME_ANNOTATION, info.name)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        policy = info.pod_group_policy.volcano
        if policy is None:
            return
        spec: Json = dict(info.gang_size)
        if QUEUE_ANNOTATION in info.annotations:
            spec["queue"] = info.annotations[QUEUE_ANNOTATION]
        for pod_set in info.pod_sets:  # the last one that names a priority decides
            if priority := pod_set.pod_spec.get("priorityClassName"):
                spec["priorityClassName"] = priority
        if policy.network_topology is not None:
            spec["networkTopology"] = {
                "mode": policy.network_topology.mode,
                "highestTierAllowed": policy.network_topology.highest_tier_allowed,
            }
        yield Apply(
            {
                "apiVersion": VOLCANO_POD_GROUPS.api_version,
                "kind": VOLCANO_POD_GROUPS.kind,
                "metadata": {"name": info.name},
                "spec": spec,
            }
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(VOLCANO_POD_GROUPS, label_selector="")  # Kubeflow Trainer's carry no label

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if info.pod_group_policy.volcano is None:
            return
        if info.annotations.get(QUEUE_ANNOTATION) == "":
            field = f"spec.annotations[{QUEUE_ANNOTATION}]"
            yield invalid(field, "", "Volcano queue name must not be empty")
        known = info.observed.priority_classes
        for pod_set in info.pod_sets:
            priority = pod_set.pod_spec.get("priorityClassName")
            if priority in SYSTEM_PRIORITIES:
                return
            if priority and known is not None and priority not in known:
                cause = f'PriorityClass.scheduling.k8s.io "{priority}" not found'
                detail = f'PriorityClass "{priority}" doesn\'t exist: {cause}'
                yield invalid("spec.templateSpec.priorityClassName", priority, detail)
