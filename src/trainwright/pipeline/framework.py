"""The phases of a build, and what a plugin must have to take part in each.

A plugin is any object with a `name` and the methods of the extension points it cares about; there is nothing to
inherit. The framework sorts plugins into phases by `isinstance` once, keeping their order, and walks the phases for
every build:

    enforce_ml_policy → enforce_pod_group_policy → enforce_pod_spec → sync_template → build

`validate` runs apart from these, on a template that no plugin has touched. All phases are pure: what a plugin needs
to know is in `Info`, what it decides goes into `Info` or comes back. A plugin that raises ends this job's build with
its name and phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.errors import PipelineError, PluginFailed
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Intention
from trainwright.pipeline.provenance import PLUGIN, Origin
from trainwright.schema.errors import FieldError


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
    """Yields objects to write. Owner reference, namespace and ownership labels are added to each."""

    name: str

    def build(self, info: Info, job: TrainJob) -> Iterable[Intention]: ...


@runtime_checkable
class Validates(Protocol):
    """Yields what is wrong with a TrainJob, and warnings as plain text; `old` is the TrainJob before an update."""

    name: str

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]: ...


EXTENSION_POINTS = (
    EnforcesMLPolicy,
    EnforcesPodGroupPolicy,
    EnforcesPodSpec,
    SyncsTemplate,
    BuildsObjects,
    Validates,
)


class Framework:
    """An ordered set of plugins, sorted into phases."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self._ml_policy = [p for p in plugins if isinstance(p, EnforcesMLPolicy)]
        self._pod_group_policy = [p for p in plugins if isinstance(p, EnforcesPodGroupPolicy)]
        self._pod_spec = [p for p in plugins if isinstance(p, EnforcesPodSpec)]
        self._sync = [p for p in plugins if isinstance(p, SyncsTemplate)]
        self._build = [p for p in plugins if isinstance(p, BuildsObjects)]
        self._validate = [p for p in plugins if isinstance(p, Validates)]

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
                yield plugin.name, intention

    def validate(self, info: Info, old: TrainJob | None) -> Iterator[FieldError | str]:
        """What every plugin has to say, in the plugins' order."""
        for plugin in self._validate:
            yield from _call(plugin, "validate", info, plugin.validate, info, info.job, old)


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
    info.trace.mark(Origin(PLUGIN, plugin.name, phase))
    return result
