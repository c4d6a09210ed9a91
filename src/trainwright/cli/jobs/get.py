"""`trainwright get`: shows TrainJobs with what they wait for and their progress, runtimes, or pods.

One look, or with `-w` a row for every change. As a table for people, as `kind: List` or single objects in YAML or JSON
for programs, or as `kind/name` for scripts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from trainwright.api.resources import JOB_SETS, NODES, PODS, Resource
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.clusters.connection import carry_out
from trainwright.cli.clusters.diskspace import pressure
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.nearness import near
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.jobs.tables import Seen, table_of
from trainwright.cli.jobview.kinds import RUNTIMES, TRAINJOBS, Kind, kind_and_names, near_kind
from trainwright.cli.jobview.naming import no_such_job
from trainwright.client.client import Client
from trainwright.client.errors import ClientError
from trainwright.client.requests import Selection
from trainwright.pipeline.reasons.sentences import name_of
from trainwright.schema.jsonobject import Json


def get(
    words: Sequence[str],
    selector: str | None,
    all_namespaces: bool,
    output: str,
    watch: bool,
    target: Target,
    namespace: str,
) -> int:
    kind, names = kind_and_names(words)
    if names and selector:
        raise Failure("names and -l exclude each other: choose one", 2)
    if names and all_namespaces:
        raise Failure("a name is looked up in one namespace: give -n NS in place of -A", 2)
    asked = Asked(target, kind, names, selector, None if all_namespaces else namespace, output)
    if target.is_local and (reason := pressure(target.directory.path)):
        print(f"Warning: {reason}", file=sys.stderr)
    if watch:
        from trainwright.cli.jobs.getwatch import follow

        carry_out(follow(asked))
        return 0
    return carry_out(_show(asked))


class Asked:
    """What `get` was asked for."""

    def __init__(
        self,
        target: Target,
        kind: Kind,
        names: Sequence[str],
        selector: str | None,
        namespace: str | None,
        output: str,
    ) -> None:
        self.target = target
        self.kind = kind
        self.names = names
        self.selector = selector
        self.namespace = namespace
        """None for all of them."""
        self.output = output

    @property
    def is_table(self) -> bool:
        return self.output in ("table", "wide")

    @property
    def selection(self) -> Selection:
        by_name = f"metadata.name={self.names[0]}" if len(self.names) == 1 else None
        return {"label_selector": self.selector, "field_selector": by_name}

    @property
    def where(self) -> str:
        return "any namespace" if self.namespace is None else f"namespace {self.namespace}"

    def home(self, resource: Resource) -> str | None:
        """The namespace to list a resource in."""
        return self.namespace if resource.namespaced else None

    def chosen(self, resource: Resource, items: Sequence[Json] | None) -> list[Json]:
        """The objects that were asked for, with the fields that a list leaves out."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**kind, **item} for item in items or () if not self.names or name_of(item) in self.names]

    def print_objects(self, objects: Sequence[Json], *, as_list: bool) -> None:
        """Prints objects in the form that was asked for."""
        if self.output == "name":
            for obj in objects:
                group = f".{obj['apiVersion'].rpartition('/')[0]}" if "/" in obj["apiVersion"] else ""
                print(f"{obj['kind'].lower()}{group}/{name_of(obj)}", flush=True)
            return
        plain = [_without_managers(obj) for obj in objects]
        listed: list[Json] = [{"apiVersion": "v1", "items": plain, "kind": "List", "metadata": {"resourceVersion": ""}}]
        for obj in listed if as_list else plain:
            if self.output == "json":
                print(json.dumps(obj, indent=2), flush=True)
            else:
                from trainwright.cli.console.output import to_yaml

                print(to_yaml([obj]), end="" if as_list or len(plain) == 1 else "---\n", flush=True)


async def _show(asked: Asked) -> int:
    async with asked.target.client() as client:
        found: list[Json] = []
        for resource in asked.kind.resources:
            listed = await client.list(resource, asked.home(resource), **asked.selection)
            found += asked.chosen(resource, listed.items)
        found.sort(key=lambda obj: (obj["metadata"].get("namespace") or "", name_of(obj)))
        missing = [name for name in asked.names if name not in map(name_of, found)]
        if found or not asked.is_table:
            if asked.is_table:
                seen = await _seen(client, asked, found)
                table = table_of(asked.kind, seen, wide=asked.output == "wide", all_namespaces=asked.namespace is None)
                Terminal().table(table.head, table.rows)
            elif found or not missing:
                asked.print_objects(found, as_list=len(asked.names) != 1)
        elif not missing:
            Terminal().say(
                f"no {asked.kind.plural} in {asked.where}{f' with {asked.selector}' if asked.selector else ''}"
            )
        if missing:
            raise await _not_there(client, asked, missing)
    return 0


async def _seen(client: Client, asked: Asked, found: list[Json]) -> Seen:
    if asked.kind == TRAINJOBS:
        jobsets = (await client.list(JOB_SETS, asked.namespace)).items or []
        pods = (await client.list(PODS, asked.namespace, label_selector=JOBSET_NAME)).items or []
        return Seen(found, jobsets, pods)
    if asked.kind.plural == RUNTIMES.plural and asked.target.is_local:
        from trainwright.cli.jobs.runnable import verdicts

        nodes = (await client.list(NODES)).items or []
        return Seen(found, runs_here=verdicts(found, nodes[0] if nodes else None))
    return Seen(found)


async def _not_there(client: Client, asked: Asked, missing: list[str]) -> Failure:
    name = missing[0]
    if asked.kind == TRAINJOBS:
        failure = await no_such_job(client, name, str(asked.namespace))
        if "; " not in failure.message and (advice := near_kind(name)):
            return Failure(f"there is neither a kind nor a TrainJob named {name}{advice}")
        return failure
    known: list[str] = []
    for resource in asked.kind.resources:
        try:
            known += [name_of(item) for item in (await client.list(resource, asked.home(resource))).items or ()]
        except ClientError:
            continue
    where = f" in {asked.where}" if any(resource.namespaced for resource in asked.kind.resources) else ""
    return Failure(f'there is no {asked.kind.singular} named "{name}"{where}{near(name, known)}')


def _without_managers(obj: Json) -> Json:
    """The object without `managedFields`, as kubectl shows it."""
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
