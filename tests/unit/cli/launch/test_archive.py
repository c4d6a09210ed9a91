"""The working directory travels without what is ignored, and not at all when it is too large."""

from __future__ import annotations

import io
import os
import random
import subprocess
import tarfile
from pathlib import Path

import pytest

from trainwright.cli.failure import Failure
from trainwright.cli.launch.archive import LARGEST, pack, size_of


def write(folder: Path, *names: str, text: str = "x") -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names_in(folder: Path) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(pack(folder).content)) as tar:
        return sorted(tar.getnames())


def test_everything_but_caches_repositories_and_virtualenvs_goes_in(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "pkg/__init__.py", "data/x.csv", ".hidden")
    write(tmp_path, ".git/config", "pkg/__pycache__/a.pyc", "old.pyc", "env/pyvenv.cfg", "env/lib/big.py")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("train.py")
    os.mkfifo(tmp_path / "pipe")
    assert names_in(tmp_path) == [".hidden", "data/x.csv", "empty", "link", "pkg/__init__.py", "train.py"]


RULES = [
    ["*.pt", "!best.pt"],
    ["/data", "logs/"],
    ["data/**/cache", "*.log"],
    ["build", "!build/keep.txt"],
    ["foo/*", "!foo/bar"],
    ["# a comment", "", "\\#literal", "trailing ", "dir/"],
    ["**/deep", "a/**/z.txt", "[ab].csv", "?.bin"],
]
TREE = [
    "best.pt",
    "other.pt",
    "data/x.csv",
    "sub/data/x.csv",
    "logs/a.txt",
    "sub/logs",
    "data2/a/b/cache/c.txt",
    "x.log",
    "build/keep.txt",
    "build/more.txt",
    "foo/bar/x.txt",
    "foo/baz/x.txt",
    "#literal",
    "trailing",
    "dir/x",
    "x/dir",
    "a/z.txt",
    "a/b/c/z.txt",
    "p/q/deep/r",
    "a.csv",
    "c.csv",
    "1.bin",
    "12.bin",
]


@pytest.mark.parametrize("seed", range(12))
def test_gitignore_means_what_git_means_by_it(tmp_path: Path, seed: int) -> None:
    """Random rules at random places: git itself lists what is left."""
    dice = random.Random(seed)
    write(tmp_path, *TREE)
    for folder in dice.sample(["", "sub", "data2/a", "foo", "a", "p/q"], 3):
        lines = dice.sample([line for rules in RULES for line in rules], 5)
        write(tmp_path, f"{folder}/.gitignore" if folder else ".gitignore", text="\n".join(lines) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    empty = {name for name in names_in(tmp_path) if (tmp_path / name).is_dir()}  # git knows no empty directories
    assert set(names_in(tmp_path)) - empty == set(listed.rstrip("\0").split("\0"))


def test_our_own_file_takes_out_more_and_takes_back_in(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "data/small.csv", "data/large.csv", "notes.md")
    write(tmp_path, ".gitignore", text="data/*\n")
    write(tmp_path, ".trainwrightignore", text="!data/small.csv\nnotes.md\n")
    assert names_in(tmp_path) == [".gitignore", ".trainwrightignore", "data/small.csv", "train.py"]


def test_the_rules_of_the_repository_around_it_hold(tmp_path: Path) -> None:
    write(tmp_path, "exp/train.py", "exp/model.pt")
    write(tmp_path, ".gitignore", text="*.pt\n")
    (tmp_path / ".git").mkdir()
    assert names_in(tmp_path / "exp") == ["train.py"]


def test_the_same_files_are_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a.py")
    assert pack(tmp_path).content == pack(tmp_path).content
    assert str(pack(tmp_path)).startswith("2 files, ")


def test_what_is_too_large_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    write(tmp_path, "train.py")
    (tmp_path / "weights.bin").write_bytes(os.urandom(LARGEST + 10))
    with pytest.raises(Failure) as refused:
        pack(tmp_path)
    message = refused.value.message
    assert "weights.bin (1.0 MB)" in message
    assert ".trainwrightignore" in message
    assert "--image IMAGE --workdir none" in message
    assert "bucket" in message
    (tmp_path / "weights.bin").write_bytes(bytes(50_000_000))
    assert len(pack(tmp_path).content) < LARGEST, "what counts is the packed size"


def test_sizes_are_for_people() -> None:
    assert [size_of(count) for count in (999, 34_560, 1_500_000, 7_200_000_000)] == [
        "999 bytes",
        "34.6 kB",
        "1.5 MB",
        "7.2 GB",
    ]
