"""Disks that are full, before and during; and a cache that gives way."""

from __future__ import annotations

import functools
import resource
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commandline import COMMAND
from initializers.fileserver import Answer, Cut, FileServer, Gate, noise
from initializers.runs import fetch, tree, wait_for
from trainwright.initializers.errors import NoSpace

MIB = 2**20


@functools.cache
def can_mount() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]  # noqa: S108
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def on_small_disk(directory: Path, size: str, *commands: str) -> subprocess.CompletedProcess[str]:
    """Shell commands that see a disk of that size mounted at `directory`; nobody else does."""
    if not can_mount():
        pytest.skip("this machine allows no mounts in user namespaces")
    directory.mkdir(exist_ok=True)
    script = "\n".join([f"mount -t tmpfs -o size={size} none {shlex.quote(str(directory))}", *commands])
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def initialize(*arguments: str | Path) -> str:
    return shlex.join([*COMMAND, "initialize", "dataset", *map(str, arguments)])


async def test_what_cannot_fit_is_refused_before_a_byte_is_fetched(server: FileServer, target: Path) -> None:
    huge = Answer(206, {"Content-Range": f"bytes 0-0/{10**18}", "ETag": '"huge"'}, b"x")
    server.routes.append(lambda request: huge)
    with pytest.raises(NoSpace, match=r"what is to be fetched needs 909494.7 TiB, and .* are free. Free some space"):
        await fetch(f"{server.url}/f", target)
    assert len(server.requests) == 1


def test_a_small_volume_is_refused_with_its_figures(server: FileServer, target: Path) -> None:
    server.put("/f", noise(20 * MIB))
    done = on_small_disk(target, "8m", initialize(f"{server.url}/f", "--target", target, "--cache", "none"))
    assert done.returncode == 5
    assert "needs 20.0 MiB, and 8.0 MiB are free" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_disk_that_fills_up_meanwhile_ends_in_a_sentence(server: FileServer, target: Path) -> None:
    """The server does not tell the length, so only the disk can say that it is too much."""
    server.put("/f", noise(20 * MIB), ranges=False, length=False)
    done = on_small_disk(target, "8m", initialize(f"{server.url}/f", "--target", target, "--cache", "none"))
    assert done.returncode == 5
    assert "No space left on device. Free some space" in done.stderr
    assert done.stderr.count("\n") == 1


def test_after_space_was_made_it_goes_on(server: FileServer, target: Path) -> None:
    content = noise(20 * MIB)
    server.put("/f", content)
    command = [*COMMAND, "initialize", "dataset", f"{server.url}/f", "--target", str(target), "--cache", "none"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 * MIB, resource.RLIM_INFINITY))

    full = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert full.returncode == 5, full.stderr
    assert "File too large. Free some space" in full.stderr
    assert tree(target) == {}
    server.forget()
    subprocess.run(command, capture_output=True, check=True)
    assert tree(target) == {"f": content}
    assert server.sent["/f"] <= 12 * MIB + 1  # a block of 8 MiB was kept


def test_a_cache_gives_way_to_what_is_new(server: FileServer, tmp_path: Path, cache: Path) -> None:
    """Two files of 20 MiB do not fit into a cache of 32: the one used longer ago goes."""
    for name in ("old", "new"):
        server.put(f"/{name}", noise(20 * MIB, len(name) * ord(name[0])))
    script = (
        "from trainwright.cli.main import main\n"
        "for number, name in enumerate(('old', 'new', 'new', 'old')):\n"
        f"    target = f'{tmp_path}/target-{{number}}'\n"
        f"    uri = f'{server.url}/{{name}}'\n"
        f"    assert main(['initialize', 'dataset', uri, '--target', target, '--cache', '{cache}']) == 0\n"
    )
    done = on_small_disk(cache, "32m", shlex.join([sys.executable, "-c", script]))
    assert done.returncode == 0, done.stderr
    fetched = [line for line in done.stdout.splitlines() if " in " in line]
    assert ["nothing had to be fetched" in line for line in fetched] == [False, False, True, False]


def test_a_cache_that_is_too_small_is_done_without(server: FileServer, target: Path, cache: Path) -> None:
    content = noise(20 * MIB)
    server.put("/f", content, Cut(10))
    done = on_small_disk(cache, "8m", initialize(f"{server.url}/f", "--target", target, "--cache", cache))
    assert done.returncode == 0, done.stderr
    assert "is too small for this: doing without" in done.stdout
    assert tree(target) == {"f": content}


FILL_THE_CACHE_MEANWHILE = """
import pathlib, sys, threading, time
from trainwright.cli.main import main

cache, mark = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])

def fill():
    while not list(cache.glob("*.part")):
        time.sleep(0.01)
    try:
        with open(cache / "filler", "wb", buffering=0) as file:
            while file.write(bytes(65536)):
                pass
    except OSError:
        mark.touch()

threading.Thread(target=fill, daemon=True).start()
sys.exit(main(["initialize", "dataset", *sys.argv[3:]]))
"""


def test_a_cache_that_somebody_fills_meanwhile_is_done_without(
    server: FileServer, target: Path, cache: Path, tmp_path: Path
) -> None:
    content = noise(20 * MIB)
    gate, mark = Gate(MIB), tmp_path / "full"
    server.put("/f", content, Cut(10), gate)
    arguments = [cache, mark, f"{server.url}/f", "--target", target, "--cache", cache]
    command = shlex.join([sys.executable, "-c", FILL_THE_CACHE_MEANWHILE, *map(str, arguments)])
    with ThreadPoolExecutor() as pool:
        running = pool.submit(on_small_disk, cache, "32m", command)
        wait_for(lambda: mark.exists() or running.done())
        gate.opened.set()
        done = running.result()
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in done.stdout
    assert "doing without the cache" in done.stdout
    assert tree(target) == {"f": content}
