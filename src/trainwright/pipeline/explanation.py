"""Every field of the rendered objects with its origin and the values it replaced: the core of `explain` and the page.

In: a plan that was built with a trace, and where an origin stands (a file and line, or nothing). Out: one `Explained`
for each object. Every field has exactly one origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from trainwright.pipeline.plan import Plan
from trainwright.pipeline.provenance import (
    DEFAULT,
    OVERRIDE,
    PATCH,
    PLUGIN,
    RUNTIME,
    TRAIN_JOB,
    Origin,
    Setting,
    Trace,
    leaves,
    scalars,
)
from trainwright.pipeline.sparse import sparse
from trainwright.schema.jsonobject import Json


class PlacedOrigin(NamedTuple):
    """An origin, with its file and line if it has them."""

    layer: str
    name: str
    field: str
    file: str
    line: int


class Field(NamedTuple):
    """One scalar of a rendered object."""

    path: str
    identity: str
    """The path with the names of list items in place of their positions."""
    value: Any
    origin: PlacedOrigin
    lost: list[tuple[Any, PlacedOrigin]]


def describe(source: PlacedOrigin) -> str:
    """`TrainJob spec.trainer.image (job.yaml:12)`."""
    place = f" ({source.file}:{source.line})" if source.file else ""
    if source.layer == RUNTIME:
        return f"runtime {source.name} {source.file}:{source.line}" if source.file else f"runtime {source.name}"
    if source.layer == TRAIN_JOB:
        return f"TrainJob {source.field}{place}"
    if source.layer == OVERRIDE:
        return f"override {source.field}{place}"
    if source.layer == PATCH:
        return f"patch by {source.name}{place}"
    if source.layer == PLUGIN:
        return f"plugin {source.name} ({source.field})"
    if source.layer == DEFAULT:
        return f"default of {source.field or source.name}" if source.name or source.field else "default"
    return source.layer


class Explained(NamedTuple):
    """One rendered object."""

    title: str
    fields: list[Field]
    removed: list[Field]
    """A field that one layer set and a later one removed; `origin` is the later one."""


Place = Callable[[Origin, str], PlacedOrigin]
"""Where an origin stands; the text is the path of an item in a list that was set as a whole."""


def nowhere(origin: Origin, inner: str) -> PlacedOrigin:
    """The place of what comes from no file."""
    return PlacedOrigin(*origin, "", 0)


def explained(plan: Plan, trace: Trace, place: Place, job: str) -> Iterator[Explained]:
    """The objects of a plan; `job` is the TrainJob's name."""
    for intention, plugin in zip(plan.objects, plan.built_by, strict=True):
        obj = intention.object
        title = f"{obj['kind']}/{obj['metadata']['name']}"
        if trace.follows(obj):
            yield Explained(title, list(_traced(obj, trace, place)), list(_removed(trace, place)))
        else:
            yield Explained(title, list(_built(obj, plugin, place, job)), [])


def trace_defaults(trace: Trace, runtime: Json, admitted: Json) -> None:
    """Tells the fields that the runtime's author wrote from those that the schema defaulted."""
    written, defaulted = _template(runtime), _template(admitted)
    trace.follow(written)
    trace.mark(Origin(RUNTIME, str(runtime["metadata"]["name"]), "spec.template"), written)
    trace.follow(defaulted)
    trace.mark(Origin(DEFAULT, str(runtime["kind"])))


def _template(runtime: Json) -> Json:
    template = (runtime.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    return {
        "metadata": {"labels": metadata.get("labels") or {}, "annotations": metadata.get("annotations") or {}},
        "spec": sparse(template.get("spec") or {}),
    }


def _traced(obj: Json, trace: Trace, place: Place) -> Iterator[Field]:
    for path, leaf in leaves(obj):
        *lost, last = trace.settings(path)
        identity = _identity(path)
        for spot, value in scalars(leaf.value, leaf.place):
            inner = spot[len(leaf.place) :]
            yield Field(spot, identity + inner, value, place(last.origin, inner), _lost(lost, place))


def _lost(settings: Sequence[Setting], place: Place) -> list[tuple[Any, PlacedOrigin]]:
    return [(setting.value, place(setting.origin, "")) for setting in settings if setting.value not in (None, {}, [])]


def _removed(trace: Trace, place: Place) -> Iterator[Field]:
    for path, (*before, last) in trace.removed():
        if values := _lost(before, place):
            identity = _identity(path)
            yield Field(identity, identity, None, place(last.origin, ""), values)


def _built(obj: Json, plugin: str, place: Place, job: str) -> Iterator[Field]:
    """An object made by one plugin; what makes it the TrainJob's comes from there."""
    for path, leaf in leaves(obj):
        origin = Origin(PLUGIN, plugin, "build")
        if path[0] == "metadata" and path[1] != "name":  # what makes it the TrainJob's
            field = "metadata.namespace" if path[1] == "namespace" else "metadata.name"
            origin = Origin(TRAIN_JOB, job, field)
        for spot, value in scalars(leaf.value, leaf.place):
            yield Field(spot, _identity(path) + spot[len(leaf.place) :], value, place(origin, ""), [])


def _identity(path: Sequence[str]) -> str:
    text = ""
    for step in path:
        bracketed = step.startswith("[")
        plain = not bracketed and "." not in step and "/" not in step
        text += step if bracketed else f".{step}" if plain and text else step if plain else f"[{step}]"
    return text
