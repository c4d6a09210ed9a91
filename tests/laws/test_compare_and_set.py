"""Compare-and-set by version is linearizable, also across kills of the server (E5).

Clients add 1 to a counter, each with the version it read. The history must be that of one register: every version has
one successor that was acknowledged, no acknowledged addition is missing, and those whose answers were lost count once
or not at all. Two rounds by default; `make test-long` runs 200.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from pathlib import Path

import pytest

from apiserver_process import ApiServerProcess

ROUNDS = int(os.environ.get("TRAINWRIGHT_HISTORIES", "2"))
CLIENTS = 6
COUNTER = "/api/v1/namespaces/default/configmaps/counter"


class Adder(threading.Thread):
    """Adds until the server is gone."""

    def __init__(self, server: ApiServerProcess) -> None:
        super().__init__(daemon=True)
        self._server = server
        self.acknowledged: list[tuple[int, int]] = []  # version before, version after
        self.unknown = 0
        self.refused = 0

    def run(self) -> None:
        connection = http.client.HTTPSConnection(
            self._server.url.removeprefix("https://"), context=self._server.context(), timeout=10
        )
        try:
            while True:
                status, found = self._send(connection, "GET", None)
                assert status == 200
                before = int(found["metadata"]["resourceVersion"])
                found["data"]["value"] = str(int(found["data"]["value"]) + 1)
                self.unknown += 1
                status, answer = self._send(connection, "PUT", found)
                self.unknown -= 1
                if status == 200:
                    self.acknowledged.append((before, int(answer["metadata"]["resourceVersion"])))
                else:
                    assert status == 409, answer
                    self.refused += 1
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _send(
        self, connection: http.client.HTTPSConnection, method: str, body: object
    ) -> tuple[int, dict[str, dict[str, str]]]:
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/json"}
        connection.request(method, COUNTER, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.timeout(120 + 20 * ROUNDS)
def test_a_counter_has_one_history(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "state", "--no-crds")
    server.start()
    counter = {"metadata": {"name": "counter"}, "data": {"value": "0"}}
    assert server.request("POST", COUNTER.rpartition("/")[0], counter)[0] == 201
    acknowledged: list[tuple[int, int]] = []
    unknown = refused = 0
    try:
        for _ in range(ROUNDS):
            adders = [Adder(server) for _ in range(CLIENTS)]
            for adder in adders:
                adder.start()
            time.sleep(0.7)
            server.kill()
            for adder in adders:
                adder.join(20)
                assert not adder.is_alive()
                acknowledged += adder.acknowledged
                unknown += adder.unknown
                refused += adder.refused
            server.start()
        value = int(server.request("GET", COUNTER)[1]["data"]["value"])
    finally:
        server.stop()
    print(f"{ROUNDS} histories: {len(acknowledged)} additions, {refused} refused, {unknown} unknown")
    befores, afters = [b for b, _ in acknowledged], [a for _, a in acknowledged]
    assert len(set(befores)) == len(befores), "two additions to the same version were acknowledged"
    assert len(set(afters)) == len(afters), "a version was given twice"
    assert all(before < after for before, after in acknowledged)
    assert len(acknowledged) > CLIENTS
    assert refused > 0, "nobody ever met another: this proves nothing"
    assert len(acknowledged) <= value <= len(acknowledged) + unknown
