"""The TrainingRuntime of one run, for what a TrainJob cannot say: how often to try again.

It is a copy of the runtime that the run would use, in the run's namespace, owned by its TrainJob. That works with any
operator of the Trainer API. A default runtime that the cluster does not have is brought along the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainwright.api.wellknown import RUN
from trainwright.cli.console.nearness import near
from trainwright.cli.failure import Failure
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.schema.jsonobject import Json

FRAMEWORK = "trainer.kubeflow.org/framework"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def runtime_of_run(base: Json, *, name: str, retries: int) -> Json:
    """A TrainingRuntime like `base` whose JobSet starts again up to `retries` times after a failure."""
    metadata = base.get("metadata") or {}
    spec = copy.deepcopy(base.get("spec") or {})
    if retries:
        jobset = spec.setdefault("template", {}).setdefault("spec", {})
        jobset["failurePolicy"] = {**(jobset.get("failurePolicy") or {}), "maxRestarts": retries}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key == FRAMEWORK}
    return {
        "apiVersion": TRAINING_RUNTIMES.api_version,
        "kind": TRAINING_RUNTIMES.kind,
        "metadata": {"name": name, "labels": {**labels, RUN: name}},
        "spec": spec,
    }


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime that a run starts from."""

    name: str
    kind: str = CLUSTER_TRAINING_RUNTIMES.kind
    content: Json = msgspec.field(default_factory=dict)
    is_torch: bool = False
    """Whether torchrun starts its processes."""
    is_mpi: bool = False
    """Whether mpirun starts its processes."""
    is_brought: bool = False
    """It is shipped with Trainwright, and the cluster does not have it."""


async def find_runtime(
    client: Client | None, name: str, namespace: str, *, bring: bool, seen: Sequence[Json] | None = None
) -> Found:
    """The runtime of this name: of the namespace, else of the cluster, else, where `bring`, the shipped one. Without a
    client, the shipped one; or, of a cluster that is away, one of those that were `seen` there last.
    """
    if seen is not None:
        return _find_seen(seen, name, namespace, bring=bring)
    if client is not None:
        for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
            try:
                content = await client.get(resource, name, namespace if resource.namespaced else None)
            except NotFound:
                continue
            return _found(name, resource.kind, content, is_brought=False)
    shipped = {runtime["metadata"]["name"]: runtime for runtime in _shipped()} if bring or client is None else {}
    if name in shipped:
        content = shipped[name]
        return _found(name, CLUSTER_TRAINING_RUNTIMES.kind, content, is_brought=client is not None)
    if client is None:
        raise Failure(f'no shipped runtime is named "{name}", and no cluster is up to ask for others')
    raise Failure(
        f'there is no runtime named "{name}", neither a TrainingRuntime in namespace {namespace} nor a'
        f" ClusterTrainingRuntime{await available(client, namespace, name)}"
    )


def _find_seen(seen: Sequence[Json], name: str, namespace: str, *, bring: bool) -> Found:
    for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        for item in seen:
            metadata = item["metadata"]
            home = namespace if resource.namespaced else None
            if (item["kind"], metadata["name"], metadata.get("namespace")) == (resource.kind, name, home):
                return _found(name, resource.kind, item, is_brought=False)
    for shipped in _shipped() if bring else ():
        if shipped["metadata"]["name"] == name:
            return _found(name, CLUSTER_TRAINING_RUNTIMES.kind, shipped, is_brought=True)
    raise Failure(
        f'the cluster does not answer, and no runtime named "{name}" has been seen there; those seen last: '
        + (", ".join(sorted({str(item["metadata"]["name"]) for item in seen})) or "none")
    )


async def available(client: Client, namespace: str, name: str) -> str:
    """The end of a message about a runtime that is not there: the one that may have been meant, and all there are."""
    lines, known = [], list[str]()
    for resource, home in ((CLUSTER_TRAINING_RUNTIMES, None), (TRAINING_RUNTIMES, namespace)):
        names = sorted(item["metadata"]["name"] for item in (await client.list(resource, home)).items or ())
        lines.append(f"\n  {resource.kind}: {', '.join(names) or 'none'}")
        known += names
    return f"{near(name, known) or '.'} Available:{''.join(lines)}"


def _shipped() -> list[Json]:
    from trainwright.embedded import manifests

    return list(manifests.objects("runtimes"))


def _found(name: str, kind: str, content: Json, *, is_brought: bool) -> Found:
    policy = (content.get("spec") or {}).get("mlPolicy") or {}
    is_torch, is_mpi = policy.get("torch") is not None, policy.get("mpi") is not None
    return Found(name=name, kind=kind, content=content, is_torch=is_torch, is_mpi=is_mpi, is_brought=is_brought)


def training_job(runtime: Json, *, ships: bool) -> str:
    """The replicated job that trains. Raises `Failure` where a working directory `ships` to a runtime that starts its
    processes over SSH: those would not find what was unpacked for the first.
    """
    spec, name = runtime.get("spec") or {}, runtime["metadata"]["name"]
    policy = spec.get("mlPolicy") or {}
    if ships and (policy.get("mpi") is not None or policy.get("flux") is not None):
        raise Failure(
            f"the runtime {name} starts its processes on other nodes by itself, so a working directory cannot be"
            " unpacked for them; build an image with the code and run it with: --image IMAGE --workdir none"
        )
    for job in ((spec.get("template") or {}).get("spec") or {}).get("replicatedJobs") or ():
        template = job.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        if labels.get(ANCESTOR) == "trainer":
            return str(job["name"])
    raise Failure(f"the runtime {name} has no job that trains: none is labelled {ANCESTOR}: trainer")
