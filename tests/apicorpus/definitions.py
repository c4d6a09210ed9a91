"""Sees to it that the server serves the kinds that scenarios are about."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from apicorpus.connection import Client
from apicorpus.runner import LOADER

Json = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
COLLECTIONS = {
    "Widget": "/apis/corpus.example.com/v1/widgets",
    "Gadget": "/apis/corpus.example.com/v1/gadgets",
    "TrainJob": f"{TRAINER}/trainjobs",
    "TrainingRuntime": f"{TRAINER}/trainingruntimes",
    "ClusterTrainingRuntime": f"{TRAINER}/clustertrainingruntimes",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
}
SERVED_SECONDS = 30


def install_missing(
    client: Client, scenarios: Iterable[Json], folders: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Install the CRDs that the scenarios need and the server lacks.

    Returns the paths of what was installed, and for each kind that is not to be had the reason.
    """
    definitions = _read(folders)
    installed: list[str] = []
    missing: dict[str, str] = {}
    for kind in sorted({kind for scenario in scenarios for kind in scenario.get("kinds", [])}):
        path = COLLECTIONS.get(kind)
        if path is None or _is_served(client, path):
            continue
        if kind not in definitions:
            missing[kind] = f"{kind} is not served and no CRD for it was given (--crds)"
            continue
        status, _, data = client.request("POST", DEFINITIONS, json.dumps(definitions[kind]).encode())
        if status not in (200, 201, 409):
            missing[kind] = f"CRD for {kind} refused: {status} {data[:200]!r}"
            continue
        if status != 409:
            installed.append(f"{DEFINITIONS}/{definitions[kind]['metadata']['name']}")
        deadline = time.monotonic() + SERVED_SECONDS
        while not _is_served(client, path) and time.monotonic() < deadline:
            time.sleep(0.1)
    if installed:
        time.sleep(1)  # kube-apiserver lists a new kind a moment before it takes writes of it
    return installed, missing


def _is_served(client: Client, path: str) -> bool:
    return client.request("GET", f"{path}?limit=1").status == 200


def _read(folders: Iterable[str]) -> dict[str, Json]:
    """The definitions in files and folders, by the kind they define."""
    found: dict[str, Json] = {}
    for folder in map(Path, folders):
        for file in sorted(folder.iterdir()) if folder.is_dir() else [folder]:
            if file.suffix in (".yaml", ".yml"):
                for document in yaml.load_all(file.read_text(), Loader=LOADER):
                    if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                        found[document["spec"]["names"]["kind"]] = document
    return found
