"""Annotations by which a pod tells a node that runs many pods on one machine about its ports, volumes and remote shell.

In: a pod. Out: the variables and command-line flags that hold a port which must be the job's own, or each pod's own;
the volumes that the pod can do without; the containers that reach other pods by ssh, or are reached. The pod's maker
sets them, usually a plugin: the node knows no framework. Each annotation but that of the hostfile is a list of names
separated by commas; docs/node.md describes them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.api.wellknown import (
    MPI_HOSTFILE,
    OPTIONAL_VOLUMES,
    PEER_VARIABLES,
    PORT_FLAGS,
    PORT_VARIABLES,
    REMOTE_SHELL,
)
from trainwright.schema.jsonobject import Json


@dataclass(frozen=True, slots=True)
class Declarations:
    """The annotations of one pod. `mpi_hostfile` is a path in the container."""

    port_variables: frozenset[str] = frozenset()
    port_flags: frozenset[str] = frozenset()
    optional_volumes: frozenset[str] = frozenset()
    remote_shell: frozenset[str] = frozenset()
    mpi_hostfile: str = ""
    peer_variables: frozenset[str] = frozenset()


NOTHING_DECLARED = Declarations()


def declared(pod: Json) -> Declarations:
    annotations = pod["metadata"].get("annotations") or {}

    def names(annotation: str) -> frozenset[str]:
        return frozenset(filter(None, map(str.strip, (annotations.get(annotation) or "").split(","))))

    return Declarations(
        names(PORT_VARIABLES),
        names(PORT_FLAGS),
        names(OPTIONAL_VOLUMES),
        names(REMOTE_SHELL),
        annotations.get(MPI_HOSTFILE) or "",
        names(PEER_VARIABLES),
    )
