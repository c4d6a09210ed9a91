"""`trainwright describe`: all about a TrainJob or a runtime on one page, with pods, objects and events."""

from __future__ import annotations

import time
from collections.abc import Sequence

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, NODES, TRAIN_JOBS
from trainwright.api.wellknown import COMPLETION_INDEX, RUN
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.nearness import near
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.events import HEAD, rows_of
from trainwright.cli.jobs.tables import FRAMEWORK, age_of, pod_templates
from trainwright.cli.jobview.kinds import POD_KIND, TRAINJOBS, Kind, kind_and_names
from trainwright.cli.jobview.naming import job_named, no_such_job
from trainwright.cli.jobview.parts import Parts, events_of, parts_of
from trainwright.cli.jobview.progress import progress_of
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.pipeline.reasons.ranks import speaker
from trainwright.pipeline.reasons.sentences import (
    failed_containers,
    label_of,
    name_of,
    phase_name,
    phase_of,
    waiting_reason,
)
from trainwright.schema.jsonobject import Json

Rows = Sequence[tuple[str, ...]]


def describe(words: Sequence[str], target: Target, namespace: str) -> int:
    kind, names = kind_and_names(words)
    if kind == POD_KIND:
        raise Failure("describe is for TrainJobs and runtimes; see a pod with: trainwright get pod NAME -o yaml", 2)
    if not names:
        raise Failure(f"which one? List them with: trainwright get {kind.plural}{target.flag()}", 2)
    carry_out(_describe(target, kind, names, namespace))
    return 0


async def _describe(target: Target, kind: Kind, names: Sequence[str], namespace: str) -> None:
    page = _Page()
    async with target.client() as client:
        for number, name in enumerate(names):
            if number:
                page.line()
            if kind == TRAINJOBS:
                job = await _job(client, job_named(target, name, namespace), namespace)
                parts = await parts_of(client, job)
                page.job(parts, [event for event in await events_of(client, namespace) if parts.concerns(event)])
            else:
                await _describe_runtime(client, page, kind, name, namespace, local=target.is_local)


async def _job(client: Client, name: str, namespace: str) -> Json:
    try:
        found = await client.get(TRAIN_JOBS, name, namespace)
    except NotFound:
        raise await no_such_job(client, name, namespace) from None
    return {**found, "kind": TRAIN_JOBS.kind, "apiVersion": TRAIN_JOBS.api_version}


async def _describe_runtime(client: Client, page: _Page, kind: Kind, name: str, namespace: str, *, local: bool) -> None:
    known: list[str] = []
    for resource in kind.resources:
        home = namespace if resource.namespaced else None
        for item in (await client.list(resource, home)).items or ():
            known.append(name_of(item))
            if name_of(item) != name:
                continue
            reasons = None
            if local:
                from trainwright.cli.jobs.runnable import tier_of, why_not

                nodes = (await client.list(NODES)).items or []
                reasons = list(why_not(item, tier_of(nodes[0] if nodes else None)))
            jobs = (await client.list(TRAIN_JOBS, home)).items or []
            users = [job for job in jobs if _uses(job, name, resource.kind)]
            page.runtime({**item, "kind": resource.kind}, users, reasons)
            return
    raise Failure(f'there is no {kind.singular} named "{name}"{near(name, known)}')


def _uses(job: Json, name: str, kind: str) -> bool:
    ref = (job.get("spec") or {}).get("runtimeRef") or {}
    return ref.get("name") == name and (ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind) == kind


class _Page:
    """The page that is printed, section by section."""

    def __init__(self) -> None:
        self._terminal = Terminal()

    def line(self, text: str = "") -> None:
        self._terminal.say(text)

    def fields(self, **fields: str) -> None:
        """Lines `Name:  value`, without those that are empty."""
        width = max(map(len, fields)) + 2
        for name, value in fields.items():
            if value:
                self.line(f"{name.replace('_', ' ') + ':':{width}} {value}")

    def section(self, title: str, head: tuple[str, ...], rows: Rows) -> None:
        """A table, or `none`."""
        self.line()
        if not rows:
            self.line(f"{title}: none")
            return
        self.line(f"{title}:")
        self._terminal.table(
            tuple(f"  {cell}" if not at else cell for at, cell in enumerate(head)),
            [(f"  {row[0]}", *row[1:]) for row in rows],
        )

    def job(self, parts: Parts, events: Sequence[Json]) -> None:
        job, metadata = parts.job, parts.job["metadata"]
        spec, status = job.get("spec") or {}, job.get("status") or {}
        phase = phase_of(job, parts.jobset, parts.pods, time.time())
        ref = spec.get("runtimeRef") or {}
        nodes = (spec.get("trainer") or {}).get("numNodes")
        self.fields(
            Name=name_of(job),
            Namespace=metadata["namespace"],
            State=f"{phase.name}: {phase.sentence}",
            Runtime=f"{ref.get('name')} ({ref.get('kind') or CLUSTER_TRAINING_RUNTIMES.kind})",
            Nodes="" if nodes is None else str(nodes),
            Progress=progress_of(job),
            Run=(metadata.get("annotations") or {}).get(RUN) or "",
            Age=f"{age_of(job)} (created {metadata['creationTimestamp']})",
            Labels=_pairs(metadata.get("labels")),
            Command=_command(spec),
        )
        conditions = [
            (item["type"], item["status"], item.get("reason") or "", item.get("message") or "")
            for item in status.get("conditions") or ()
        ]
        self.section("Conditions", ("TYPE", "STATUS", "REASON", "MESSAGE"), conditions)
        self.section("Pods", ("RANKS", "NODE", "NAME", "PHASE", "AGE", "WHY"), _pod_rows(parts.pods))
        objects: Rows = [(obj["kind"], name_of(obj), age_of(obj)) for obj in (*parts.owned, *parts.jobs)]
        self.section("Objects", ("KIND", "NAME", "AGE"), objects)
        self.section("Events", HEAD, rows_of(events))

    def runtime(self, runtime: Json, users: Sequence[Json], reasons: list[str] | None) -> None:
        metadata, spec = runtime["metadata"], runtime.get("spec") or {}
        policy = spec.get("mlPolicy") or {}
        framework = next((key for key in policy if key != "numNodes"), "")
        self.fields(
            Name=name_of(runtime),
            Kind=runtime["kind"],
            Namespace=metadata.get("namespace") or "",
            Framework=(metadata.get("labels") or {}).get(FRAMEWORK) or "",
            Nodes=f"{policy.get('numNodes') or 1}, unless the TrainJob says otherwise",
            Policy=f"{framework} {_pairs(policy.get(framework))}".strip() if framework else "",
            Gang=", ".join(spec.get("podGroupPolicy") or ()),
            Age=age_of(runtime),
            Runs_here="" if reasons is None else "yes" if not reasons else f"no: {reasons[0]}",
            TrainJobs=", ".join(f"{job['metadata']['namespace']}/{name_of(job)}" for job in sorted(users, key=name_of)),
        )
        for reason in (reasons or [])[1:]:
            self.line(f"            and: {reason}")
        rows = [
            (job, str(container.get("name")), str(container.get("image") or ""), _words(container))
            for job, _, pod in pod_templates(runtime)
            for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ()))
        ]
        self.section("Containers", ("JOB", "CONTAINER", "IMAGE", "COMMAND"), rows)


def _pod_rows(pods: Sequence[Json]) -> Rows:
    """Pods in the order of their ranks, with why each waits or how it ended."""
    ended = {name_of(pod): how for pod, _, how in reversed(failed_containers(list(pods)))}

    def order(pod: Json) -> tuple[str, int, str]:
        labels = pod["metadata"].get("labels") or {}
        index = str(labels.get(COMPLETION_INDEX) or 0)
        return label_of(pod).rstrip("0123456789"), int(index) if index.isdecimal() else 0, name_of(pod)

    rows = []
    for pod in sorted(pods, key=order):
        said = waiting_reason(pod) or ended.get(name_of(pod)) or str((pod.get("status") or {}).get("message") or "")
        rows.append((_ranks(pod), label_of(pod), name_of(pod), phase_name(pod), age_of(pod), said))
    return rows


def _ranks(pod: Json) -> str:
    """The ranks that a pod runs, as far as they are known."""
    source = speaker(pod)
    if source.node is None or source.processes is None:
        return ""
    first = source.node * source.processes
    return str(first) if source.processes == 1 else f"{first}-{first + source.processes - 1}"


def _command(spec: Json) -> str:
    return _words(spec.get("trainer") or {})


def _words(container: Json) -> str:
    """A command on one line, the beginning of it where it is long."""
    text = " ".join(map(str, [*(container.get("command") or ()), *(container.get("args") or ())]))
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:99]}…"


def _pairs(values: Json | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (values or {}).items())
