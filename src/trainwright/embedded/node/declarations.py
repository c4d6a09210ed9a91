"""Annotations by which a pod tells a node that runs many pods on one machine about its ports and volumes.

In: a pod. Out: the variables and command-line flags that hold a port which must be the job's own, and the volumes that
the pod can do without. The pod's maker sets them, usually a plugin: the node knows no framework. Each annotation is a
list of names separated by commas; docs/node.md describes them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.api.wellknown import OPTIONAL_VOLUMES, PORT_FLAGS, PORT_VARIABLES
from trainwright.schema.jsonobject import Json


@dataclass(frozen=True, slots=True)
class Declarations:
    """The three annotations of one pod."""

    port_variables: frozenset[str] = frozenset()
    port_flags: frozenset[str] = frozenset()
    optional_volumes: frozenset[str] = frozenset()


NOTHING_DECLARED = Declarations()


def declared(pod: Json) -> Declarations:
    annotations = pod["metadata"].get("annotations") or {}

    def names(annotation: str) -> frozenset[str]:
        return frozenset(filter(None, map(str.strip, (annotations.get(annotation) or "").split(","))))

    return Declarations(names(PORT_VARIABLES), names(PORT_FLAGS), names(OPTIONAL_VOLUMES))
