"""A local cluster's state can be kept as a file while it runs, and put back; a disk that fills up is said in time."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from apiserver_process import ApiServerProcess
from commandline import CommandLine
from trainwright.cli.clusters.diskspace import judge

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_backup_that_is_taken_under_load_holds_every_write_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    server = ApiServerProcess(tmp_path / "cluster", "--no-crds")
    server.start()
    acknowledged: list[str] = []
    stopped = threading.Event()

    def write() -> None:
        while not stopped.is_set():
            name = f"c{len(acknowledged)}"
            assert server.request("POST", MAPS, config_map(name))[0] == 201
            acknowledged.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(acknowledged) < 20:
            stopped.wait(0.01)
        before = list(acknowledged)
        saved = tmp_path / "saved.tar.gz"
        said = CommandLine(tmp_path / "cluster")("backup", str(saved))
        assert "keep it private" in said
        assert saved.stat().st_mode & 0o777 == 0o600
        token = server.token
    finally:
        stopped.set()
        writer.join()
        server.stop()

    other = CommandLine(tmp_path / "other")
    assert "exists already" in CommandLine(tmp_path / "cluster")("backup", str(saved), code=1)
    other("restore", str(saved))
    assert "give --force" in other("restore", str(saved), code=1)
    restored = ApiServerProcess(tmp_path / "other", "--no-crds")
    restored.start()
    try:
        names = {item["metadata"]["name"] for item in restored.request("GET", MAPS)[1]["items"]}
        assert set(before) <= names
        assert restored.token == token
        assert restored.request("POST", MAPS, config_map("after"))[0] == 201
    finally:
        restored.stop()


def test_a_file_that_is_no_backup_replaces_nothing(tmp_path: Path) -> None:
    command = CommandLine(tmp_path / "cluster")
    (tmp_path / "garbage").write_bytes(os.urandom(1000))
    assert "cannot be read as a backup" in command("restore", str(tmp_path / "garbage"), code=1)
    assert "there is no cluster" in command("backup", str(tmp_path / "b.tar.gz"), code=1)
    assert not (tmp_path / "cluster" / "state.db").exists()


@pytest.mark.parametrize(
    ("free", "total", "said"),
    [(2 * 2**30, 10 * 2**30, ""), (900 * 2**20, 10 * 2**30, "900 MB"), (4 * 2**30, 100 * 2**30, "4.0 GB free (4%)")],
)
def test_a_disk_is_nearly_full_under_five_percent_or_a_gigabyte(free: int, total: int, said: str) -> None:
    sentence = judge(free, total, Path("/somewhere"))
    assert said in sentence
    assert bool(sentence) == bool(said)
