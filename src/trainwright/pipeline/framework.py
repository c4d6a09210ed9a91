"""The eight extension points, and what a plugin must have to take part in each.

A plugin is any object with a `name` and the methods of the extension points it cares about; there is nothing to
inherit. The framework sorts plugins into phases by `isinstance` once, keeping their order, and walks the phases for
every build:

    enforce_ml_policy → enforce_pod_group_policy → enforce_pod_spec → sync_template → build

Three run apart from a build: `validate` at admission, on a template that no plugin has touched; `status` whenever the
workload that the plugin built has changed; `watches` once, to name the kinds that the plugin's objects live in. All
are pure: what a plugin needs to know is in its arguments, what it decides goes into `Info` or comes back. A plugin
that raises ends this job's pass with its name and phase; one that raises in `watches` is kept in
`Framework.unwatchable`, and concerns only the jobs that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from trainwright.api.resources import SECRETS
from trainwright.api.trainjob import COMPLETE, FAILED, TrainJob
from trainwright.pipeline.elasticity import Nodes, Resize
from trainwright.pipeline.errors import PipelineError, PluginFailed
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply, CreateOnce, Intention
from trainwright.pipeline.provenance import NO_TRACE, PLUGIN, Origin
from trainwright.pipeline.workload import Watch, WorkloadStatus
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json


class Plugin(Protocol):
    """What every plugin has."""

    name: str


@runtime_checkable
class EnforcesMLPolicy(Protocol):
    """Prepares the template for a framework: counts, variables, ports, command lines."""

    name: str

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None: ...


@runtime_checkable
class EnforcesPodGroupPolicy(Protocol):
    """Prepares the template for a gang scheduler."""

    name: str

    def enforce_pod_group_policy(self, info: Info, job: TrainJob) -> None: ...


@runtime_checkable
class EnforcesPodSpec(Protocol):
    """Adds what pods need whatever their framework is."""

    name: str

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None: ...


@runtime_checkable
class SyncsTemplate(Protocol):
    """Derives what depends on the final counts, such as the pods' host names."""

    name: str

    def sync_template(self, info: Info, job: TrainJob) -> None: ...


@runtime_checkable
class BuildsObjects(Protocol):
    """Yields the objects it wants there to be; which of them are written now is for the build to decide.

    Owner reference, namespace and ownership labels are added to each. A plugin that builds the workload of a TrainJob
    in place of the JobSet plugin says so before, by `info.claim_workload(self.name)` in an earlier phase.
    """

    name: str

    def build(self, info: Info, job: TrainJob) -> Iterable[Intention]: ...


@runtime_checkable
class Validates(Protocol):
    """Yields what is wrong with a TrainJob, and warnings as plain text; `old` is the TrainJob before an update."""

    name: str

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]: ...


@runtime_checkable
class ReportsStatus(Protocol):
    """Says what became of a workload that it built; `workload` is decoded as its `Watch` says."""

    name: str

    def status(self, job: TrainJob, workload: Any) -> WorkloadStatus: ...


@runtime_checkable
class NamesWatches(Protocol):
    """Names the kinds that its objects live in. What no plugin names is neither watched nor written."""

    name: str

    def watches(self) -> Iterable[Watch]: ...


@runtime_checkable
class Scales(Protocol):
    """Beside `status`: counts and changes the nodes of a workload that it built for an elastic job.

    `part` and `parts` are decoded as the plugin's `Watch` with `part_of` says, `workload` is the whole object as JSON.
    The ways that `resize` yields are tried in order, until the API server accepts one.
    """

    name: str

    def nodes(self, part: Any) -> Nodes: ...

    def resize(self, workload: Json, parts: Sequence[Any], nodes: int) -> Iterable[Resize]: ...


EXTENSION_POINTS: Mapping[str, type] = {
    "enforce_ml_policy": EnforcesMLPolicy,
    "enforce_pod_group_policy": EnforcesPodGroupPolicy,
    "enforce_pod_spec": EnforcesPodSpec,
    "sync_template": SyncsTemplate,
    "build": BuildsObjects,
    "validate": Validates,
    "status": ReportsStatus,
    "watches": NamesWatches,
}
"""By the name of the method."""


class NamedWatch(NamedTuple):
    """A watch, and the plugin that named it."""

    plugin: str
    watch: Watch


class Framework:
    """An ordered set of plugins, sorted into phases.

    `outside` names the plugins that do not ship with Trainwright, and `digest` stands for what they are made of; it
    is empty when there are none. Workloads carry it, so that a resumed TrainJob can tell that they changed.
    """

    def __init__(self, plugins: Sequence[Plugin], *, digest: str = "", outside: Iterable[str] = ()) -> None:
        self.plugins = tuple(plugins)
        self.digest = digest
        self.outside = frozenset(outside)
        self._ml_policy = [p for p in plugins if isinstance(p, EnforcesMLPolicy)]
        self._pod_group_policy = [p for p in plugins if isinstance(p, EnforcesPodGroupPolicy)]
        self._pod_spec = [p for p in plugins if isinstance(p, EnforcesPodSpec)]
        self._sync = [p for p in plugins if isinstance(p, SyncsTemplate)]
        self._build = [p for p in plugins if isinstance(p, BuildsObjects)]
        self._validate = [p for p in plugins if isinstance(p, Validates)]
        self._status = {p.name: p for p in plugins if isinstance(p, ReportsStatus)}
        self._scales = {p.name: p for p in plugins if isinstance(p, Scales)}
        self.watches: tuple[NamedWatch, ...] = ()
        self.unwatchable: dict[str, PluginFailed] = {}
        """Plugins whose `watches` failed."""
        for plugin in plugins:
            if isinstance(plugin, NamesWatches):
                self._name_watches(plugin)

    def _name_watches(self, plugin: NamesWatches) -> None:
        try:
            watches = list(plugin.watches())
            for watch in watches:
                _check(watch, reports=plugin.name in self._status)
        except Exception as error:  # noqa: BLE001 - the call into a plugin: the other plugins go on
            self.unwatchable[plugin.name] = PluginFailed(plugin.name, "watches", error)
        else:
            self.watches += tuple(NamedWatch(plugin.name, watch) for watch in watches)

    def prepare(self, info: Info) -> None:
        """Every phase that changes the template, in order."""
        for ml in self._ml_policy:
            _call(ml, "enforce_ml_policy", info, ml.enforce_ml_policy, info, info.job)
        for gang in self._pod_group_policy:
            _call(gang, "enforce_pod_group_policy", info, gang.enforce_pod_group_policy, info, info.job)
        for pod in self._pod_spec:
            _call(pod, "enforce_pod_spec", info, pod.enforce_pod_spec, info, info.job)
        for sync in self._sync:
            _call(sync, "sync_template", info, sync.sync_template, info, info.job)

    def build(self, info: Info) -> Iterator[tuple[str, Intention]]:
        """The objects of every plugin, each with the name of the plugin."""
        for plugin in self._build:
            for intention in _call(plugin, "build", info, plugin.build, info, info.job):
                if not _is_object(intention):
                    raise PluginFailed(plugin.name, "build", f"it gave {intention!r}, which is no object to write")
                yield plugin.name, intention

    def validate(self, info: Info, old: TrainJob | None) -> Iterator[FieldError | str]:
        """What every plugin has to say, in the plugins' order."""
        for plugin in self._validate:
            yield from _call(plugin, "validate", info, plugin.validate, info, info.job, old)

    def reports(self, plugin: str) -> bool:
        """Whether a plugin of this name can say what became of a workload."""
        return plugin in self._status

    def report(self, plugin: str, job: TrainJob, workload: Any) -> WorkloadStatus:
        """What became of a workload, in the words of the plugin that built it."""
        try:
            status = self._status[plugin].status(job, workload)
        except Exception as error:  # the call into a plugin
            raise PluginFailed(plugin, "status", error) from error
        if not isinstance(status, WorkloadStatus):
            raise PluginFailed(plugin, "status", f"it gave {status!r}, which is no WorkloadStatus")
        if status.end is not None and not (status.end.type in (COMPLETE, FAILED) and status.end.is_true):
            raise PluginFailed(plugin, "status", f"an end is a true {COMPLETE} or {FAILED}, not {status.end.type}")
        return status

    def count(self, plugin: str, parts: Iterable[Any]) -> list[Nodes]:
        """The nodes of each part of an elastic workload that this plugin built."""
        scales = self._scales.get(plugin)
        if scales is None:
            return []
        try:
            return [scales.nodes(part) for part in parts]
        except Exception as error:  # the call into a plugin
            raise PluginFailed(plugin, "nodes", error) from error

    def resize(self, plugin: str, workload: Json, parts: Sequence[Any], nodes: int) -> list[Resize]:
        """The ways to give an elastic workload so many nodes, the best first."""
        scales = self._scales.get(plugin)
        try:
            return list(scales.resize(workload, parts, nodes)) if scales is not None else []
        except Exception as error:  # the call into a plugin
            raise PluginFailed(plugin, "resize", error) from error


def _is_object(intention: Any) -> bool:
    if not isinstance(intention, (Apply, CreateOnce)) or not isinstance(intention.object, dict):
        return False
    metadata = intention.object.get("metadata")
    names = (intention.object.get("apiVersion"), intention.object.get("kind"))
    return isinstance(metadata, dict) and all(isinstance(it, str) and it for it in (*names, metadata.get("name")))


def _check(watch: Watch, *, reports: bool) -> None:
    if not isinstance(watch, Watch):
        raise TypeError(f"{watch!r} is no Watch")
    if watch.resource.group_resource == SECRETS.group_resource:
        raise ValueError("Secrets are created and never read, so they cannot be watched")
    if not watch.resource.namespaced:
        raise ValueError(f"{watch.resource.group_resource} has no namespace: a TrainJob cannot own objects of it")
    if "metadata" not in getattr(watch.decode, "__struct_fields__", ()):
        raise TypeError(f"{watch.decode!r} is no msgspec Struct with metadata")
    msgspec.json.Decoder(
        watch.decode
    )  # raises where a field's type cannot be resolved: now, and not at the first event
    if watch.workload and not reports:
        raise ValueError(f"{watch.resource.kind} can be a workload, and the plugin has no method status")


T = TypeVar("T")


def _call(
    plugin: Plugin, phase: str, info: Info, method: Callable[..., Iterable[T] | None], *arguments: Any
) -> list[T]:
    """Call into a plugin; what it yields is collected here, so that its errors surface here too."""
    try:
        result = list(method(*arguments) or ())
    except PipelineError:
        raise
    except Exception as error:  # the call into a plugin: its fault must not look like ours
        raise PluginFailed(plugin.name, phase, error) from error
    if info.trace is not NO_TRACE:
        info.trace.mark(Origin(PLUGIN, plugin.name, phase))
    return result
