"""KubernetesGang: Kubernetes' own gang scheduling, alpha in 1.36: a PodGroup, and pods that name it.

It is behind the feature gate KubernetesGang. The cluster needs its own gates GenericWorkload and GangScheduling, the
API `scheduling.k8s.io/v1alpha2`, and `manifests/components/kubernetes-gang`, which switches the gate on and lets the
operator create, get, list, patch and watch PodGroups. Where the API is not served, TrainJobs of such runtimes say so,
and no others are disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import KUBERNETES_POD_GROUPS
from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply
from trainwright.pipeline.typed import invalid_value, runtime_ref_text
from trainwright.pipeline.workload import Watch
from trainwright.schema.errors import FieldError

OFF = (
    "its podGroupPolicy.kubernetes needs the operator's feature gate KubernetesGang=true, and a cluster that has "
    "Kubernetes' own gang scheduling"
)


class KubernetesGang:
    """Runtimes with `podGroupPolicy.kubernetes`. The default scheduler starts the pods, all or none."""

    name = "KubernetesGang"

    def __init__(self, *, is_on: bool) -> None:
        self._is_on = is_on

    def enforce_pod_group_policy(self, info: Info, job: TrainJob) -> None:
        if info.pod_group_policy.kubernetes is None:
            return
        if not self._is_on:
            raise TemplateInvalid(f"the runtime {info.runtime.metadata.name} cannot be used: {OFF}")
        for pod_set in info.gang:
            pod_set.pod_spec["schedulingGroup"] = {"podGroupName": info.name}

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if info.pod_group_policy.kubernetes is None:
            return
        yield Apply(
            {
                "apiVersion": KUBERNETES_POD_GROUPS.api_version,
                "kind": KUBERNETES_POD_GROUPS.kind,
                "metadata": {"name": info.name},
                "spec": {"schedulingPolicy": {"gang": {"minCount": info.gang_size["minMember"]}}},
            }
        )

    def watches(self) -> Iterator[Watch]:
        if self._is_on:
            yield Watch(KUBERNETES_POD_GROUPS)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if info.pod_group_policy.kubernetes is not None and not self._is_on:
            yield invalid_value("spec.runtimeRef", runtime_ref_text(info.job_spec.runtime_ref), OFF)
