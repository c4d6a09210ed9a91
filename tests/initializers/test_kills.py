"""An initializer that is killed goes on where it was; one that waits takes over. The server counts the bytes."""

from __future__ import annotations

import hashlib
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from initializers.fileserver import Cut, FileServer, Gate, noise
from initializers.runs import run, start, tree, wait_for
from trainwright.initializers.progress import amount

MIB = 2**20
BLOCK = 8 * MIB
SEGMENT = 64 * MIB


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = start(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def journaled(directory: Path) -> int:
    """How many bytes the journals below a directory promise."""
    total = 0
    for log in directory.rglob("*.log"):
        for line in log.read_text().splitlines()[1:]:
            if line:
                first, last = map(int, line.split())
                total += last - first
    return total


def test_after_a_kill_only_the_rest_is_fetched(server: FileServer, target: Path) -> None:
    content = noise(40 * MIB)
    gate = Gate(25 * MIB)
    server.put("/f", content, Cut(10), gate)
    with started("dataset", f"{server.url}/f", "--target", target, "--cache", "none") as process:
        gate.wait_until_reached()
        wait_for(lambda: journaled(target) >= 2 * BLOCK)
        process.send_signal(signal.SIGKILL)
        process.wait()
    gate.opened.set()
    kept = journaled(target)
    assert tree(target) == {}, "a file that is not whole has its name"
    server.forget()
    said = run("dataset", f"{server.url}/f", "--target", target, "--cache", "none")
    assert hashlib.sha256((target / "f").read_bytes()).digest() == hashlib.sha256(content).digest()
    assert server.sent["/f"] == len(content) - kept + 1  # and the byte that asks for size and version
    assert f"fetched {amount(len(content) - kept)} " in said
    assert not list((target / ".trainwright" / "parts").iterdir())


def test_after_a_kill_the_finished_ranges_of_a_large_file_are_kept(server: FileServer, target: Path) -> None:
    content = noise(SEGMENT + 2 * BLOCK)
    gate = Gate(BLOCK + MIB)
    server.put("/f", content, Cut(10)).faults_at = {0: gate}
    with started("dataset", f"{server.url}/f", "--target", target, "--cache", "none") as process:
        gate.wait_until_reached()
        wait_for(lambda: journaled(target) >= 3 * BLOCK)  # one of the first range, and all of the second
        process.send_signal(signal.SIGKILL)
        process.wait()
    gate.opened.set()
    kept = journaled(target)
    server.forget()
    run("dataset", f"{server.url}/f", "--target", target, "--cache", "none")
    assert hashlib.sha256((target / "f").read_bytes()).digest() == hashlib.sha256(content).digest()
    assert server.sent["/f"] == len(content) - kept + 1


def test_sigterm_ends_it_at_once_with_a_sentence(server: FileServer, target: Path) -> None:
    gate = Gate(MIB)
    server.put("/f", noise(2 * MIB), Cut(10), gate)
    with started("dataset", f"{server.url}/f", "--target", target, "--cache", "none") as process:
        gate.wait_until_reached()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 128 + signal.SIGTERM
        assert "stopped by SIGTERM; run it again" in out
        assert not err
    gate.opened.set()


@pytest.mark.parametrize("ending", ["finishes", "is killed"])
def test_two_at_once_fetch_once(ending: str, server: FileServer, tmp_path: Path) -> None:
    """The second waits for the first; when the first is killed, its lock is free and the second goes on from there."""
    content = noise(20 * MIB)
    gate = Gate(9 * MIB)
    server.put("/f", content, Cut(10), gate)
    arguments = ("dataset", f"{server.url}/f", "--cache", tmp_path / "cache", "--target")
    with started(*arguments, tmp_path / "first") as first:
        gate.wait_until_reached()
        wait_for(lambda: journaled(tmp_path / "cache") >= BLOCK)
        kept = journaled(tmp_path / "cache")
        with started(*arguments, tmp_path / "second") as second:
            assert second.stdout is not None
            assert "it is being fetched already; waiting for it" in second.stdout.readline()
            if ending == "is killed":
                first.kill()
                first.wait()
            gate.opened.set()
            assert second.wait(60) == 0
            if ending == "finishes":
                assert first.wait(60) == 0
                assert tree(tmp_path / "first") == {"f": content}
                assert server.sent["/f"] == len(content) + 2  # each asks for size and version
            else:
                assert [request.first_byte for request in server.asked("/f")] == [0, 0, 0, kept]
    assert tree(tmp_path / "second") == {"f": content}


def test_two_for_one_target_take_turns(server: FileServer, target: Path) -> None:
    content = noise(2 * MIB)
    gate = Gate(MIB)
    server.put("/f", content, Cut(10), gate)
    arguments = ("dataset", f"{server.url}/f", "--cache", "none", "--target", target)
    with started(*arguments) as first:
        gate.wait_until_reached()
        with started(*arguments) as second:
            assert second.stdout is not None
            assert "another initializer is filling" in second.stdout.readline()
            gate.opened.set()
            assert (first.wait(60), second.wait(60)) == (0, 0)
    assert tree(target) == {"f": content}
    assert server.sent["/f"] == len(content) + 2
