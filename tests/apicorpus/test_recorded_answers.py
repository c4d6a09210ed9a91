"""The embedded server answers as kube-apiserver 1.36.4 answered when the conversations in scenarios/ were recorded.

`scenarios/` came with the project, `more/` was recorded for it on the same server. Every `must` and every `should`
check has to hold. What is judged `could` (answers with status 500, texts that quote Go's internals) is listed in
docs/embedded.md where it differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apicorpus import replay
from apiserver_process import ApiServerProcess, api_server_process

HERE = Path(__file__).parent
BOB = "a-token-for-bob"
SCENARIOS = replay.load([str(HERE / "scenarios"), str(HERE / "more")])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcess]:
    directory = tmp_path_factory.mktemp("apicorpus") / "state"
    with api_server_process(directory, "--user", BOB, "bob", "corpus-guests", "system:authenticated") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ApiServerProcess) -> Any:
    client = replay.Client(server.url, {"admin": server.token, "bob": BOB}, str(server.ca), False)
    _, missing = replay.prepare(client, SCENARIOS, [str(HERE / "crds")])
    assert not missing
    return client


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario["name"]))
def test_answers_as_recorded(scenario: dict[str, Any], client: Any) -> None:
    priorities = {**replay.FACET_PRIO, **(scenario.get("facets") or {})}
    differences: list[str] = []
    for result in replay.Runner(client, scenario).go():
        assert "skip" not in result, result["skip"]
        worst, found = replay.verdict(result, priorities)
        if worst in ("must", "should"):
            differences.append(f"step {result['step']} ({worst}) {result['request']} {result['desc']}: {found[:6]}")
    assert not differences, "\n".join(differences)
