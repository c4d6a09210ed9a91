"""The directory of one run: its files by name, and how its lines are appended and its size counted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trainwright.api.runid import is_run_id
from trainwright.runs import files


class RunDirectory:
    """The files of a run. The id is checked here, so that no other path can be made from one."""

    def __init__(self, runs: Path, id: str) -> None:
        if not is_run_id(id):
            raise ValueError(f"{id!r} is not the id of a run")
        self.id = id
        self.path = runs / id
        self.record = self.path / "run.json"
        self.trainjob = self.path / "trainjob.yaml"
        self.events = self.path / "events.jsonl"
        self.metrics = self.path / "metrics.jsonl"
        self.logs = self.path / "logs"
        self.output = self.path / "output"
        self.environment = self.path / "environment.json"
        self.following = self.path / "following"

    def logs_of(self, pod_name: str, pod_uid: str) -> Path:
        """The directory of a pod's logs. A pod's name comes from the API, so a name with a slash cannot be meant."""
        name = f"{pod_name}.{pod_uid[:8]}"
        if "/" in name or "\0" in name or name.startswith("."):
            raise ValueError(f"{name!r} cannot name the logs of a pod")
        return self.logs / name

    def append_event(self, event: dict[str, Any]) -> None:
        files.append_line(self.events, msgspec.json.encode(event))

    def append_metrics(self, report: dict[str, Any]) -> None:
        files.append_line(self.metrics, msgspec.json.encode(report))

    def read_events(self) -> list[dict[str, Any]]:
        return list(_objects(self.events))

    def read_metrics(self) -> list[dict[str, Any]]:
        return list(_objects(self.metrics))

    @property
    def is_followed(self) -> bool:
        """Whether a `trainwright run` follows the run at this moment."""
        return files.is_locked(self.following)

    def size(self) -> int:
        """Bytes on disk. Links are not followed."""
        return _size(self.path)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file with one on each line. A line that a crash cut off is left out."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict):
            yield value


def _size(path: Path) -> int:
    total = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += _size(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # deleted meanwhile
        pass
    return total
