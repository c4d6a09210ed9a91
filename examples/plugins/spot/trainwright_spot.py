"""Spot: a TrainJob labelled `example.com/spot: "true"` runs on spot machines and is told when one goes away.

Shows two extension points: `enforce_pod_spec` changes the pods, `validate` judges the TrainJob at admission. The last
line is for who drops this file into a directory of plugins; an installed package has an entry point instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.info import Info
from trainwright.pipeline.podset import env_var
from trainwright.schema.errors import FieldError, invalid

LABEL = "example.com/spot"
TOLERATION = {"key": LABEL, "operator": "Exists", "effect": "NoSchedule"}


class Spot:
    name = "Spot"

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None:
        if job.metadata.label(LABEL) != "true":
            return
        for pod_set in info.pod_sets:
            pod = pod_set.pod_spec
            tolerations = pod.setdefault("tolerations", [])
            if TOLERATION not in tolerations:  # a phase applied twice changes nothing more
                tolerations.append(dict(TOLERATION))
            pod.setdefault("nodeSelector", {})[LABEL] = "true"
            for container in pod_set.containers:
                container.set_env(env_var("SPOT_GRACE_SECONDS", str(pod.get("terminationGracePeriodSeconds", 30))))

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]:
        value = job.metadata.label(LABEL)
        if value not in (None, "true", "false"):
            yield invalid(f"metadata.labels[{LABEL}]", value, "must be true or false")
        if value == "true" and job.spec is not None and job.spec.active_deadline_seconds is not None:
            yield "a job on spot machines may be interrupted: its deadline counts the time it waits for new ones"


PLUGINS = [Spot]
