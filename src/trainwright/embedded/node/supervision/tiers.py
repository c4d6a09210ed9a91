"""The isolation that this machine allows pods: probed in a process of its own when the node starts.

T1 has user, mount and UTS namespaces, and a PID namespace where /proc may be mounted: pods have host names, addresses
and volumes of their own. T2, used only when it is asked for, has a network namespace for each pod too. T0
has none of them (macOS, containers that forbid user namespaces): pods are plain processes, and names in their
environment become 127.0.0.1. Standard library only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from trainwright.embedded.node.pods.record import Isolation
from trainwright.embedded.node.supervision import podnetwork, syscalls

Name = Literal["T0", "T1", "T2"]
NETWORKS = "networks"


@dataclass(frozen=True, slots=True)
class Tier:
    """The isolation that pods get. `reason` says why it is not more; the Node's status shows it. In T2 every pod has a
    network of its own.

    `other_users`: containers whose user is not the caller get a user namespace, which others do not need.
    """

    name: Name
    isolation: Isolation
    reason: str
    other_users: bool = False

    @property
    def has_networks(self) -> bool:
        return self.name == "T2"

    @property
    def maps_users(self) -> bool:
        """Whether a container's user can be another than the caller."""
        return self.isolation["mount"] and (self.isolation["user"] or self.other_users)


T0_ISOLATION: Isolation = {"user": False, "mount": False, "pid": False}


def plain(reason: str) -> Tier:
    return Tier("T0", T0_ISOLATION, reason)


def probe(*, networks: bool = False) -> Tier:
    """The best tier that works when tried; T2 only if `networks` of their own are asked for.

    Probed in a new process, because a fork of a process that has threads, as the control plane has, may deadlock.
    """
    if sys.platform != "linux":
        return plain(f"{sys.platform} has no namespaces: pods are plain processes")
    command = [sys.executable, "-S", "-m", "trainwright.embedded.node.supervision.tiers"]
    command += [NETWORKS] if networks else []
    environment = {"PYTHONPATH": str(Path(__file__).parents[4])}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines()
        return plain(f"the probe for namespaces failed ({said[-1] if said else 'no word'}): pods are plain processes")
    return Tier(**json.loads(answer.stdout))


def with_networks(tier: Tier) -> Tier:
    """T2, or the tier as it is, with the reason."""
    if tier.name == "T0":
        return tier
    problem = _try_in_child(lambda: _plug_in_two_pods(user=tier.isolation["user"]))
    if problem is not None:
        return replace(tier, reason=f"pods can have no network of their own here ({problem})")
    return replace(tier, name="T2", reason="every pod has a network of its own")


def _plug_in_two_pods(*, user: bool) -> None:
    bridge = podnetwork.make_bridge(user=user)
    for number in (1, 2):
        podnetwork.plug_in(bridge, f"probe-{number}", f"10.128.0.{number}")


def try_all() -> Tier:
    """The best tier without networks that works, tried in children of this process."""
    refusal = ""
    # In a user namespace root loses its rights over other users' files, so root tries without one first.
    for user in (False, True) if os.geteuid() == 0 else (True,):
        for pid in (True, False):
            isolation: Isolation = {"user": user, "mount": True, "pid": pid}
            problem = _try(isolation)
            if problem is None:
                other_users = user or _try({**isolation, "user": True}) is None
                said = refusal or "all namespaces that tier T1 uses are allowed"
                return Tier("T1", isolation, said, other_users)
            refusal = problem
    return plain(f"namespaces are not allowed here ({refusal}): pods are plain processes")


def _try(isolation: Isolation) -> str | None:
    """Tries to enter these namespaces in a child process. Returns None, or the error."""

    def enter() -> None:
        syscalls.unshare(user=isolation["user"], pid=isolation["pid"])
        syscalls.set_hostname("probe")
        syscalls.bind(os.devnull, "/etc/hosts")
        if isolation["pid"]:
            _mount_proc_as_process_one()

    return _try_in_child(enter)


def _try_in_child(attempt: Callable[[], None]) -> str | None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    problem = b""
    while chunk := os.read(reader, 4096):
        problem += chunk
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if status:
        return f"the probe ended with status {status}"
    return problem.decode(errors="replace") or None


def _mount_proc_as_process_one() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            syscalls.mount_proc()
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    problem = os.read(reader, 4096)
    os.close(reader)
    os.waitpid(child, 0)
    if problem:
        raise PermissionError(problem.decode(errors="replace"))


if __name__ == "__main__":
    found = try_all()
    print(json.dumps(asdict(with_networks(found) if NETWORKS in sys.argv[1:] else found)))
