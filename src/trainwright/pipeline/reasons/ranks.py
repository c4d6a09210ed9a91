"""The rank that printed a line.

A pod is one node of the training and may run several ranks. Four things tell which of them printed a line:

    [rank3]: …      torch marks its own messages with the rank in the whole training
    [E ProcessGroupNCCL.cpp:737] [Rank 3] …     so did older ones, in errors of their process groups
    [default1]:…    `torchrun --tee` marks every line with its role and the rank on this node
    one process     a node that runs one process has one rank

Otherwise the line gets the node's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.pipeline.reasons.evidence import label_of
from trainwright.schema.jsonobject import Json

TORCH_MARK = re.compile(r"\[rank(\d+)\]: ?")
GROUP_MARK = re.compile(r"\[[EFW][^\]]*ProcessGroup\w+\.cpp:\d+\] \[Rank (\d+)\] ")
TEE_MARK = re.compile(r"\[([A-Za-z_][\w.-]*?)(\d+)\]:")
ROLE = "default"
"""torchrun's role, unless `--role` or `PET_ROLE` names another."""
MARKS = re.compile(rf"(?:\[{ROLE}\d+\]:)?(?:{TORCH_MARK.pattern})?")

PROCESSES_FLAG = re.compile(r"--nproc[-_]per[-_]node(?:=|\s+)(\S+)")
ROLE_FLAG = re.compile(r"--role(?:=|\s+)(\S+)")


class Attribution(NamedTuple):
    label: str
    rank: int | None
    text: str
    """The line without the marks."""
    is_marked: bool
    """Whether a mark says that this is a rank's own line, and not its launcher's."""


class Speaker(NamedTuple):
    """A pod as the source of lines."""

    label: str
    node: int | None
    processes: int | None
    """The number of ranks that the pod runs, if it is known before the pod starts."""
    role: str = ROLE

    def attribute(self, line: str) -> Attribution:
        text, local = line, None
        if line.startswith("["):
            if (mark := TEE_MARK.match(line)) and self._is_tee(mark):
                text, local = line[mark.end() :], int(mark[2])
            if mark := TORCH_MARK.match(text):
                return _of_rank(int(mark[1]), text[mark.end() :], is_marked=True)
            if mark := GROUP_MARK.match(text):
                return _of_rank(int(mark[1]), text, is_marked=True)
        if local is not None:
            return self._of_local_rank(local, text)
        if self.node is not None and self.processes == 1:
            return _of_rank(self.node, line, is_marked=False)
        return Attribution(self.label, None, line, is_marked=False)

    def _is_tee(self, mark: re.Match[str]) -> bool:
        """Whether this is torchrun's mark, and not the beginning of a line that looks like one."""
        return (
            self.node is not None and mark[1] == self.role and (self.processes is None or int(mark[2]) < self.processes)
        )

    def _of_local_rank(self, local: int, text: str) -> Attribution:
        if self.node == 0:
            return _of_rank(local, text, is_marked=True)
        if self.node is not None and self.processes is not None:
            return _of_rank(self.node * self.processes + local, text, is_marked=True)
        return Attribution(f"{self.label} process {local}", None, text, is_marked=True)


def without_marks(line: str) -> str:
    """The line as the program printed it, for a place that has named the rank already."""
    return MARKS.sub("", line, count=1) if line.startswith("[") else line


def _of_rank(rank: int, text: str, *, is_marked: bool) -> Attribution:
    return Attribution(f"rank {rank}", rank, text, is_marked)


def speaker(pod: Json) -> Speaker:
    labels = pod["metadata"].get("labels") or {}
    index = labels.get(COMPLETION_INDEX)
    if labels.get(REPLICATED_JOB) != "node" or index is None:
        return Speaker(label_of(pod), None, None)
    return Speaker(label_of(pod), int(index), _processes(pod), _role(pod))


def _processes(pod: Json) -> int | None:
    """Ranks per pod: what torchrun is told, by flag or by variable, if that is a number; one if it is told nothing."""
    for value in _told(pod, PROCESSES_FLAG, "PET_NPROC_PER_NODE"):
        return int(value) if value.isdecimal() and int(value) > 0 else None
    return 1


def _role(pod: Json) -> str:
    return next(_told(pod, ROLE_FLAG, "PET_ROLE"), ROLE)


def _told(pod: Json, flag: re.Pattern[str], variable: str) -> Iterator[str]:
    """What the containers' command lines and variables say. A flag wins over a variable, as for torchrun."""
    containers = (pod.get("spec") or {}).get("containers") or []
    for container in containers:
        words = (container.get("command") or []) + (container.get("args") or [])
        if found := flag.search(" ".join(words)):
            yield found[1].strip("'\"")
    for container in containers:
        for item in container.get("env") or []:
            if item["name"] == variable and "value" in item:
                yield str(item["value"] or "")
