"""A pod's directory: the files by which the node and the pod's supervisor communicate, across restarts of the node.

    <pods>/<uid>/pod.json         written by the node, once: what to run (a `PodToRun`)
    <pods>/<uid>/claim            made by the supervisor, exclusively: this UID has been started, and never is again
    <pods>/<uid>/record.json      written by the supervisor, atomically: its identity and each container's state
    <pods>/<uid>/exec.sock        made by the supervisor: takes commands to run in the containers (`execsocket`)
    <pods>/<uid>/terminate.json   written by the node: end the pod, with this grace period
    <pods>/<uid>/etc-hosts        written by the node in place: bound over /etc/hosts in the pod
    <pods>/<uid>/nsswitch.conf    written by the supervisor of a pod with a network of its own: bound over that of /etc
    <pods>/<uid>/tokens.json      written by the node: when each service-account token is to be renewed
    <pods>/<uid>/logs/<container>/<restart>.log   written by the supervisor, in CRI's line format; of a pod that belongs
                                  to a run, `logs` is a link to the run's directory, where they stay
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
from typing import Any, Literal, NotRequired, TypedDict, cast

from trainwright.api.times import rfc3339
from trainwright.embedded.node.pods.identity import ProcessIdentity
from trainwright.schema.jsonobject import Json

RECORD_VERSION = 2


class Mount(TypedDict):
    """`source` of this machine at `target` inside the container."""

    source: str
    target: str
    readOnly: bool


class TcpSocket(TypedDict):
    host: str
    port: int


class HttpGet(TypedDict):
    host: str
    port: int
    path: str
    scheme: str
    headers: list[tuple[str, str]]


class HandlerToRun(TypedDict, total=False):
    """What a probe or a hook does: one of these."""

    exec: list[str]
    tcp: TcpSocket
    http: HttpGet
    sleep: float


class ProbeToRun(TypedDict):
    """A probe with every default filled in. `terminationGracePeriodSeconds`: instead of the pod's, if it fails."""

    handler: HandlerToRun
    initialDelaySeconds: float
    periodSeconds: float
    timeoutSeconds: float
    successThreshold: int
    failureThreshold: int
    terminationGracePeriodSeconds: NotRequired[float]


class ContainerToRun(TypedDict):
    """A container with nothing left to resolve.

    `replaceable` are the variables of `env` that come from the machine: the caller's environment, if the pod has one,
    replaces those and no others. `restartPolicy` is the container's own, instead of the pod's; an init container with
    `Always` is a sidecar. `restartOnExitCodes` are its restart rules: each `[operator, exit codes]`. `probes` are by
    kind. `runAs` are the uid and gid that the processes see as their own, in a user namespace. `memoryLimit` is in
    bytes, `milliCpuLimit` in thousandths of a CPU.
    """

    name: str
    argv: list[str]
    env: dict[str, str]
    replaceable: NotRequired[list[str]]
    cwd: str
    mounts: list[Mount]
    restartPolicy: NotRequired[str]
    restartOnExitCodes: NotRequired[list[tuple[str, list[int]]]]
    probes: NotRequired[dict[str, ProbeToRun]]
    milliCpuLimit: NotRequired[int]
    runAs: NotRequired[list[int]]
    memoryLimit: NotRequired[int]
    postStart: NotRequired[HandlerToRun]
    preStop: NotRequired[HandlerToRun]


class Isolation(TypedDict):
    """Which namespaces the pod's containers get. All false is tier T0: plain processes."""

    user: bool
    mount: bool
    pid: bool


class CgroupsToUse(TypedDict):
    """Where the supervisor may make cgroups, and which controllers they have. An empty directory: nowhere."""

    directory: str
    controllers: list[str]


class PodToRun(TypedDict):
    """What a supervisor runs. The pod's address and ports are kept here too, for the node that adopts the pod.

    `environment` is a file with the environment of whoever started the run, empty for none. It is read when a container
    starts, and not copied: it is to be gone when its own file is. `logFiles` is how many files are kept of each log.
    `pythonPath` is a directory for the end of PYTHONPATH, empty for none; `path` are directories for the front of PATH,
    whoever's PATH it is. `ownMemory` are directories over which each container mounts a tmpfs of its own. Of the
    directory `hidden` containers see only the directories `shown`: the rest are the cluster's secrets. `network` is the
    directory of the job's own network, empty for the machine's; `reachable` are ports of the machine's loopback that
    are on the pod's loopback too. What later
    versions added is not required: a control plane that runs while Trainwright is upgraded starts new supervisors with
    what it knows.
    """

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
    environment: NotRequired[str]
    logFiles: NotRequired[int]
    pythonPath: NotRequired[str]
    path: NotRequired[list[str]]
    ownMemory: NotRequired[list[str]]
    hidden: NotRequired[str]
    shown: NotRequired[list[str]]
    devices: NotRequired[dict[str, dict[str, list[str]]]]
    cpus: NotRequired[list[int]]
    cgroups: NotRequired[CgroupsToUse]
    network: NotRequired[str]
    reachable: NotRequired[list[int]]


class ContainerRecord(TypedDict):
    """One container: its state and its last state, in Kubernetes' form. `keeper` is the pid of its keeper, while it
    runs.
    """

    state: Json
    lastState: Json
    restartCount: int
    ready: bool
    started: NotRequired[bool]
    keeper: NotRequired[int | None]


class Happening(TypedDict):
    """Something that the node is to write as an event."""

    type: str
    reason: str
    message: str
    container: str
    count: int
    first: str
    last: str


class PodRecord(TypedDict):
    """The state of a pod as its supervisor records it. After `done` nothing of the pod runs any more.

    `version` is that of this format. A supervisor may be older than the node that reads its record, so that what later
    versions added is not required, and older fields keep their meaning.
    """

    version: NotRequired[int]
    uid: str
    supervisor: list[Any]
    startedAt: str
    initContainers: dict[str, ContainerRecord]
    containers: dict[str, ContainerRecord]
    done: bool
    happenings: NotRequired[list[Happening]]


_POD_KEYS = {"uid", "namespace", "name", "subdomain", "address", "ports", "isolation", "containers", "notify"}
_RECORD_KEYS = {"uid", "supervisor", "startedAt", "initContainers", "containers", "done"}
"""What a file must have to be taken for one of these."""


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
    def name_services(self) -> Path:
        return self.path / "nsswitch.conf"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def log(self, container: str, restart: int) -> Path:
        return self.logs / container / f"{restart}.log"

    def pod(self) -> PodToRun | None:
        found = read_json(self.path / "pod.json")
        is_whole = isinstance(found, dict) and found.keys() >= _POD_KEYS
        return cast(PodToRun, found) if is_whole else None

    def write_pod(self, pod: PodToRun) -> None:
        write_json(self.path / "pod.json", pod)

    def record(self) -> PodRecord | None:
        found = read_json(self.path / "record.json")
        is_whole = isinstance(found, dict) and found.keys() >= _RECORD_KEYS
        return cast(PodRecord, found) if is_whole else None

    def write_record(self, record: PodRecord) -> None:
        # How a pod ended is to be known after a crash of the machine too. Before that there is nothing to keep: its
        # processes are gone then.
        write_json(self.path / "record.json", record, durable=record["done"])

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

    def asked_to_terminate_at(self) -> float | None:
        """When the pod was last asked to end, in seconds since the epoch."""
        try:
            return (self.path / "terminate.json").stat().st_mtime
        except FileNotFoundError:
            return None

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
    except (FileNotFoundError, ValueError):  # a file of zeros is not even text
        return None


def write_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """Replaces the file atomically. The temporary file's name has the pid in it, so that writers do not share one.

    `durable`: the new file survives a crash of the machine. Otherwise that may leave it empty or torn, which every
    reader takes for a file that is not there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "w") as file:
            file.write(json.dumps(value))
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:  # the disk is full, for example: leave nothing behind
        temporary.unlink(missing_ok=True)
        raise
