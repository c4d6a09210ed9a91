"""kill -9 under load loses no acknowledged write, and resourceVersions never repeat.

Ten rounds by default; `TRAINWRIGHT_KILL_ROUNDS=200` for the long run (`make test-long`).
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import itertools
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from apiserver_process import ApiServerProcess
from waiting import eventually

ROUNDS = int(os.environ.get("TRAINWRIGHT_KILL_ROUNDS", "10"))
WRITERS = 6
RESTART_CPU_SECONDS = 2.0  # of CPU: how long that takes on a machine with others on it says nothing
BASE = "/api/v1/namespaces/default/configmaps"


class Writer(threading.Thread):
    """Creates, updates and deletes its own ConfigMaps, and notes what was acknowledged and what was merely sent."""

    def __init__(self, server: ApiServerProcess, number: int, generation: int) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.prefix = f"w{number}-{generation}"
        self.acknowledged: dict[str, str | None] = {}  # name → value, None for a deletion
        self.unknown: set[str] = set()  # sent, not acknowledged
        self.versions: list[int] = []
        self.random = random.Random(f"{number}/{generation}")

    def run(self) -> None:
        host = self.server.url.removeprefix("https://")
        connection = http.client.HTTPSConnection(host, context=self.server.context(), timeout=10)
        with contextlib.closing(connection):
            try:
                for count in itertools.count(1):
                    self.step(connection, count)
            except (OSError, http.client.HTTPException):
                return  # the server was killed

    def step(self, connection: http.client.HTTPSConnection, count: int) -> None:
        living = [name for name, value in self.acknowledged.items() if value is not None]
        action = self.random.choice(("create", "create", "update", "delete")) if living else "create"
        name = f"{self.prefix}-{count}" if action == "create" else self.random.choice(living)
        value = f"{count}-{self.random.random()}"
        self.unknown.add(name)
        if action == "create":
            body = {"metadata": {"name": name}, "data": {"v": value}}
            status, answer = self.send(connection, "POST", BASE, body, "application/json")
            assert status == 201, answer
        elif action == "update":
            patch = {"data": {"v": value}}
            status, answer = self.send(connection, "PATCH", f"{BASE}/{name}", patch, "application/merge-patch+json")
            assert status == 200, answer
        else:
            status, answer = self.send(connection, "DELETE", f"{BASE}/{name}", None, "application/json")
            assert status == 200, answer
        self.unknown.discard(name)
        self.acknowledged[name] = None if action == "delete" else value
        if action != "delete":
            self.versions.append(int(answer["metadata"]["resourceVersion"]))

    def send(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any, kind: str
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": kind}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def has_written(writers: list[Writer]) -> bool:
    return any(writer.versions for writer in writers)


def cpu_seconds(server: ApiServerProcess) -> float:
    """What the server has used since it was started."""
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(60 + ROUNDS * 10)
def test_no_acknowledged_write_is_lost_and_no_version_repeats(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "state", "--no-crds")
    server.start()
    expected: dict[str, str | None] = {}
    unknown: set[str] = set()
    versions: set[int] = set()
    highest = 0
    token = server.token
    slowest = 0.0
    try:
        for generation in range(ROUNDS):
            writers = [Writer(server, number, generation) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            eventually("a first acknowledged write", functools.partial(has_written, writers))
            time.sleep(random.uniform(0.0, 0.4))
            server.kill()
            for writer in writers:
                writer.join(20)
                assert not writer.is_alive()
                expected.update(writer.acknowledged)
                unknown |= writer.unknown
                assert versions.isdisjoint(writer.versions)
                versions.update(writer.versions)
            newest = max(versions)
            assert newest >= highest
            server.start()
            slowest = max(slowest, cpu_seconds(server))
            assert server.token == token
            status, listed = server.request("GET", BASE)
            assert status == 200
            assert int(listed["metadata"]["resourceVersion"]) >= newest
            stored = {item["metadata"]["name"]: item["data"]["v"] for item in listed["items"]}
            for name, value in expected.items():
                if name not in unknown:
                    assert stored.get(name) == value, f"{name} was acknowledged as {value}"
            status, made = server.request(
                "POST", BASE, {"metadata": {"name": f"after-{generation}"}, "data": {"v": "x"}}
            )
            assert status == 201
            highest = int(made["metadata"]["resourceVersion"])
            assert highest > newest
            versions.add(highest)
    finally:
        server.stop()
    assert len(versions) > ROUNDS
    print(f"{ROUNDS} kills, {len(versions)} acknowledged versions, dearest restart {slowest:.2f} s of CPU")
    assert slowest <= RESTART_CPU_SECONDS, f"{slowest:.2f} s"
