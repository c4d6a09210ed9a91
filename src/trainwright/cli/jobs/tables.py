"""The tables of `get`: a row for each TrainJob, runtime or pod.

In: objects as the API serves them. Out: rows of text. Pure, but for the age of an object, which needs the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from trainwright.api.times import seconds_of
from trainwright.api.wellknown import JOBSET_NAME, RUN
from trainwright.cli.console.durations import duration
from trainwright.cli.jobview.kinds import POD_KIND, TRAINJOBS, Kind
from trainwright.cli.jobview.progress import progress_of
from trainwright.pipeline.reasons.sentences import (
    expected_pods,
    label_of,
    name_of,
    phase_name,
    phase_of,
    waiting_reason,
)
from trainwright.schema.jsonobject import Json

FRAMEWORK = "trainer.kubeflow.org/framework"
AGE = "AGE"


class Seen(NamedTuple):
    """What a table shows, and what its rows are computed from."""

    objects: Sequence[Json]
    jobsets: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    runs_here: dict[str, str] | None = None
    """On the local cluster: whether a runtime can run on this machine, by its name."""


class Table(NamedTuple):
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def without_age(self, row: int) -> tuple[str, ...]:
        """A row as it is compared with an earlier one: time alone is no news."""
        return tuple(cell for title, cell in zip(self.head, self.rows[row], strict=True) if title != AGE)


def table_of(kind: Kind, seen: Seen, *, wide: bool, all_namespaces: bool) -> Table:
    if kind == TRAINJOBS:
        table = _jobs(seen, wide=wide)
    elif kind == POD_KIND:
        table = _pods(seen, wide=wide)
    else:
        table = _runtimes(seen, wide=wide)
    if not all_namespaces:
        return table
    spaces = [str(obj["metadata"].get("namespace") or "") for obj in seen.objects]
    return Table(("NAMESPACE", *table.head), [(space, *row) for space, row in zip(spaces, table.rows, strict=True)])


def _jobs(seen: Seen, *, wide: bool) -> Table:
    jobsets = {_place(item): item for item in seen.jobsets}
    pods: dict[tuple[str, str], list[Json]] = {}
    for pod in seen.pods:
        labels = pod["metadata"].get("labels") or {}
        if JOBSET_NAME in labels:
            pods.setdefault((pod["metadata"]["namespace"], labels[JOBSET_NAME]), []).append(pod)
    rows = []
    for job in seen.objects:
        jobset, mine = jobsets.get(_place(job)), pods.get(_place(job), [])
        phase = phase_of(job, jobset, mine, time.time())
        running = sum(phase_name(pod) == "Running" for pod in mine)
        rows.append(
            (
                name_of(job),
                phase.name,
                str(((job.get("spec") or {}).get("runtimeRef") or {}).get("name") or ""),
                *((_nodes(job), f"{running}/{expected_pods(job, jobset) if jobset else 0}") if wide else ()),
                age_of(job),
                *(((job["metadata"].get("annotations") or {}).get(RUN) or "",) if wide else ()),
                progress_of(job),
                phase.sentence,
            )
        )
    more, run = (("NODES", "PODS"), ("RUN",)) if wide else ((), ())
    return Table(("NAME", "STATE", "RUNTIME", *more, AGE, *run, "PROGRESS", "WHAT IT DOES"), rows)


def _place(obj: Json) -> tuple[str, str]:
    return obj["metadata"]["namespace"], name_of(obj)


def _nodes(job: Json) -> str:
    nodes = ((job.get("spec") or {}).get("trainer") or {}).get("numNodes")
    return "" if nodes is None else str(nodes)


def _runtimes(seen: Seen, *, wide: bool) -> Table:
    rows = []
    for runtime in seen.objects:
        spec = runtime.get("spec") or {}
        rows.append(
            (
                name_of(runtime),
                str(runtime["kind"]),
                (runtime["metadata"].get("labels") or {}).get(FRAMEWORK) or "",
                str((spec.get("mlPolicy") or {}).get("numNodes") or 1),
                age_of(runtime),
                *((", ".join(images_of(runtime)),) if wide else ()),
                *((seen.runs_here.get(name_of(runtime), ""),) if seen.runs_here is not None else ()),
            )
        )
    here = ("RUNS HERE",) if seen.runs_here is not None else ()
    return Table(("NAME", "KIND", "FRAMEWORK", "NODES", AGE, *(("IMAGES",) if wide else ()), *here), rows)


def pod_templates(runtime: Json) -> list[tuple[str, Json, Json]]:
    """The pods of a runtime's template: the replicated job's name, its labels, and the pod's spec."""
    jobs = (((runtime.get("spec") or {}).get("template") or {}).get("spec") or {}).get("replicatedJobs") or []
    found = []
    for job in jobs:
        template = job.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        pod = ((template.get("spec") or {}).get("template") or {}).get("spec") or {}
        found.append((str(job.get("name") or ""), labels, pod))
    return found


def images_of(runtime: Json) -> list[str]:
    images = [
        str(container.get("image") or "")
        for _, _, pod in pod_templates(runtime)
        for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    ]
    return list(dict.fromkeys(filter(None, images)))


def _pods(seen: Seen, *, wide: bool) -> Table:
    rows = []
    for pod in seen.objects:
        status = pod.get("status") or {}
        containers = status.get("containerStatuses") or []
        restarts = sum(int(item.get("restartCount") or 0) for item in containers)
        where = (str(restarts), str((pod.get("spec") or {}).get("nodeName") or ""), str(status.get("podIP") or ""))
        rows.append(
            (
                name_of(pod),
                (pod["metadata"].get("labels") or {}).get(JOBSET_NAME) or "",
                label_of(pod),
                phase_name(pod),
                *(where if wide else ()),
                age_of(pod),
                waiting_reason(pod) or str(status.get("message") or ""),
            )
        )
    more = ("RESTARTS", "MACHINE", "IP") if wide else ()
    return Table(("NAME", "TRAINJOB", "NODE", "PHASE", *more, AGE, "WAITS FOR"), rows)


def age_of(obj: Json) -> str:
    """The age of an object in its two largest units, as kubectl prints it."""
    return duration(time.time() - seconds_of(obj["metadata"]["creationTimestamp"]))
