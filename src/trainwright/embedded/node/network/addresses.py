"""Names, addresses and ports by which the pods of one job find each other on one machine.

All pods share the machine's network. Each gets its own 127.x.y.z, and each pod's /etc/hosts names all pods of its
headless service, so `<hostname>.<subdomain>` resolves as it does in a cluster. Some servers bind every address and
would still meet another job's on the same port. So each job gets its own port in place of each one it names: after the
host name of one of its pods, and in the variables and flags that the pod declares (`declarations`). Where every pod
listens, as TensorFlow's do, the pods declare the variable that names them, and each pod in it gets its own port.
Services that the control plane itself serves are named beside the pods. Tier T0 has no /etc/hosts of its own: names of
pods become 127.0.0.1, those of services the service's address. In tier T2 every pod has a network of its own, with an
address of 10.128.0.0/10, and no port is replaced.

Pure except for what is chosen at random: the first address, and `free_port`, which also asks the kernel.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from trainwright.embedded.node.podspec.declarations import NOTHING_DECLARED, Declarations
from trainwright.schema.jsonobject import Json

LOOPBACK = "127.0.0.1"

# Resolvers and distributions use addresses in 127.0.0.0/16; nothing known uses those above 127.64.
_FIRST = (127 << 24) + (64 << 16) + 1
_FIRST_OF_NETWORKS = (10 << 24) + (128 << 16) + 1
_COUNT = (64 << 16) - 2

# Below the kernel's ephemeral ports, so that no outgoing connection takes a job's port first.
_PORTS = range(20000, 32000)

PodDomain = tuple[str, str]
"""Namespace and subdomain: the DNS domain that the pods of a headless service share, and may name each other in. A pod
without a subdomain is alone in a domain named after its uid.
"""

PortName = str
"""A port as a job names it: `29500` for the whole job, `HOST:2222` for that of one of its pods."""

_PORT = "[0-9]{1,5}"
_PORT_AT_END = re.compile(rf"(.*:)?({_PORT})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PodName:
    """The names and the address by which other pods find a pod."""

    namespace: str
    hostname: str
    subdomain: str
    address: str

    def hosts_line(self) -> str:
        """The pod's line in /etc/hosts. The full name is first: a reverse look-up returns it as the canonical name."""
        names = [self.hostname]
        if self.subdomain:
            short = f"{self.hostname}.{self.subdomain}"
            names = [f"{short}.{self.namespace}.svc.cluster.local", f"{short}.{self.namespace}.svc", short, *names]
        return f"{self.address}\t{' '.join(names)}"


def hosts_file(pods: Iterable[PodName], services: Mapping[str, str], machine: str) -> str:
    """A pod's /etc/hosts: its job's pods, the cluster's services by name, then the machine's own file."""
    lines = [pod.hosts_line() for pod in sorted(pods, key=lambda pod: (pod.hostname, pod.address))]
    lines += [f"{address}\t{name}" for name, address in services.items()]
    return "\n".join(
        ["# Kept by trainwright: this pod's job and the cluster's services, then the machine's own.", *lines, machine]
    )


def host_aliases(pod: Json) -> dict[str, str]:
    """The names that a pod's spec adds to its /etc/hosts, with their addresses."""
    aliases = pod["spec"].get("hostAliases") or ()
    return {name: str(alias["ip"]) for alias in aliases for name in alias.get("hostnames") or ()}


@dataclass(slots=True)
class Addresses:
    """The addresses of the pods. No two pods have the same one.

    They begin at random: pods of two clusters on one machine are not to meet, and some listen on a port that nobody
    replaces (an sshd on 2222). Two clusters of 100 pods share an address once in 20,000 times.
    """

    taken: dict[str, str] = field(default_factory=dict)
    _next: int = field(default_factory=lambda: secrets.randbelow(_COUNT))
    networks: bool = False
    """Whether every pod has a network of its own."""

    def of(self, uid: str) -> str:
        """The pod's address; a new one if it has none yet."""
        if uid not in self.taken:
            used = set(self.taken.values())
            first = _FIRST_OF_NETWORKS if self.networks else _FIRST
            while (address := _dotted(first + self._next % _COUNT)) in used:
                self._next += 1
            self._next += 1
            self.taken[uid] = address
        return self.taken[uid]

    def release(self, uid: str) -> None:
        self.taken.pop(uid, None)


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


@dataclass(slots=True)
class Ports:
    """For each job, the ports of this machine that stand for the ports the job names."""

    taken: dict[PodDomain, dict[PortName, int]] = field(default_factory=dict)

    def of(self, domain: PodDomain, ports: Iterable[PortName]) -> dict[PortName, int]:
        """The machine's ports for the ports a job names; new ones are chosen for those it has not named before."""
        mapping = self.taken.setdefault(domain, {})
        for port in ports:
            if port not in mapping:
                used = {number for others in self.taken.values() for number in others.values()}
                mapping[port] = free_port(used)
        return dict(mapping)

    def release(self, domain: PodDomain) -> None:
        self.taken.pop(domain, None)


def port_here(ports: Mapping[PortName, int], hostname: str, port: int) -> int:
    """The machine's port for a port of the pod with this host name: the pod's own, the job's, or the port itself."""
    return ports.get(f"{hostname}:{port}", ports.get(str(port), port))


def free_port(used: set[int]) -> int:
    """A port that no process listens on and that is not in `used`.

    The search starts at a random port: the job takes seconds to bind the port it gets, and meanwhile another cluster
    on this machine may search too.
    """
    first = secrets.randbelow(len(_PORTS))
    for offset in range(len(_PORTS)):
        port = _PORTS[(first + offset) % len(_PORTS)]
        if port not in used and _is_free(port):
            return port
    raise OSError(f"no free port between {_PORTS.start} and {_PORTS.stop - 1} for a job's processes to meet at")


def _is_free(port: int) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            probe = socket.socket(family)
        except OSError:  # no IPv6 on this machine
            continue
        with probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True


class Rewriter:
    """Finds and replaces a job's host names and ports, and names of `services`, in its variables and arguments."""

    def __init__(
        self,
        namespace: str,
        subdomain: str,
        declared: Declarations = NOTHING_DECLARED,
        services: Mapping[str, str] | None = None,
    ) -> None:
        # A host name in the job's service, short or qualified, optionally with a port.
        label = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
        qualified = rf"{re.escape(subdomain)}(?:\.{re.escape(namespace)}(?:\.svc(?:\.cluster\.local)?)?)?"
        self._host = (
            re.compile(rf"(?<![\w.-])({label}\.{qualified})(?![\w-]|\.\w)(?::({_PORT})\b)?") if subdomain else None
        )
        self._services = services or {}
        named = _any_of(self._services)
        self._service = re.compile(rf"(?<![\w.-])({named})(?![\w-]|\.\w)") if named else None
        self._variables, self._flags = declared.port_variables, declared.port_flags
        self._peers = declared.peer_variables
        flags = _any_of(self._flags)
        self._flag = re.compile(rf"(?<![\w-])((?:{flags})(?:=|\s+))({_PORT})\b") if flags else None

    def ports(self, env: Mapping[str, str], argv: Iterable[str]) -> set[PortName]:
        """The ports at which this container expects its job's processes to meet."""
        found = {_number(match) for name in self._variables if (match := _PORT_AT_END.fullmatch(env.get(name, "")))}
        for name, text in [*env.items(), ("", " ".join(argv))]:
            named = _port_of_pod if name in self._peers else _number
            if self._host is not None:
                found |= {named(match) for match in self._host.finditer(text) if match[2]}
            if self._flag is not None:
                found |= {_number(match) for match in self._flag.finditer(text)}
        return found

    def variable(self, name: str, value: str, ports: Mapping[PortName, int], *, to_loopback: bool) -> str:
        """The variable's value with the job's ports, and in tier T0 with addresses in place of names."""
        named = _port_of_pod if name in self._peers else _number
        text = self.text(value, ports, to_loopback=to_loopback, named=named)
        if name in self._variables and text == value and (match := _PORT_AT_END.fullmatch(value)):
            return f"{match[1] or ''}{ports.get(_number(match), match[2])}"
        return text

    def text(
        self,
        text: str,
        ports: Mapping[PortName, int],
        *,
        to_loopback: bool,
        named: Callable[[re.Match[str]], PortName] | None = None,
    ) -> str:
        """The text with the job's ports, and in tier T0 with addresses in place of names."""
        name_of = named or _number

        def host(match: re.Match[str]) -> str:
            name = LOOPBACK if to_loopback else match[1]
            return name if match[2] is None else f"{name}:{ports.get(name_of(match), match[2])}"

        if self._host is not None:
            text = self._host.sub(host, text)
        if self._service is not None and to_loopback:
            text = self._service.sub(lambda match: self._services[match[1]], text)
        if self._flag is not None:
            text = self._flag.sub(lambda match: f"{match[1]}{ports.get(_number(match), match[2])}", text)
        return text

    def arguments(self, argv: list[str], ports: Mapping[PortName, int], *, to_loopback: bool) -> list[str]:
        """The arguments, each rewritten as `text` does; so is a port that follows a declared flag as an argument."""
        result = [self.text(argument, ports, to_loopback=to_loopback) for argument in argv]
        for position, flag in enumerate(argv[:-1]):
            if flag in self._flags and re.fullmatch(_PORT, port := argv[position + 1]):
                result[position + 1] = str(ports.get(str(int(port)), port))
        return result


def _number(match: re.Match[str]) -> PortName:
    """The name of a port that is the whole job's."""
    return str(int(match[2]))


def _port_of_pod(match: re.Match[str]) -> PortName:
    """The name of a port that is of the pod in front of it."""
    return f"{match[1].partition('.')[0]}:{int(match[2])}"


def _any_of(words: Iterable[str]) -> str:
    """A pattern that matches any of the words, the longest one first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
