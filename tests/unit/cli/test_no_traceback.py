"""Whatever is in a file, a command answers with an exit code and a sentence."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainwright.cli.main import main

CASES = Path(__file__).parents[2] / "conformance" / "random.jsonl"
INPUTS = [json.loads(line)["input"] for line in CASES.read_text().splitlines()[:40]]
ODD: list[Any] = [None, True, 0, -1, 3.5, "", "x", "9" * 400, 10**30, "1e999", [], {}, [1], {"a": 1}, [{}], [[]]]
ODD += [[{"name": "node"}], {"": ""}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in [(*path, key), *places(item, (*path, key))]]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(INPUTS), st.data())
def test_damaged_input_never_ends_in_a_traceback(documents: list[Any], data: st.DataObject) -> None:
    documents = json.loads(json.dumps(documents))
    for _ in range(data.draw(st.integers(1, 3))):
        document = data.draw(st.sampled_from(documents))
        *parents, last = data.draw(st.sampled_from(places(document)))
        owner = document
        for step in parents:
            owner = owner[step]
        if data.draw(st.booleans()):
            owner[last] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
        else:
            del owner[last]
    text = "\n---\n".join(json.dumps(document) for document in documents)
    for command in (["validate"], ["render"], ["explain", "-o", "json"]):
        out, err = io.StringIO(), io.StringIO()
        with _stdin(text), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*command, "-f", "-"])
        assert code in (0, 1)
        assert (
            code == 0 or out.getvalue() or err.getvalue().startswith("trainwright: ") or "warning: " in err.getvalue()
        )


@contextlib.contextmanager
def _stdin(text: str) -> Any:
    class Stream:
        buffer = io.BytesIO(text.encode())

    before, sys.stdin = sys.stdin, Stream()
    try:
        yield
    finally:
        sys.stdin = before
