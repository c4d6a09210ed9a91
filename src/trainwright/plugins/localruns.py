"""LocalRuns: tells the local node which run each pod belongs to, so that its logs and outputs stay.

On in the local cluster only: what a real cluster gets is the same without it.
"""

from __future__ import annotations

from trainwright.api.runid import derived_id, is_run_id
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import HANG_AFTER, RUN, RUN_TRAINJOB, WORKDIR
from trainwright.pipeline.info import Info
from trainwright.pipeline.podset import INITIALIZERS


class LocalRuns:
    """Copies the run's id, its working directory and when it is said to hang from the TrainJob to its pods."""

    name = "LocalRuns"

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None:
        annotations = job.metadata.annotations or {}
        chosen = annotations.get(RUN, "")
        id = chosen if is_run_id(chosen) else derived_id(info.name, job.metadata.uid)
        workdir = annotations.get(WORKDIR, "")
        for pod_set in info.pod_sets:
            pod_set.set_pod_annotation(RUN, id)
            pod_set.set_pod_annotation(RUN_TRAINJOB, f"{info.name}/{job.metadata.uid}")
            if HANG_AFTER in annotations:
                pod_set.set_pod_annotation(HANG_AFTER, annotations[HANG_AFTER])
            if workdir.startswith("/") and pod_set.role not in INITIALIZERS:
                pod_set.set_pod_annotation(WORKDIR, workdir)
