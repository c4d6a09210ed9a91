"""Resolves a pod to what its supervisor runs.

In: a Pod, the ConfigMaps and Secrets it names, and what the node allocated to it: address, ports, directory. Out: a
`PodToRun` and its volumes, with nothing left to resolve. Pure. Raises `Unresolved` (from `environment`) when something
that the pod names does not exist yet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.embedded.node import environment, volumes
from trainwright.embedded.node.addresses import LOOPBACK, PodDomain, Rewriter, host_aliases
from trainwright.embedded.node.declarations import declared
from trainwright.embedded.node.directories import MARKER
from trainwright.embedded.node.environment import Facts, Sources
from trainwright.embedded.node.record import ContainerToRun, PodDirectory, PodToRun
from trainwright.embedded.node.support import replaced_mounts, wanted_mounts
from trainwright.embedded.node.tiers import Tier
from trainwright.embedded.node.volumes import Volume
from trainwright.schema.jsonobject import Json

_INHERITED = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "CUDA_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
)
"""Variables that a container inherits from the machine, in place of an image's own. `LC_*` and `*_HOME` (where programs
are installed and keep their caches) are inherited too.
"""


def machine_variables(environ: Mapping[str, str], services: Iterable[str] = ()) -> dict[str, str]:
    """The variables that every container starts with. The directory of our own Python comes first on PATH.

    `services` are names that resolve to this machine: if the machine has a proxy, they bypass it.
    """
    inherited = {
        name: value
        for name, value in environ.items()
        if name in _INHERITED or name.startswith("LC_") or name.endswith("_HOME")
    }
    path = inherited.get("PATH", os.defpath)
    direct = [LOOPBACK, *services]
    if len(direct) > 1 and any(name.lower() in ("http_proxy", "https_proxy") for name in inherited):
        others = inherited.get("no_proxy") or inherited.get("NO_PROXY")
        exempt = ",".join([others, *direct] if others else direct)
        inherited |= {"no_proxy": exempt, "NO_PROXY": exempt}
    # Unbuffered output: a training job's last line should be on disk before its process dies.
    return {**inherited, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the node allocates to a pod.

    `hosts` are names of services with their addresses. `working_directory` is for containers that name none; by default
    it is a directory of the pod.
    """

    directory: PodDirectory
    tier: Tier
    address: str
    facts: Facts
    machine: Mapping[str, str]
    notify: Path
    hosts: Mapping[str, str] = field(default_factory=dict)
    working_directory: Path | None = None


def domain_of(pod: Json) -> PodDomain:
    """The DNS domain of the pod: that of its headless service, or one of its own."""
    metadata, spec = pod["metadata"], pod["spec"]
    return metadata["namespace"], spec.get("subdomain") or metadata["uid"]


def hostname_of(pod: Json) -> str:
    """The pod's host name as a kubelet sets it: `hostname` or the pod's name, cut to 63 characters."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


class Launch:
    """A pod that is being prepared: `ports` says which ports it needs, `pod_to_run` puts it together with them."""

    def __init__(self, pod: Json, allocation: Allocation, sources: Sources, tokens: Mapping[str, str]) -> None:
        spec = pod["spec"]
        self.pod = pod
        self.allocation = allocation
        self.volumes: dict[str, Volume] = volumes.volumes(
            pod, allocation.directory.volumes, sources, allocation.facts, tokens
        )
        self._rewriter = Rewriter(
            pod["metadata"]["namespace"],
            spec.get("subdomain") or "",
            declared(pod),
            {**allocation.hosts, **host_aliases(pod)},
        )
        self._variables = {
            container["name"]: environment.variables(container, pod, sources, allocation.facts)
            for container in (spec.get("initContainers") or []) + spec["containers"]
        }

    def ports(self) -> set[int]:
        """The ports at which the containers expect their job's processes to meet."""
        return {
            port
            for container in self._containers("initContainers") + self._containers("containers")
            for port in self._rewriter.ports(self._variables[container["name"]], self._words(container))
        }

    def pod_to_run(self, ports: Mapping[int, int]) -> PodToRun:
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace = spec.get("terminationGracePeriodSeconds")
        return {
            "uid": metadata["uid"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "subdomain": spec.get("subdomain") or "",
            "hostname": hostname_of(self.pod),
            "address": self.allocation.address,
            "ports": {str(port): here for port, here in ports.items()},
            "isolation": self.allocation.tier.isolation,
            "restartPolicy": spec.get("restartPolicy", "Always"),
            "terminationGracePeriodSeconds": 30 if grace is None else grace,
            "initContainers": [self._container(container, ports) for container in self._containers("initContainers")],
            "containers": [self._container(container, ports) for container in self._containers("containers")],
            "notify": str(self.allocation.notify),
        }

    def _containers(self, field: str) -> list[Json]:
        return self.pod["spec"].get(field) or []

    def _words(self, container: Json) -> list[str]:
        return environment.command_line(container, {})

    def _container(self, container: Json, ports: Mapping[int, int]) -> ContainerToRun:
        to_loopback = self.allocation.address == LOOPBACK
        own = {
            name: self._rewriter.variable(name, value, ports, to_loopback=to_loopback)
            for name, value in self._variables[container["name"]].items()
        }
        for mount in replaced_mounts(self.pod, container, self.allocation.tier):
            own = _led_to(self.volumes[mount["name"]].path, mount["mountPath"].rstrip("/"), own)
        argv = self._rewriter.arguments(environment.command_line(container, own), ports, to_loopback=to_loopback)
        default = self.allocation.working_directory or self.allocation.directory.work
        return {
            "name": container["name"],
            "argv": argv,
            "env": {
                **self.allocation.machine,
                "HOSTNAME": hostname_of(self.pod),
                **own,
                MARKER: self.pod["metadata"]["uid"],
            },
            "cwd": container.get("workingDir") or str(default),
            "mounts": volumes.mounts(
                {**container, "volumeMounts": wanted_mounts(self.pod, container, self.allocation.tier)},
                self.volumes,
                own,
            ),
        }


def _led_to(here: Path, mount_path: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, with paths inside the mount replaced by the same paths on this machine."""
    return {
        name: f"{here}{value.removeprefix(mount_path)}" if f"{value}/".startswith(f"{mount_path}/") else value
        for name, value in variables.items()
    }
