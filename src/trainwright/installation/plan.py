"""What an installation would change in a cluster, found out without changing anything, and carried out when agreed to.

In: the objects of an installation. Out: one `Step` for each. The API server itself says what an apply would change, by
a dry run. Objects of a Helm release, and a cluster that another operator serves, are refused with the steps to take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainwright.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainwright.client import Client, NotFound
from trainwright.installation.composition import MANAGER
from trainwright.installation.kinds import resource_of
from trainwright.schema.differences import differences
from trainwright.schema.jsonobject import Json

FIELD_MANAGER = "trainwright-install"
ESTABLISHED_SECONDS = 30.0
HELMS = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


class Refused(Exception):
    """The installation is not possible here. The message says why, and what to do."""


class Verb(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    SAME = "unchanged"


@dataclass(frozen=True)
class Step:
    verb: Verb
    object: Json
    changed: tuple[str, ...] = ()
    """Paths of the fields that change."""

    @property
    def name(self) -> str:
        return name_of(self.object)


def name_of(item: Json) -> str:
    namespace = item["metadata"].get("namespace")
    where = f"{namespace}/" if namespace else ""
    return f"{item['kind']} {where}{item['metadata']['name']}"


async def plan(client: Client, objects: Sequence[Json], *, take_over: bool = False) -> list[Step]:
    """The steps, in the order in which they can be carried out."""
    coming = {
        (item["spec"]["group"], item["spec"]["names"]["kind"])
        for item in objects
        if item["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind
    }
    present = [await find(client, resource_of(item), item) for item in objects]
    _refuse_helms([live for live in present if live is not None])
    steps = []
    for item, live in zip(objects, present, strict=True):
        resource = resource_of(item)
        if live is None:
            if await _is_served(client, resource) or (resource.group, resource.kind) in coming:
                steps.append(Step(Verb.CREATE, item))
                continue
            raise Refused(
                f"{name_of(item)}: the cluster does not know {resource.group_resource}. Install what serves it first,"
                f" or leave that value off"
            )
        if not take_over:
            _refuse_others(live, item)
        after = await _apply(client, resource, item, dry_run=True)
        changed = tuple(differences(_plain(live), _plain(after)))
        steps.append(Step(Verb.CHANGE if changed else Verb.SAME, item, changed))
    return steps


async def carry_out(client: Client, steps: Sequence[Step]) -> None:
    """Applies what is to be created or changed; CRDs first, and until they are served."""
    crds = [step for step in steps if step.object["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind]
    for step in crds:
        await _apply_step(client, step)
    for step in crds:
        await _until_served(client, step.object)
    for step in steps:
        if step not in crds:
            await _apply_step(client, step)


async def find(client: Client, resource: Resource, item: Json) -> Json | None:
    metadata = item["metadata"]
    try:
        return await client.get(resource, metadata["name"], metadata.get("namespace"))
    except NotFound:
        return None


async def _is_served(client: Client, resource: Resource) -> bool:
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    try:
        found: Json = await client.raw(path)
    except NotFound:
        return False
    return any(each["name"] == resource.plural for each in found["resources"])


async def _apply_step(client: Client, step: Step) -> None:
    if step.verb is not Verb.SAME:
        await _apply(client, resource_of(step.object), step.object)


async def _apply(client: Client, resource: Resource, item: Json, *, dry_run: bool = False) -> Json:
    metadata = item["metadata"]
    answer: Json = await client.apply(
        resource,
        item,
        name=metadata["name"],
        namespace=metadata.get("namespace"),
        field_manager=FIELD_MANAGER,
        dry_run=dry_run,
    )
    return answer


async def _until_served(client: Client, crd: Json) -> None:
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    version = next(each["name"] for each in crd["spec"]["versions"] if each["served"])
    resource = Resource(group, version, names["plural"], names["kind"], namespaced=crd["spec"]["scope"] == "Namespaced")
    async with asyncio.timeout(ESTABLISHED_SECONDS):
        while not await _is_served(client, resource):  # noqa: ASYNC110 - in a cluster nothing tells us
            await asyncio.sleep(0.2)


def _refuse_helms(present: Sequence[Json]) -> None:
    """What Helm installed, Helm would take away again: with a CRD go all TrainJobs."""
    owned = [live for live in present if _release_of(live) is not None]
    if not owned:
        return
    release, where = _release_of(owned[0]) or ("", "")
    theirs = [live for live in owned if _release_of(live) == (release, where)]
    forget = "\n".join(
        f"  kubectl annotate {_argument(live)} {' '.join(f'{key}-' for key in HELMS)}" for live in theirs
    )
    raise Refused(
        f"{name_of(owned[0])} belongs to the Helm release {release} in namespace {where}. If that is Trainwright's"
        f" chart, upgrade it with Helm. If it is Kubeflow Trainer's: its `helm uninstall` would delete the CRDs and"
        f" with them every TrainJob. Stop it and let Helm forget the release, which deletes nothing, then install with"
        f" --take-over:\n"
        f"  kubectl -n {where} scale deployment -l app.kubernetes.io/instance={release} --replicas 0\n"
        f"  kubectl -n {where} delete secret -l owner=helm,name={release}\n{forget}"
    )


def _release_of(live: Json) -> tuple[str, str] | None:
    """Name and namespace of the Helm release that the object belongs to."""
    metadata = live["metadata"]
    annotations = metadata.get("annotations") or {}
    release = annotations.get(HELMS[0])
    if release is None or (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by") != "Helm":
        return None
    return release, annotations.get(HELMS[1], "default")


def _argument(live: Json) -> str:
    """The object, as an argument of kubectl."""
    metadata = live["metadata"]
    where = f" -n {metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{resource_of(live).plural}/{metadata['name']}{where}"


def _refuse_others(live: Json, wanted: Json) -> None:
    """Webhooks that call another Service belong to another operator."""
    if not wanted["kind"].endswith("WebhookConfiguration"):
        return
    mine = {(it["clientConfig"].get("service") or {}).get("namespace") for it in wanted["webhooks"]}
    for webhook in live.get("webhooks") or ():
        service = webhook["clientConfig"].get("service")
        if service is None or (service["name"], {service["namespace"]}) != (MANAGER, mine):
            where = f"Service {service['namespace']}/{service['name']}" if service else webhook["clientConfig"]["url"]
            raise Refused(
                f"{name_of(live)} calls {where}, so another operator serves this cluster. Stop that one and give"
                f" --take-over: TrainJobs go on, and their JobSets and pods stay as they are"
            )


def _plain(item: Json) -> Json:
    metadata = {key: value for key, value in item["metadata"].items() if key not in OF_THE_SERVER}
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}
