"""CoScheduling: a PodGroup for the scheduler-plugins' gang scheduler.

The operator's role needs, in `scheduling.x-k8s.io`: create, get, list, patch and watch of `podgroups`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import POD_GROUPS
from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply
from trainwright.pipeline.workload import Watch

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


class CoScheduling:
    """Runtimes with `podGroupPolicy.coscheduling`. The scheduler's name is the runtime author's to set."""

    name = "CoScheduling"

    def enforce_pod_group_policy(self, info: Info, job: TrainJob) -> None:
        if info.pod_group_policy.coscheduling is not None:
            for pod_set in info.gang:
                pod_set.set_pod_label(POD_GROUP_LABEL, info.name)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        policy = info.pod_group_policy.coscheduling
        if policy is None:
            return
        yield Apply(
            {
                "apiVersion": POD_GROUPS.api_version,
                "kind": POD_GROUPS.kind,
                "metadata": {"name": info.name},
                "spec": {**info.gang_size, "scheduleTimeoutSeconds": policy.schedule_timeout_seconds},
            }
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(POD_GROUPS, label_selector="")  # Kubeflow Trainer's carry no label
