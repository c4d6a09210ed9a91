"""Generates our CustomResourceDefinitions from the types.

In: the types of trainjob.py and runtime.py with their marks, and the CRD of JobSet, which has the schemas of jobs and
pods. Out: CRDs as JSON, and the schemas that `schema.py` loads. No I/O: `tools/generate.py` reads and writes the files.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from trainwright.api import patches
from trainwright.api.markers import IMMUTABLE, Mark, rule
from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.api.runtime import TrainingRuntime
from trainwright.api.trainjob import Trainer, TrainJob
from trainwright.schema import kubernetes
from trainwright.schema.jsonobject import Json

_NAME_RULES: Final = [
    rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name must match RFC 1035 DNS label format",
    ),
    rule("size(self.metadata.name) <= 63", "metadata.name must be no more than 63 characters"),
]
_HAS_TRAINERS: Final = "has(self.spec) && has(oldSelf.spec) && has(self.spec.trainer) && has(oldSelf.spec.trainer)"
_IS_ELASTIC: Final = "has(oldSelf.status) && has(oldSelf.status.elastic)"
_HAS_ENDED: Final = "has(oldSelf.status.state) && oldSelf.status.state in ['Complete', 'Failed']"
LIMITS: Final = (
    "an elastic TrainJob has no fewer nodes than status.elastic.minNodes and no more than status.elastic.maxNodes, as"
    " elasticPolicy of its runtime says"
)  # without the numbers: the API server takes text that is made of numbers for too costly
_NODES: Final = "self.spec.trainer.numNodes"
_MIN, _MAX = "oldSelf.status.elastic.minNodes", "oldSelf.status.elastic.maxNodes"
_SCALE: Final = {
    "specReplicasPath": ".spec.trainer.numNodes",
    "statusReplicasPath": ".status.elastic.nodes",
    "labelSelectorPath": ".status.elastic.selector",
}
_TRAIN_JOB_COLUMNS: Final = [
    {"name": "State", "type": "string", "jsonPath": ".status.state"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Message", "type": "string", "jsonPath": ".status.message"},
]
_POD_PATH: Final = ("replicatedJobs", "[]", "template", "spec", "template", "spec")


class Fragments:
    """Finds parts of the JobSet CRD's schema by the names that marks use: `jobset`, `volumes`, `containers[].env`."""

    def __init__(self, jobset_crd: Json) -> None:
        schema = jobset_crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self.jobset: Json = without_descriptions(schema["properties"]["spec"])
        self.pod = _descend(self.jobset, _POD_PATH)

    def find(self, name: str) -> Json:
        if name == "jobset":
            return self.jobset
        if name.startswith("kubernetes:"):
            # A list of a built-in definition, with its references resolved.
            return {"type": "array", "items": _inlined(kubernetes.definition(name.removeprefix("kubernetes:")))}
        return _descend(self.pod, tuple(name.replace("[]", ".[]").split(".")))


def _descend(schema: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def _inlined(schema: Json) -> Json:
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inlined(kubernetes.definition(schema["$ref"])), **rest}
    out = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-patch")}
    if out.get("x-kubernetes-int-or-string"):
        out = {"anyOf": [{"type": "integer"}, {"type": "string"}], **out}
    if "properties" in out:
        out["properties"] = {name: _inlined(field) for name, field in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _inlined(out[key])
    return out


def without_descriptions(schema: Any, *, fields: bool = False) -> Any:
    """A schema without its descriptions. A field that is itself called description stays."""
    if isinstance(schema, dict):
        return {
            key: without_descriptions(value, fields=key == "properties")
            for key, value in schema.items()
            if fields or key != "description"
        }
    if isinstance(schema, list):
        return [without_descriptions(item) for item in schema]
    return schema


class _Generator:
    """Builds schemas from types. Use one instance per run."""

    def __init__(self, fragments: Fragments) -> None:
        self.fragments = fragments

    def struct(self, shape: type[msgspec.Struct]) -> Json:
        hints = get_type_hints(shape, include_extras=True)
        properties: Json = {}
        required: list[str] = []
        for field in msgspec.structs.fields(shape):
            kind, mark = _unwrap(hints[field.name])
            properties[field.encode_name] = self.field(kind, mark)
            if field.required or mark.required:
                required.append(field.encode_name)
        schema: Json = {"type": "object"}
        if properties:
            schema["properties"] = dict(sorted(properties.items()))
        if required:
            schema["required"] = sorted(required)
        return schema

    def field(self, kind: Any, mark: Mark) -> Json:
        if mark.fragment:
            schema = dict(self.fragments.find(mark.fragment))
        elif mark.shape:
            schema = self.struct(getattr(patches, mark.shape))
            if get_origin(kind) is list:
                schema = {"type": "array", "items": schema}
        else:
            schema = self.type(kind)
        if mark.items:
            schema["items"] = {**schema["items"], **mark.items}
        # A format of "" removes the default one.
        schema.update(mark.keywords)
        if not schema.get("format", "x"):
            del schema["format"]
        if mark.description:
            schema = {"description": mark.description, **schema}
        return schema

    def type(self, kind: Any) -> Json:
        if kind is str:
            return {"type": "string"}
        if kind is bool:
            return {"type": "boolean"}
        if kind is int:
            return {"type": "integer", "format": "int32"}
        if get_origin(kind) is list:
            return {"type": "array", "items": self.type(get_args(kind)[0])}
        if kind == dict[str, str]:
            return {"type": "object", "additionalProperties": {"type": "string"}}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind)
        if _is_union(kind) and set(get_args(kind)) == {int, str}:
            return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        raise TypeError(f"no schema for the type {kind}")


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _unwrap(hint: Any) -> tuple[Any, Mark]:
    """The type without its mark and without None, and the mark."""
    mark = Mark("", {})
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        mark = next((extra for extra in extras if isinstance(extra, Mark)), mark)
    if _is_union(hint):
        members = tuple(member for member in get_args(hint) if member is not type(None))
        hint = members[0] if len(members) == 1 else Union[members]  # noqa: UP007 - the members are only known here
    return hint, mark


def _root(generator: _Generator, shape: type[msgspec.Struct], description: str) -> Json:
    hints = get_type_hints(shape, include_extras=True)
    properties: Json = {
        "apiVersion": {"description": "Version of the API this object is written in.", "type": "string"},
        "kind": {"description": "Kind of the object.", "type": "string"},
        "metadata": {"type": "object"},
    }
    for name in ("spec", "status"):
        if name in hints:
            properties[name] = generator.field(*_unwrap(hints[name]))
    return {"description": description, "type": "object", "properties": properties}


def _crd(resource: Resource, schema: Json, version: Json) -> Json:
    names = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.group_resource},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


def _same(field: str) -> str:
    new, old = f"self.spec.trainer.{field}", f"oldSelf.spec.trainer.{field}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


def _trainer_rules() -> list[Json]:
    """The trainer is immutable; of an elastic job that trains, the number of nodes may change within its limits."""
    others = [field.encode_name for field in msgspec.structs.fields(Trainer) if field.name != "num_nodes"]
    same = " && ".join(_same(name) for name in sorted(others))
    immutable = (
        f"!({_HAS_TRAINERS}) || self.spec.trainer == oldSelf.spec.trainer || "
        f"({_IS_ELASTIC} && !({_HAS_ENDED}) && {same})"
    )
    limits = (
        f"!({_IS_ELASTIC} && has(self.spec) && has(self.spec.trainer) && has({_NODES})) || "
        f"({_HAS_TRAINERS} && has(oldSelf.spec.trainer.numNodes) && {_NODES} == oldSelf.spec.trainer.numNodes) || "
        f"({_NODES} >= {_MIN} && {_NODES} <= {_MAX})"
    )
    return [
        {**IMMUTABLE, "rule": immutable, "fieldPath": ".spec.trainer"},
        {**rule(limits, LIMITS), "fieldPath": ".spec.trainer.numNodes"},
    ]


def train_job_schema(fragments: Fragments) -> Json:
    schema = _root(
        _Generator(fragments), TrainJob, "A training job: what to train, with which runtime, on how many nodes."
    )
    return {**schema, "x-kubernetes-validations": [*_NAME_RULES, *_trainer_rules()]}


def runtime_schema(fragments: Fragments, description: str) -> Json:
    return _root(_Generator(fragments), TrainingRuntime, description)


def build(jobset_crd: Json) -> list[Json]:
    """Our three CRDs, given that of JobSet."""
    fragments = Fragments(jobset_crd)
    return [
        _crd(
            TRAIN_JOBS,
            train_job_schema(fragments),
            {"additionalPrinterColumns": _TRAIN_JOB_COLUMNS, "subresources": {"status": {}, "scale": _SCALE}},
        ),
        _crd(TRAINING_RUNTIMES, runtime_schema(fragments, "A template for TrainJobs of its namespace."), {}),
        _crd(CLUSTER_TRAINING_RUNTIMES, runtime_schema(fragments, "A template for TrainJobs of every namespace."), {}),
    ]


def bare_schema(crd: Json) -> Json:
    """The schema of a CRD's only version, without descriptions."""
    bare: Json = without_descriptions(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return bare
