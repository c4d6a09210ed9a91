"""The runs that pods belong to: where a pod's logs and outputs go, so that they outlive it.

In: a pod that says by annotations which run of which TrainJob it belongs to. Out: a `RunOfPod`, with the pod's logs
directory made and linked from the pod's own directory. A pod may be anybody's: it gets the run's files only if the run
is that TrainJob's by name, namespace and uid (`RunsHome.claim`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainwright.api.times import rfc3339
from trainwright.api.wellknown import RUN, RUN_TRAINJOB
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.runs import Record, RunsHome, State
from trainwright.runs.pods import write_pod
from trainwright.schema.jsonobject import Json


@dataclass(frozen=True, slots=True)
class RunOfPod:
    """A run as the node sees it: `environment` may not exist, `output` does.

    `python` is a directory with what its Python programs can import of us, if there is one.
    """

    id: str
    output: Path
    environment: Path
    python: Path | None = None


class Runs:
    """The runs of a state directory, for pods that are about to start. Blocks: call it in a thread."""

    def __init__(self, home: RunsHome, python: Path | None = None) -> None:
        self._home = home
        self._python = python

    def prepare(self, pod: Json, directory: PodDirectory, now: float) -> RunOfPod | None:
        """The run of a pod, with a place for the pod's logs; None for a pod that belongs to none."""
        metadata = pod["metadata"]
        annotations = metadata.get("annotations") or {}
        name, _, uid = annotations.get(RUN_TRAINJOB, "").partition("/")
        if not name or not uid:
            return None
        job = Record(name=name, namespace=metadata["namespace"], uid=uid, created=rfc3339(now), state=State.PENDING)
        found = self._home.claim(job, annotations.get(RUN))
        if found is None:
            return None
        run = self._home.of(found.id)
        logs = run.logs_of(metadata["name"], metadata["uid"])
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_pod(logs, pod)
        directory.path.mkdir(parents=True, exist_ok=True)
        if not directory.logs.is_symlink():
            directory.logs.symlink_to(logs)
        return RunOfPod(run.id, run.output, run.environment, self._python)
