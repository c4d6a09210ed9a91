"""A pod's directory: the files by which the node and the pod's supervisor communicate, across restarts of the node.

    <pods>/<uid>/pod.json         written by the node, once: what to run (a `PodToRun`)
    <pods>/<uid>/claim            made by the supervisor, exclusively: this UID has been started, and never is again
    <pods>/<uid>/record.json      written by the supervisor, atomically: its identity and each container's state
    <pods>/<uid>/terminate.json   written by the node: end the pod, with this grace period
    <pods>/<uid>/etc-hosts        written by the node in place: bound over /etc/hosts in the pod
    <pods>/<uid>/tokens.json      written by the node: when each service-account token is to be renewed
    <pods>/<uid>/logs/<container>/<restart>.log   written by the supervisor, in CRI's line format
    <pods>/<uid>/work             the containers' working directory
    <pods>/<uid>/volumes/<name>   volumes that live as long as the pod

Container states have Kubernetes' own form (`{"running": {"startedAt": …}}`), so that the node copies them into pod
status. Invariant: a reader sees a whole old file or a whole new one. Standard library only: the supervisor imports
this.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from trainwright.api.times import rfc3339
from trainwright.embedded.node.identity import ProcessIdentity
from trainwright.schema.jsonobject import Json


class Mount(TypedDict):
    """`source` of this machine at `target` inside the container."""

    source: str
    target: str
    readOnly: bool


class ContainerToRun(TypedDict):
    """A container with nothing left to resolve."""

    name: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    mounts: list[Mount]


class Isolation(TypedDict):
    """Which namespaces the pod's containers get. All false is tier T0: plain processes."""

    user: bool
    mount: bool
    pid: bool


class PodToRun(TypedDict):
    """What a supervisor runs. The pod's address and ports are kept here too, for the node that adopts the pod."""

    uid: str
    namespace: str
    name: str
    subdomain: str
    hostname: str
    address: str
    ports: dict[str, int]
    isolation: Isolation
    restartPolicy: Literal["Always", "OnFailure", "Never"]
    terminationGracePeriodSeconds: int
    initContainers: list[ContainerToRun]
    containers: list[ContainerToRun]
    notify: str


class ContainerRecord(TypedDict):
    """One container: its state and its last state, in Kubernetes' form."""

    state: Json
    lastState: Json
    restartCount: int
    ready: bool


class PodRecord(TypedDict):
    """The state of a pod as its supervisor records it. After `done` nothing of the pod runs any more."""

    uid: str
    supervisor: list[Any]
    startedAt: str
    initContainers: dict[str, ContainerRecord]
    containers: dict[str, ContainerRecord]
    done: bool


@dataclass(frozen=True, slots=True)
class PodDirectory:
    """The paths of one pod's files, and how to read and write them."""

    path: Path

    @property
    def uid(self) -> str:
        return self.path.name

    @property
    def hosts(self) -> Path:
        return self.path / "etc-hosts"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    def log(self, container: str, restart: int) -> Path:
        return self.path / "logs" / container / f"{restart}.log"

    def pod(self) -> PodToRun | None:
        return cast(PodToRun | None, read_json(self.path / "pod.json"))

    def write_pod(self, pod: PodToRun) -> None:
        write_json(self.path / "pod.json", pod)

    def record(self) -> PodRecord | None:
        return cast(PodRecord | None, read_json(self.path / "record.json"))

    def write_record(self, record: PodRecord) -> None:
        write_json(self.path / "record.json", record)

    def token_times(self) -> dict[str, float]:
        """When to renew each token, by volume and path, in seconds since the epoch. One that is missing is due now."""
        return cast(dict[str, float], read_json(self.path / "tokens.json") or {})

    def write_token_times(self, times: dict[str, float]) -> None:
        write_json(self.path / "tokens.json", times)

    def claim(self) -> bool:
        """True for exactly one caller in the life of this UID."""
        try:
            os.close(os.open(self.path / "claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def is_claimed(self) -> bool:
        return (self.path / "claim").exists()

    def grace_period(self) -> float | None:
        """The grace period asked for, or None when nobody asked the pod to end."""
        asked = read_json(self.path / "terminate.json")
        return None if asked is None else float(asked["gracePeriodSeconds"])

    def ask_to_terminate(self, grace_period: float) -> None:
        write_json(self.path / "terminate.json", {"gracePeriodSeconds": grace_period})


def supervisor_of(record: PodRecord) -> ProcessIdentity:
    pid, start, boot = record["supervisor"]
    return ProcessIdentity(pid, start, boot)


def now() -> str:
    """The current time as Kubernetes writes it, to the second."""
    return rfc3339(time.time())


def read_json(path: Path) -> Any:
    """The file's content. None when there is no such file, or one that a crash of the machine left incomplete."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Replaces the file atomically. The temporary file's name has the pid in it, so that writers do not share one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value))
    os.replace(temporary, path)
