"""`file://`: directories and files of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from initializers.runs import fetch, tree
from trainwright.initializers.errors import Misconfigured, Missing, NotPermitted, UnsafeName


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source dir"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "a.csv").write_bytes(b"a")
    (source / "deep" / "er" / "b.bin").write_bytes(os.urandom(9 * 2**20))
    return source


def uri(path: Path) -> str:
    return f"file://{path}".replace(" ", "%20")


async def test_a_directory_and_a_file(source: Path, target: Path) -> None:
    await fetch(uri(source), target)
    assert tree(target) == tree(source)
    await fetch(uri(source / "a.csv"), target / "one")
    assert tree(target / "one") == {"a.csv": b"a"}
    await fetch(uri(source), target / "some", IGNORE_PATTERNS="deep/")
    assert tree(target / "some") == {"a.csv": b"a"}


async def test_only_what_changed_is_copied_again(source: Path, target: Path) -> None:
    await fetch(uri(source), target)
    (source / "a.csv").write_bytes(b"new")
    assert "fetched 3 B" in await fetch(uri(source), target)
    assert tree(target) == tree(source)


async def test_links_are_followed_and_circles_end(source: Path, target: Path, tmp_path: Path) -> None:
    """A snapshot of the Hugging Face cache is made of links to blobs elsewhere."""
    blob = tmp_path / "blob"
    blob.write_bytes(b"blob")
    (source / "linked").symlink_to(blob)
    (source / "deep" / "circle").symlink_to(source)
    await fetch(uri(source), target)
    assert tree(target) == {**tree(source), "linked": b"blob"}
    assert not (target / "linked").is_symlink()


async def test_what_is_no_file_is_refused(source: Path, target: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(UnsafeName, match="pipe is neither a file nor a directory: leave it out by IGNORE_PATTERNS"):
        await fetch(uri(source), target)
    await fetch(uri(source), target, IGNORE_PATTERNS="pipe")


async def test_paths_that_cannot_be_used(source: Path, target: Path) -> None:
    with pytest.raises(Missing, match="there is no such file or directory"):
        await fetch(uri(source / "nothing"), target)
    for wrong in ("file://relative", "file://host/path"):
        with pytest.raises(Misconfigured, match="comes an absolute path"):
            await fetch(wrong, target)
    with pytest.raises(Misconfigured, match=r"the target .* is the source, or inside of it"):
        await fetch(uri(source), source / "below")
    (source / "dangling").symlink_to("nowhere")
    with pytest.raises(Missing, match="dangling"):
        await fetch(uri(source), target)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_may_not_be_read(source: Path, target: Path) -> None:
    (source / "a.csv").chmod(0)
    with pytest.raises(NotPermitted, match="may not read it"):
        await fetch(uri(source), target)
