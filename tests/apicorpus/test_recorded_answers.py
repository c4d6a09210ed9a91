"""The embedded server answers as kube-apiserver 1.36.4 answered when the conversations in scenarios/ were recorded.

`scenarios/` came with the project, `more/` was recorded for it on the same server. Every `must` and every `should`
check has to hold. docs/embedded.md lists the `could` checks that differ (answers with status 500, texts that quote Go's
internals).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apicorpus import replay
from apicorpus.connection import Client
from apicorpus.definitions import install_missing
from apicorpus.judgement import facets_of
from apicorpus.runner import Runner
from apiserver_process import ApiServerProcess, api_server_process

HERE = Path(__file__).parent
BOB = "a-token-for-bob"
SCENARIOS = replay.load([str(HERE / "scenarios"), str(HERE / "more")])
MEANT = {
    # A TrainJob can be scaled since elastic training; Kubeflow Trainer's, which was recorded, cannot.
    "discovery-aggregated": "extract/trainjobs/subresources: expected 1 elements, got 2",
}
"""What our own CRDs have on purpose and the recorded ones have not: the one difference of a scenario, and a must."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcess]:
    directory = tmp_path_factory.mktemp("apicorpus") / "state"
    with api_server_process(directory, "--user", BOB, "bob", "corpus-guests", "system:authenticated") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ApiServerProcess) -> Iterator[Client]:
    client = Client(server.url, {"admin": server.token, "bob": BOB}, str(server.ca))
    _, missing = install_missing(client, SCENARIOS, [str(HERE / "crds")])
    assert not missing
    yield client
    client.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario["name"]))
def test_answers_as_recorded(scenario: dict[str, Any], client: Client) -> None:
    differences: list[str] = []
    for result in Runner(client, scenario).go():
        assert result.skip is None, result.skip
        worst, found = result.verdict(facets_of(scenario))
        if worst in ("must", "should"):
            differences.append(f"step {result.step} ({worst}) {result.request} {result.desc}: {found[:6]}")
    if meant := MEANT.get(str(scenario["name"])):
        assert len(differences) == 1, "\n".join(differences)
        assert meant in differences[0]
        return
    assert not differences, "\n".join(differences)
