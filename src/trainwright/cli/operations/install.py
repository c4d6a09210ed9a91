"""`trainwright install` and `uninstall`: the operator into a cluster and out of it, with a plan shown first.

The objects are those of the Helm chart with the same values. `uninstall` leaves CRDs, runtimes and TrainJobs, and no
finalizer that nobody would take off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trainwright.cli.clusters.connection import carry_out as run_to_its_end
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.output import to_yaml
from trainwright.cli.failure import Failure
from trainwright.client import Client, kubeconfig
from trainwright.installation import composition, values
from trainwright.installation.plan import Refused, Step, Verb, carry_out, name_of, plan
from trainwright.installation.removal import Users, present, release_runtimes, remove, users_objects
from trainwright.schema.jsonobject import Json

SHOWN_PATHS = 3
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def install(
    settings: list[str],
    files: list[Path],
    show: bool,
    yes: bool,
    take_over: bool,
    target: Target,
    namespace: str,
) -> int:
    objects = _objects(values_of(files, settings), namespace)
    if show:
        sys.stdout.write(to_yaml(objects))
        return 0
    _not_here(target)
    return run_to_its_end(_install(target, objects, namespace, yes=yes, take_over=take_over))


def uninstall(delete_crds: bool, only_finalizers: bool, yes: bool, target: Target, namespace: str) -> int:
    if only_finalizers:
        return run_to_its_end(_release(target))
    _not_here(target)
    return run_to_its_end(_uninstall(target, namespace, delete_crds=delete_crds, yes=yes))


def values_of(files: list[Path], settings: list[str]) -> Json:
    try:
        return values.complete(values.read(files, settings))
    except values.WrongValue as error:
        raise Failure(str(error), 2) from error


def _objects(chosen: Json, namespace: str) -> list[Json]:
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": RESTRICTED}}
    return [home, *composition.objects(chosen, namespace)]


def _not_here(target: Target) -> None:
    if target.is_local:
        raise Failure(
            "the local cluster runs an operator of its own; name another cluster with --context or --kubeconfig", 2
        )


async def _install(target: Target, objects: list[Json], namespace: str, *, yes: bool, take_over: bool) -> int:
    async with target.client() as client:
        try:
            steps = await plan(client, objects, take_over=take_over)
        except Refused as refused:
            raise Failure(f"nothing is installed: {refused}") from refused
        _show(steps)
        todo = [step for step in steps if step.verb is not Verb.SAME]
        if not todo:
            print(f"Nothing to do: all {len(steps)} objects are as they should be.")
            return 0
        if not _agreed(f"Carry out {len(todo)} changes?", yes):
            return 1
        await carry_out(client, steps)
    print(f"Installed into namespace {namespace}. Next: trainwright doctor{target.flag()}")
    return 0


def _show(steps: list[Step]) -> None:
    for step in steps:
        if step.verb is Verb.SAME:
            continue
        paths = ", ".join(step.changed[:SHOWN_PATHS])
        more = len(step.changed) - SHOWN_PATHS
        detail = f"  {paths}{f' and {more} more' if more > 0 else ''}" if paths else ""
        print(f"{step.verb.value:9} {step.name}{detail}")


async def _uninstall(target: Target, namespace: str, *, delete_crds: bool, yes: bool) -> int:
    everything = values.complete({path.split(".")[0]: {"enabled": True} for path in values.COMPONENTS})
    async with target.client() as client:
        going = await present(client, _objects(everything, namespace), delete_crds=delete_crds)
        users = await users_objects(client)
        if not going:
            print(f"There is no installation in namespace {namespace}.")
            return 0
        for item in going:
            print(f"delete    {name_of(item)}")
        print(_about_users(users, delete_crds))
        if not _agreed("Delete these objects?", yes):
            return 1
        try:
            released = await remove(client, going, namespace)
        except TimeoutError as error:
            raise Failure(str(error)) from error
    print(f"Uninstalled. {released} runtimes had the operator's finalizer, and have it no more.")
    return 0


def _about_users(users: Users, delete_crds: bool) -> str:
    if delete_crds:
        return (
            f"With the CRDs go {users.train_jobs} TrainJobs, {users.unfinished} of them unfinished, with all their"
            f" pods, and {users.runtimes} runtimes. They do not come back."
        )
    kept = f"{users.train_jobs} TrainJobs and {users.runtimes} runtimes stay, and so do the CRDs"
    if users.unfinished:
        kept += f"; pods of the {users.unfinished} unfinished ones go on, and nobody notices their end"
    return kept + "."


async def _release(target: Target) -> int:
    """Also in a pod, as the chart's hook does after an uninstallation."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if target.is_local and host and kubeconfig.SERVICE_ACCOUNT.exists():
        async with Client.to(kubeconfig.in_cluster(host=host, port=port)) as client:
            released = await release_runtimes(client)
    else:
        async with target.client() as client:
            released = await release_runtimes(client)
    print(f"{released} runtimes had the operator's finalizer, and have it no more.")
    return 0


def _agreed(question: str, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        print("Nothing is done. To carry it out, give --yes.")
        return False
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
