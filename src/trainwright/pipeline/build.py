"""TrainJob + runtime + what exists → the objects to write.

The one function that `render`, `explain` and the reconciler share. Pure: the same inputs give
the same bytes. Objects come out in the order they must be written: what pods mount before the pods, the workload last.

Which of a plugin's objects are written is decided here, by the intention and by what exists:

    workload                    unless it runs: neither it nor the TrainJob is suspended
    repair=NEVER, and Secrets   unless the workload runs
    repair=MISSING              when it is missing, and while the TrainJob is suspended
    repair=CHANGED              always; who writes it compares, and leaves alone what is so already
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from trainwright.api.resources import CONFIG_MAPS, SECRETS, Resource
from trainwright.api.runtime import TrainingRuntime
from trainwright.api.trainjob import RuntimeRef, TrainJob
from trainwright.api.wellknown import RUNTIME_REVISION
from trainwright.pipeline.devices import DEVICES_ANNOTATION, devices_of
from trainwright.pipeline.errors import NameTaken, PluginFailed, RuntimeNotSupported, TemplateInvalid, TwoWorkloads
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.info import Info, make_info
from trainwright.pipeline.ownership import own
from trainwright.pipeline.plan import CreateOnce, Intention, KeyMaterial, ObjectName, Observed, Plan, Repair
from trainwright.pipeline.provenance import NO_TRACE, PLUGIN, TRAIN_JOB, Origin, Tracer
from trainwright.pipeline.workload import (
    CHILDREN_ANNOTATION,
    GENERATION_ANNOTATION,
    PLUGINS_ANNOTATION,
    WORKLOAD_ANNOTATION,
)

_RUNTIMES = ("TrainingRuntime.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org")


def runtime_kind(ref: RuntimeRef) -> str:
    """The kind of the runtime a TrainJob names; raises `RuntimeNotSupported` for any other kind."""
    key = f"{ref.kind}.{ref.api_group}" if ref.api_group else ref.kind
    if key not in _RUNTIMES:
        raise RuntimeNotSupported(key)
    return ref.kind


def build(
    job: TrainJob,
    runtime: TrainingRuntime,
    observed: Observed,
    framework: Framework,
    keys: KeyMaterial,
    trace: Tracer = NO_TRACE,
) -> Plan:
    """The plan for one TrainJob; raises `PipelineError`."""
    name = job.metadata.name
    info = make_info(job, runtime, observed, keys, trace)
    if info.unmatched:
        raise TemplateInvalid("; ".join(info.unmatched))
    framework.prepare(info)
    built = sorted(((plugin, _settled(it)) for plugin, it in framework.build(info)), key=lambda item: _order(item[1]))
    _check(built, info, framework)
    for _, intention in built:
        intention.object["metadata"]["namespace"] = job.metadata.namespace
    trace.mark(Origin(TRAIN_JOB, name, "metadata.namespace"))
    for _, intention in built:
        own(intention.object, job)
    trace.mark(Origin(TRAIN_JOB, name, "metadata.name"))
    repaired: dict[ObjectName, Repair] = {
        ObjectName.of(intention.object): intention.repair
        for _, intention in built
        if not intention.workload and intention.repair is not Repair.NEVER
    }
    for plugin, intention in built:
        if intention.workload:
            _sign(intention, plugin, info, framework, repaired)
            trace.mark(Origin(PLUGIN, plugin, "build"))
    due = [(plugin, intention) for plugin, intention in built if _is_due(intention, info)]
    for _, intention in due:
        if ObjectName.of(intention.object) in observed.taken:
            raise NameTaken(intention.object["kind"], intention.object["metadata"]["name"])
    return Plan(
        objects=[intention for _, intention in due],
        built_by=[plugin for plugin, _ in due],
        warnings=info.warnings,
        repaired=repaired,
        needs={
            (intention.object["apiVersion"], intention.object["kind"]): plugin
            for plugin, intention in built
            if not _is_secret(intention)
        },
        plugins_changed=_plugins_changed(info, framework),
    )


def _settled(intention: Intention) -> Intention:
    """A Secret is created when a workload starts, and never read, applied or repaired."""
    if _is_secret(intention):
        return CreateOnce(intention.object, Repair.NEVER)
    return intention


def _order(intention: Intention) -> int:
    if intention.workload:
        return 3
    if _is_of(intention, CONFIG_MAPS):
        return 0
    return 1 if _is_secret(intention) else 2


def _check(built: Iterable[tuple[str, Intention]], info: Info, framework: Framework) -> None:
    """Only kinds that a plugin names, and one workload at most, of the TrainJob's name; the one there is, if any."""
    workloads: list[tuple[str, str]] = []
    for plugin, intention in built:
        api_version, kind, name = ObjectName.of(intention.object)
        named = [it for it in framework.watches if it.watch.is_of(api_version, kind)]
        if not named and not _is_secret(intention):
            _refuse(plugin, framework, f"it builds a {kind} of {api_version}, which no plugin names in watches()")
        if intention.workload:
            workloads.append((plugin, kind))
            if not any(it.plugin == plugin and it.watch.workload for it in named):
                _refuse(plugin, framework, f"its watches() do not say that a {kind} of {api_version} is a workload")
            if name != info.name:
                _refuse(plugin, framework, f'the workload {kind} "{name}" must have the name of the TrainJob')
    if len(workloads) > 1:
        raise TwoWorkloads(workloads[0][0], workloads[1][0])
    present = info.observed.workload
    if present is not None and not info.workload_is_running:
        kind = present.resource.kind
        if workloads != [(present.plugin, kind)]:
            raise PluginFailed(present.plugin, "build", f'it made {kind} "{info.name}" and does not build it any more')


def _refuse(plugin: str, framework: Framework, why: str) -> None:
    raise framework.unwatchable.get(plugin) or PluginFailed(plugin, "build", why)


def _sign(
    intention: Intention, plugin: str, info: Info, framework: Framework, children: Collection[ObjectName]
) -> None:
    """Write on the workload who built it, from what, with which plugins from outside, and what belongs beside it: an
    operator that starts anew knows by these that there is nothing to do.

    Suspending a workload leaves the digest as it is: it stands for the plugins of the last start.
    """
    metadata, observed = intention.object["metadata"], info.observed
    annotations = {**(metadata.get("annotations") or {}), WORKLOAD_ANNOTATION: plugin}
    if observed.runtime_revision:
        annotations[RUNTIME_REVISION] = observed.runtime_revision
    digest: str | None = framework.digest
    if observed.workload is not None and info.job.is_suspended:
        digest = observed.workload.metadata.annotation(PLUGINS_ANNOTATION)
    if digest:
        annotations[PLUGINS_ANNOTATION] = digest
    if info.job.metadata.generation:
        annotations[GENERATION_ANNOTATION] = str(info.job.metadata.generation)
    if children:
        annotations[CHILDREN_ANNOTATION] = ",".join(f"{child.kind}/{child.name}" for child in children)
    if devices := devices_of(info):
        annotations[DEVICES_ANNOTATION] = devices
    metadata["annotations"] = annotations


def _plugins_changed(info: Info, framework: Framework) -> bool:
    workload = info.observed.workload
    if workload is None or info.workload_is_running or info.job.is_suspended:
        return False  # nothing is resumed
    metadata = workload.metadata
    if metadata.annotation(WORKLOAD_ANNOTATION) is None:
        return False  # made by Kubeflow Trainer, or by a release that wrote no digest
    return (metadata.annotation(PLUGINS_ANNOTATION) or "") != framework.digest


def _is_due(intention: Intention, info: Info) -> bool:
    """Whether the object is written now; the table at the top of this file."""
    if intention.workload or intention.repair is Repair.NEVER:
        return not info.workload_is_running
    if intention.repair is Repair.MISSING:
        return info.job.is_suspended or ObjectName.of(intention.object) not in info.observed.children
    return True


def _is_secret(intention: Intention) -> bool:
    return _is_of(intention, SECRETS)


def _is_of(intention: Intention, resource: Resource) -> bool:
    return bool((intention.object["apiVersion"], intention.object["kind"]) == (resource.api_version, resource.kind))
