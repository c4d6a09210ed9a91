"""Resolves a pod to what its supervisor runs.

In: a Pod, the ConfigMaps and Secrets it names, and what the node allocated to it: address, ports, directory. Out: a
`PodToRun` and its volumes, with nothing left to resolve. Pure. Raises `Unresolved` (from `environment`) when something
that the pod names does not exist yet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.api.wellknown import WORKDIR
from trainwright.embedded.node.network.addresses import LOOPBACK, PodDomain, PortName, Rewriter, host_aliases, port_here
from trainwright.embedded.node.pods.directories import MARKER
from trainwright.embedded.node.pods.record import ContainerToRun, PodDirectory, PodToRun
from trainwright.embedded.node.podspec import environment, handlers, users
from trainwright.embedded.node.podspec.declarations import declared
from trainwright.embedded.node.podspec.environment import Facts, Sources
from trainwright.embedded.node.podspec.runs import RunOfPod
from trainwright.embedded.node.podspec.support import replaced_mounts, wanted_mounts
from trainwright.embedded.node.remoteshell.programs import SSHD_PORT, Shell
from trainwright.embedded.node.resources.allotment import Allotted
from trainwright.embedded.node.storage import volumes
from trainwright.embedded.node.storage.volumes import Volume
from trainwright.embedded.node.supervision import cgroups
from trainwright.embedded.node.supervision.cgroups import Delegation
from trainwright.embedded.node.supervision.crilog import MAX_FILES, MAX_FILES_OF_A_RUN
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

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
    it is a directory of the pod. `run` is the run that the pod belongs to, if any; `shell` is for a pod that reaches
    others by ssh. Of the directory `hidden`, the cluster's own, its containers see only what they need. `allotted` are
    its GPUs and CPUs; `shown` are the variables that show each container its GPUs. `limits` is where the kernel keeps
    its limits. `network` is the directory of the job's own network, None for the machine's, and `reachable` the ports
    of the machine that are reached from there.
    """

    directory: PodDirectory
    tier: Tier
    address: str
    facts: Facts
    machine: Mapping[str, str]
    notify: Path
    hosts: Mapping[str, str] = field(default_factory=dict)
    working_directory: Path | None = None
    run: RunOfPod | None = None
    hidden: Path | None = None
    allotted: Allotted = field(default_factory=Allotted)
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shell: Shell | None = None
    limits: Delegation = field(default_factory=lambda: cgroups.none(""))
    network: Path | None = None
    reachable: Sequence[int] = ()


OUTPUT = "TRAINWRIGHT_OUTPUT"
"""The variable with the run's output directory, which outlives the pod and the job."""


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
        self._declared = declared(pod)
        self._rewriter = Rewriter(
            pod["metadata"]["namespace"],
            spec.get("subdomain") or "",
            self._declared,
            {**allocation.hosts, **host_aliases(pod)},
        )
        self._variables = {
            container["name"]: environment.variables(container, pod, sources, allocation.facts)
            for container in (spec.get("initContainers") or []) + spec["containers"]
        }

    def ports(self) -> set[PortName]:
        """The ports at which the containers expect their job's processes to meet."""
        return {
            port
            for container in self._containers("initContainers") + self._containers("containers")
            for port in self._rewriter.ports(self._variables[container["name"]], self._words(container))
        }

    def hostfile(self) -> str | None:
        """The content of the hostfile that the pod declares, or None."""
        path = self._declared.mpi_hostfile
        every = (container.get("volumeMounts") or () for container in self._containers("containers"))
        for mount in (mount for mounts in every for mount in mounts):
            directory = mount["mountPath"].rstrip("/")
            volume = self.volumes.get(mount["name"])
            if path.startswith(f"{directory}/") and volume is not None:
                file = volume.files.get(path.removeprefix(f"{directory}/"))
                if file is not None:
                    return file.content.decode(errors="replace")
        return None

    def pod_to_run(self, ports: Mapping[PortName, int]) -> PodToRun:
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace = spec.get("terminationGracePeriodSeconds")
        run = self.allocation.run
        return {
            "uid": metadata["uid"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "subdomain": spec.get("subdomain") or "",
            "hostname": hostname_of(self.pod),
            "address": self.allocation.address,
            "ports": dict(ports),
            "isolation": self.allocation.tier.isolation,
            "restartPolicy": spec.get("restartPolicy", "Always"),
            "terminationGracePeriodSeconds": 30 if grace is None else grace,
            "initContainers": [self._container(container, ports) for container in self._containers("initContainers")],
            "containers": [self._container(container, ports) for container in self._containers("containers")],
            "notify": str(self.allocation.notify),
            "environment": str(run.environment) if run else "",
            "logFiles": MAX_FILES_OF_A_RUN if run else MAX_FILES,
            "pythonPath": str(run.python) if run and run.python else "",
            "devices": {name: dict(found) for name, found in self.allocation.allotted.devices.items()},
            "cpus": list(self.allocation.allotted.cpus),
            "path": self.allocation.shell.path() if self.allocation.shell else [],
            "hidden": str(self.allocation.hidden or "") if self.allocation.tier.isolation["mount"] else "",
            "shown": self._shown(),
            "ownMemory": self.allocation.shell.memory() if self.allocation.shell else [],
            "cgroups": {
                "directory": self.allocation.limits.directory,
                "controllers": list(self.allocation.limits.controllers),
            },
            "network": str(self.allocation.network or ""),
            "reachable": list(self.allocation.reachable) if self.allocation.network else [],
        }

    def _shown(self) -> list[str]:
        """What containers may see of the hidden directory: where they work, their run's output, the programs they are
        given.
        """
        hidden = self.allocation.hidden
        if hidden is None:
            return []
        containers = self._containers("initContainers") + self._containers("containers")
        wanted = [Path(self._working_directory(container)) for container in containers]
        if run := self.allocation.run:
            wanted += [run.output, *([run.python] if run.python else [])]
        if shell := self.allocation.shell:
            wanted += [shell.directory, *map(Path, shell.path())]
        real = {Path(os.path.realpath(path)) for path in wanted}  # the hidden directory is named by its real path
        return sorted(str(path) for path in real if path.is_relative_to(hidden) and path != hidden)

    def _containers(self, field: str) -> list[Json]:
        return self.pod["spec"].get(field) or []

    def _words(self, container: Json) -> list[str]:
        return environment.command_line(container, {})

    def _container(self, container: Json, ports: Mapping[PortName, int]) -> ContainerToRun:
        to_loopback = self.allocation.address == LOOPBACK
        run = self.allocation.run
        own = {OUTPUT: str(run.output)} if run else {}
        own |= {
            name: self._rewriter.variable(name, value, ports, to_loopback=to_loopback)
            for name, value in self._variables[container["name"]].items()
        }
        for name, value in self.allocation.shown.get(container["name"], {}).items():
            # A pod that asks for no GPU sees none, as in a cluster, unless it says itself which ones it means.
            if value or name not in own:
                own[name] = value
        for mount in replaced_mounts(self.pod, container, self.allocation.tier):
            own = _led_to(self.volumes[mount["name"]].path, mount["mountPath"].rstrip("/"), own)
        argv = self._rewriter.arguments(environment.command_line(container, own), ports, to_loopback=to_loopback)
        own |= {"HOSTNAME": own.get("HOSTNAME", hostname_of(self.pod)), MARKER: self.pod["metadata"]["uid"]}
        default = dict(self.allocation.machine)
        if self.allocation.shell is not None and container["name"] in self._declared.remote_shell:
            argv = self.allocation.shell.words(argv)
            default |= self.allocation.shell.variables(
                self.allocation.address, _sshd_port(container), self.hostfile(), self._declared.mpi_hostfile
            )
        result: ContainerToRun = {
            "name": container["name"],
            "argv": argv,
            "env": {**default, **own},
            "replaceable": sorted(default.keys() - own.keys()),
            "cwd": self._working_directory(container),
            "mounts": volumes.mounts(
                {**container, "volumeMounts": wanted_mounts(self.pod, container, self.allocation.tier)},
                self.volumes,
                own,
            ),
        }
        self._add_lifecycle(result, container, ports)
        return result

    def _add_lifecycle(self, result: ContainerToRun, container: Json, ports: Mapping[PortName, int]) -> None:
        """Adds probes, hooks, user, limit and restart policy, where the container has them."""

        def here(port: int) -> int:
            return port_here(ports, hostname_of(self.pod), port)

        if probes := handlers.probes(container, self.allocation.address, here):
            result["probes"] = probes
        if (post_start := handlers.hook(container, "postStart", self.allocation.address, here)) is not None:
            result["postStart"] = post_start
        if (pre_stop := handlers.hook(container, "preStop", self.allocation.address, here)) is not None:
            result["preStop"] = pre_stop
        if (run_as := users.run_as(self.pod["spec"], container)) is not None:
            result["runAs"] = run_as
        limits = (container.get("resources") or {}).get("limits") or {}
        if (limit := limits.get("memory")) is not None:
            result["memoryLimit"] = parse_quantity(limit).value()
        if (limit := limits.get("cpu")) is not None:
            result["milliCpuLimit"] = -(-parse_quantity(limit).nano // 10**6)
        if policy := container.get("restartPolicy"):
            result["restartPolicy"] = policy
        if rules := container.get("restartPolicyRules"):
            codes = [rule["exitCodes"] for rule in rules]
            result["restartOnExitCodes"] = [(code["operator"], code.get("values") or []) for code in codes]

    def _working_directory(self, container: Json) -> str:
        """The directory that the run asks for, else the container's own, else the node's for such pods. Pods that reach
        each other have one together.
        """
        asked = (self.pod["metadata"].get("annotations") or {}).get(WORKDIR)
        shell = self.allocation.shell
        own = self.allocation.directory.work if shell is None else shell.work
        default = self.allocation.working_directory or own
        return asked or container.get("workingDir") or str(default)


def _sshd_port(container: Json) -> int:
    """The port that the container's readiness probe asks, where its sshd has to answer."""
    port = ((container.get("readinessProbe") or {}).get("tcpSocket") or {}).get("port")
    return port if isinstance(port, int) else SSHD_PORT


def _led_to(here: Path, mount_path: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, with paths inside the mount replaced by the same paths on this machine."""
    return {
        name: f"{here}{value.removeprefix(mount_path)}" if f"{value}/".startswith(f"{mount_path}/") else value
        for name, value in variables.items()
    }
