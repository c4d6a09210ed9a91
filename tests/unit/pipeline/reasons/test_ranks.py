"""Lines carry the rank that printed them, if it is known."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.pipeline.reasons.ranks import speaker, without_marks


def pod(job: str, index: str | None, processes: str | None, *command: str, **env: str) -> dict[str, Any]:
    labels = {REPLICATED_JOB: job} | ({COMPLETION_INDEX: index} if index is not None else {})
    env |= {"PET_NPROC_PER_NODE": processes} if processes else {}
    variables = [{"name": name, "value": value} for name, value in env.items()]
    container = {"name": "node", "env": variables, "command": list(command)}
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("job", "index", "processes", "line", "expected"),
    [
        ("node", "1", "2", "[default1]:hello", ("rank 3", "hello")),
        ("node", "1", "2", "a warning of torchrun's own", ("node-1", "a warning of torchrun's own")),
        ("node", "4", None, "hello", ("rank 4", "hello")),
        ("node", "0", "auto", "[default1]:hello", ("rank 1", "hello")),
        ("node", "1", "auto", "[default1]:hello", ("node-1 process 1", "hello")),
        ("launcher", "0", None, "hello", ("launcher-0", "hello")),
        ("dataset-initializer", "0", None, "done", ("dataset-initializer", "done")),
    ],
)
def test_a_line_is_attributed(
    job: str, index: str, processes: str | None, line: str, expected: tuple[str, str]
) -> None:
    label, _, text, _ = speaker(pod(job, index, processes)).attribute(line)
    assert (label, text) == expected


@pytest.mark.parametrize(
    ("index", "processes", "line", "rank", "text"),
    [
        ("1", "1", "[rank1]: Traceback (most recent call last):", 1, "Traceback (most recent call last):"),
        ("1", "1", '[rank1]:   File "/work/train.py", line 3', 1, '  File "/work/train.py", line 3'),
        ("1", "2", "[rank3]: ValueError: no data", 3, "ValueError: no data"),
        ("1", "2", "[default1]:[rank3]: ValueError: no data", 3, "ValueError: no data"),
        ("0", "8", "[rank5]:[W1116 18:02:11 socket.cpp:200] retry", 5, "[W1116 18:02:11 socket.cpp:200] retry"),
        ("1", "gpu", "[default0]:[rank4]: CUDA out of memory", 4, "CUDA out of memory"),
    ],
)
def test_torchs_own_mark_is_the_rank_in_the_whole_training(
    index: str, processes: str, line: str, rank: int, text: str
) -> None:
    found = speaker(pod("node", index, processes)).attribute(line)
    assert (found.rank, found.text, found.is_marked) == (rank, text, True)


@pytest.mark.parametrize("line", ["[epoch1]: loss 0.5", "[default7]: the eighth of two", "[step12]:", "[rank]: none"])
def test_a_line_that_looks_like_a_mark_stays_whole(line: str) -> None:
    label, rank, text, is_marked = speaker(pod("node", "1", "2")).attribute(line)
    assert (label, rank, text, is_marked) == ("node-1", None, line, False)


def test_a_flag_of_torchrun_wins_over_its_variable() -> None:
    by_flag = speaker(pod("node", "1", "1", "torchrun", "--nproc-per-node", "4", "train.py"))
    assert by_flag.attribute("[default3]:hello").rank == 7
    in_a_shell = speaker(pod("node", "1", "1", "bash", "-c", "torchrun --nproc_per_node=2 train.py"))
    assert in_a_shell.attribute("[default1]:hello").rank == 3
    assert in_a_shell.attribute("of the launcher").label == "node-1"


def test_the_role_of_a_mark_is_what_torchrun_was_told() -> None:
    assert speaker(pod("node", "4", "1", PET_ROLE="trainer")).attribute("[trainer0]:hello").text == "hello"
    assert speaker(pod("node", "4", "2", "torchrun", "--role=actor")).attribute("[actor1]:hello").rank == 9


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("[default1]:[rank3]: ValueError: x", "ValueError: x"),
        ("[rank1]:     raise", "    raise"),
        ("[default0]:hi", "hi"),
        ("[3] plain", "[3] plain"),
        ("plain [rank1]: x", "plain [rank1]: x"),
    ],
)
def test_where_the_rank_is_named_already_a_line_has_no_marks(line: str, printed: str) -> None:
    assert without_marks(line) == printed
