"""A pod of a run on disk: enough to say which node and rank it was when nobody can be asked any more.

What is kept has the form of the API, so that whatever names a live pod's ranks names those of a kept one.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from trainwright.runs import files
from trainwright.runs.directory import RunDirectory
from trainwright.schema.jsonobject import Json

FILE = "pod.json"
_METADATA = ("name", "namespace", "uid", "labels", "annotations", "creationTimestamp")
_CONTAINER = ("name", "image", "command", "args")


def write_pod(logs: Path, pod: Json) -> None:
    """Writes the pod into the directory of its logs. Values of variables that come from a Secret are not in a pod."""
    files.replace(logs / FILE, msgspec.json.encode(_kept(pod)), durable=False)


def adopt_logs(run: RunDirectory, pod: Json, logs: Path) -> bool:
    """Moves the logs of a pod that is over into the run's directory, and leaves a link in their place.

    For pods of a version that kept logs with the pod. False when there is nothing to move.
    """
    target = run.logs_of(pod["metadata"]["name"], pod["metadata"]["uid"])
    if logs.is_symlink() or not logs.is_dir() or target.exists() or not run.path.is_dir():
        return False
    run.logs.mkdir(mode=0o700, exist_ok=True)
    os.rename(logs, target)
    logs.symlink_to(target)
    write_pod(target, pod)
    return True


def read_pod(logs: Path) -> Json:
    """The pod of a directory of logs. Without a readable file, only its name is known."""
    try:
        pod = msgspec.json.decode((logs / FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        pod = None
    if isinstance(pod, dict) and isinstance(pod.get("metadata"), dict) and isinstance(pod.get("spec"), dict):
        return pod
    name, _, uid = logs.name.rpartition(".")
    return {"metadata": {"name": name or logs.name, "uid": uid}, "spec": {"containers": []}}


def _kept(pod: Json) -> Json:
    metadata, spec = pod["metadata"], pod["spec"]
    kept: Json = {"metadata": {field: metadata[field] for field in _METADATA if metadata.get(field)}, "spec": {}}
    for containers in ("initContainers", "containers"):
        kept["spec"][containers] = [_kept_container(container) for container in spec.get(containers) or ()]
    return kept


def _kept_container(container: Json) -> Json:
    kept = {field: container[field] for field in _CONTAINER if container.get(field)}
    kept["env"] = [variable for variable in container.get("env") or () if "value" in variable]
    return kept
