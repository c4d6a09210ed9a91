"""The rank that printed a line.

A pod is one node of the training and may run several ranks. `torchrun --tee` marks each line with the local rank
(`[default1]:…`); a node with one process has one rank. Otherwise the line gets the node's name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.cli.sentences import label_of
from trainwright.schema.jsonobject import Json

TEE_MARK = re.compile(r"\[[A-Za-z_]+(\d+)\]:")


class Speaker(NamedTuple):
    """A pod as the source of lines."""

    label: str
    node: int | None
    processes: int | None
    """The number of ranks that the pod runs, if it is known before the pod starts."""

    def attribute(self, line: str) -> tuple[str, str]:
        """The label of the line, and the line without the launcher's mark."""
        if self.node is not None and (mark := TEE_MARK.match(line)) and self.processes:
            return f"rank {self.node * self.processes + int(mark[1])}", line[mark.end() :]
        if self.node is not None and self.processes == 1:
            return f"rank {self.node}", line
        return self.label, line


def speaker(pod: Json) -> Speaker:
    labels = pod["metadata"].get("labels", {})
    index = labels.get(COMPLETION_INDEX)
    is_node = labels.get(REPLICATED_JOB) == "node" and index is not None
    return Speaker(label_of(pod), int(index) if is_node else None, _processes(pod) if is_node else None)


def _processes(pod: Json) -> int | None:
    """Ranks per pod: the value of torchrun's variable if that is a number, one if it is not set."""
    for container in pod["spec"].get("containers", []):
        for variable in container.get("env", []):
            if variable["name"] == "PET_NPROC_PER_NODE":
                return int(variable["value"]) if str(variable.get("value", "")).isdigit() else None
    return 1
