"""Names for the shell, asked for while the user types: quick, silent, and nothing where they cannot be had in time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from trainwright.cli import commands
from trainwright.cli.clusters.directory import ClusterDirectory, default_directory
from trainwright.cli.clusters.target import Target, choose
from trainwright.cli.completion.words import COMMANDS, CONTEXTS, JOBS, KINDS, RUNS

PATIENCE_SECONDS = 1.0


def names_of(source: str) -> Iterable[str]:
    if source == COMMANDS:
        return commands.names()
    if source == KINDS:
        return ("trainjobs", "runtimes", "pods")
    if source == RUNS:
        return sorted(path.name for path in (default_directory() / "runs").glob("*") if path.is_dir())
    if source == CONTEXTS:
        return _contexts()
    target = choose(kubeconfig=None, context=None, local=False, directory=None)
    if target.is_local and ClusterDirectory(target.directory.path).running_pid() is None:
        return ()
    return asyncio.run(_from_cluster(target, source))


def _contexts() -> list[str]:
    import yaml

    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    found: list[str] = []
    for file in [Path(part).expanduser() for part in listed if part] or [Path.home() / ".kube" / "config"]:
        if file.is_file():
            value = yaml.safe_load(file.read_bytes()) or {}
            found += [str(item["name"]) for item in value.get("contexts") or ()]
    return found


async def _from_cluster(target: Target, source: str) -> list[str]:
    from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES

    resources = (TRAIN_JOBS,) if source == JOBS else (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_SECONDS), target.client() as client:
        for resource in resources:
            listed = await client.list(resource, target.namespace if resource.namespaced else None)
            found += [item["metadata"]["name"] for item in listed.items or ()]
    return sorted(found)
