"""Which of the objects that were found is a TrainJob's workload, and what its plugin says of it.

In: for each watch of the framework, the object of the TrainJob's name, if there is one. Out: the `Workload`, or None.
The operator finds objects in its stores, admission asks the API server; who is asked for the status is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.errors import PluginFailed, WorkloadUnknown
from trainwright.pipeline.framework import Framework, NamedWatch
from trainwright.pipeline.workload import WORKLOAD_ANNOTATION, Workload


def workload_of(job: TrainJob, found: Iterable[tuple[NamedWatch, Any]], framework: Framework) -> Workload | None:
    """The workload that this TrainJob controls; raises `WorkloadUnknown`.

    Several plugins may watch one kind. The plugin that the workload's annotation names built it; without an
    annotation, as on every JobSet that Kubeflow Trainer made, it is the first one that can report the kind.
    """
    ours = [
        (named, thing)
        for named, thing in found
        if named.watch.workload and thing.metadata.is_controlled_by(job.metadata.uid)
    ]
    if not ours:
        return None
    kinds = {thing.metadata.uid: named.watch.resource.kind for named, thing in ours}
    if len(kinds) > 1:
        names = " and ".join(f'{kind} "{job.metadata.name}"' for kind in kinds.values())
        raise WorkloadUnknown(f"{names} are both the workload of this TrainJob; delete one of them")
    first, thing = ours[0]
    builder = thing.metadata.annotation(WORKLOAD_ANNOTATION) or first.plugin
    for named, thing in ours:
        if named.plugin == builder:
            try:
                status = framework.report(builder, job, thing)
            except PluginFailed as error:
                raise WorkloadUnknown(str(error)) from error
            return Workload(named.watch.resource, thing.metadata, builder, status)
    kind = first.watch.resource.kind
    raise WorkloadUnknown(
        f'plugin {builder} built {kind} "{job.metadata.name}" and is not loaded any more; load it again, '
        f"or delete the {kind} to have it built anew"
    )
