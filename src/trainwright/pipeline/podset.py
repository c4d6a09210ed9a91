"""Pods of one replicatedJob, seen through the JobSet template.

A `PodSet` and its `Container`s are views: they hold no copy, every change goes straight into the template they were
made of. So the template is the one truth at any moment, and provenance can be read off it between two steps.

Lists are changed by *upsert*: an item that matches is replaced where it stands, any other is appended. What matches
what is written beside each method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trainwright.api import wellknown
from trainwright.schema.jsonobject import Json

ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
DATASET_INITIALIZER = "dataset-initializer"
MODEL_INITIALIZER = "model-initializer"
INITIALIZERS = (DATASET_INITIALIZER, MODEL_INITIALIZER)

NODE = "node"
LAUNCHER = "launcher"


class Container:
    """One container of a pod template."""

    __slots__ = ("json",)

    def __init__(self, json: Json) -> None:
        self.json = json

    @property
    def name(self) -> str:
        return str(self.json.get("name", ""))

    @property
    def command(self) -> list[str]:
        return self.json.get("command") or []

    @property
    def env(self) -> list[Json]:
        return self.json.get("env") or []

    @property
    def volume_mounts(self) -> list[Json]:
        return self.json.get("volumeMounts") or []

    @property
    def limits(self) -> Json:
        return (self.json.get("resources") or {}).get("limits") or {}

    @property
    def requests(self) -> Json:
        return (self.json.get("resources") or {}).get("requests") or {}

    def set_env(self, *variables: Json) -> None:
        """Upsert by name; the whole entry is replaced, so a value never stands beside a valueFrom."""
        _upsert(self.json, "env", variables, lambda item: item.get("name"))

    def set_ports(self, *ports: Json) -> None:
        """Upsert by port and protocol: two ports without a name are two ports."""
        _upsert(self.json, "ports", ports, lambda item: (item.get("containerPort"), item.get("protocol") or "TCP"))

    def set_volume_mounts(self, *mounts: Json) -> None:
        """Upsert by mount path: one place in the container's file system holds one volume."""
        _upsert(self.json, "volumeMounts", mounts, lambda item: item.get("mountPath"))


class PodSet:
    """The pods of one replicatedJob."""

    __slots__ = ("endpoints", "json", "least", "local", "name", "role")

    def __init__(self, json: Json, *, local: bool = False) -> None:
        self.json = json
        self.local = local
        """Its pods are processes of one machine."""
        self.name = str(json.get("name", ""))
        self.least: int | None = None
        """How many pods are enough to begin with; None when all of them are needed."""
        labels = (json["template"].get("metadata") or {}).get("labels") or {}
        self.role = str(labels.get(ANCESTOR_LABEL, ""))
        """What this job is for, by the label on its Job template; empty for none of the known roles."""
        self.endpoints: Iterable[str] = ()
        """Host names of the pods, in order; filled by the sync phase, and lazy: a hundred thousand nodes cost nothing
        until read.
        """

    @property
    def replicas(self) -> int:
        return int(self.json.get("replicas", 1))

    @property
    def job_spec(self) -> Json:
        return _member(self.json["template"], "spec")

    @property
    def pod_template(self) -> Json:
        return _member(self.job_spec, "template")

    @property
    def pod_spec(self) -> Json:
        return _member(self.pod_template, "spec")

    @property
    def count(self) -> int:
        """How many pods each replica of this job has: its parallelism, and its completions with it."""
        parallelism = self.job_spec.get("parallelism")
        return 1 if parallelism is None else int(parallelism)

    @count.setter
    def count(self, count: int) -> None:
        self.job_spec["parallelism"] = self.job_spec["completions"] = count

    @property
    def needed(self) -> int:
        """How many pods must start together."""
        return self.count if self.least is None else self.least

    @property
    def containers(self) -> Iterator[Container]:
        return map(Container, self.pod_spec.get("containers") or [])

    @property
    def init_containers(self) -> Iterator[Container]:
        return map(Container, self.pod_spec.get("initContainers") or [])

    def container(self, name: str) -> Container | None:
        """The regular container of this name."""
        return next((container for container in self.containers if container.name == name), None)

    def any_container(self, name: str) -> Container | None:
        """The container of this name, a regular one before an init container."""
        return self.container(name) or next((c for c in self.init_containers if c.name == name), None)

    def set_init_container(self, json: Json) -> None:
        """Upsert by name."""
        _upsert(self.pod_spec, "initContainers", (json,), lambda item: item.get("name"))

    def set_volumes(self, *volumes: Json) -> None:
        """Upsert by name."""
        _upsert(self.pod_spec, "volumes", volumes, lambda item: item.get("name"))

    def set_job_label(self, key: str, value: str) -> None:
        _metadata_map(self.json["template"], "labels")[key] = value

    def set_pod_label(self, key: str, value: str) -> None:
        _metadata_map(self.pod_template, "labels")[key] = value

    def set_pod_annotation(self, key: str, value: str) -> None:
        _metadata_map(self.pod_template, "annotations")[key] = value

    def tell_local_node(self, key: str, *names: str) -> None:
        """Adds names to an annotation that the local node reads, a list separated by commas. Names that it has already
        stay in place. In a cluster nothing is added: nobody reads it there.
        """
        if not self.local:
            return
        present = (_metadata_map(self.pod_template, "annotations").get(key) or "").split(",")
        self.set_pod_annotation(key, ",".join(dict.fromkeys(filter(None, (*map(str.strip, present), *names)))))


def env_var(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def env_from_field(name: str, field_path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field_path}}}


COMPLETION_INDEX = f"metadata.annotations['{wellknown.COMPLETION_INDEX}']"


def _upsert(owner: Json, field: str, items: Iterable[Json], key: Any) -> None:
    present = owner.get(field)
    if present is None:
        present = owner[field] = []
    places = {}
    for index in range(len(present) - 1, -1, -1):  # backwards, so that the first of two equal keys wins
        places[key(present[index])] = index
    for item in items:
        place = places.get(key(item))
        if place is None:
            places[key(item)] = len(present)
            present.append(item)
        else:
            present[place] = item
    if not present:
        del owner[field]


def pod_spec_of(replicated_job: Json) -> Json:
    """The pod spec of a replicatedJob for reading; empty where the template leaves it out."""
    job_spec = (replicated_job.get("template") or {}).get("spec") or {}
    return (job_spec.get("template") or {}).get("spec") or {}


def _metadata_map(template: Json, field: str) -> Json:
    return _member(_member(template, "metadata"), field)


def _member(owner: Json, field: str) -> Json:
    """An object inside an object, made where it is missing: the API allows every level of a template to be left out."""
    found: Json | None = owner.get(field)
    if found is None:
        found = owner[field] = {}
    return found
