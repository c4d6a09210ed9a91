"""The last lines of a container, for the summary of a failure."""

from __future__ import annotations

from typing import Any

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.cli.logs.assembly import Line
from trainwright.cli.logs.lines import TAIL, Source

TIME = "2026-01-01T00:00:01.000000000Z"


def source() -> Source:
    labels = {REPLICATED_JOB: "node", COMPLETION_INDEX: "1"}
    env = [{"name": "PET_NPROC_PER_NODE", "value": "2"}]
    pod: dict[str, Any] = {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [{"env": env}]}}
    return Source(pod, "node", 0)


def test_the_tail_keeps_the_last_lines_as_they_were_said() -> None:
    container = source()
    for number in range(TAIL + 2):
        container.hear(Line(TIME, f"[default0]:line {number}"))
    assert list(container.tail) == [f"line {number}" for number in range(2, TAIL + 2)]


def test_a_ranks_last_words_are_not_drowned_by_its_launcher() -> None:
    container = source()
    for text in ("torchrun starts", "[default0]:RuntimeError: the cause", "torchrun's own traceback"):
        container.hear(Line(TIME, text))
    assert list(container.tail) == ["RuntimeError: the cause"]
