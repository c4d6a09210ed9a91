"""What is ours of the cgroup v2 tree, decided on trees of files; and a real cgroup where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.embedded.node.supervision import cgroups
from trainwright.embedded.node.supervision.cgroups import Cgroup, Delegation

HYBRID = "34 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


def tree(top: Path, **handed_on: str) -> None:
    """Directories of a cgroup tree, each with the controllers that it hands on; `_` in a name is a slash."""
    for name, controllers in handed_on.items():
        directory = top / name.replace("_", "/").removeprefix("root").lstrip("/")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cgroup.subtree_control").write_text(controllers + "\n")
        (directory / "cgroup.procs").touch()


def found(tmp_path: Path, top: Path, own: str, *, root: str = "/", more: str = "") -> Delegation:
    mounts, place = tmp_path / "mountinfo", tmp_path / "cgroup"
    mounts.write_text(f"{more}42 32 0:26 {root} {top} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n")
    place.write_text(f"5:memory:/elsewhere\n0::{own}\n")
    return cgroups.find(mounts, place)


def test_the_nearest_cgroup_that_hands_controllers_on_is_ours(tmp_path: Path) -> None:
    """A terminal of a desktop: its own cgroup has processes and hands nothing on, the slice above it does."""
    top = tmp_path / "fs"
    tree(top, root="cpu memory pids", user_apps="memory pids", user_apps_terminal="")
    ours = found(tmp_path, top, "/user/apps/terminal")
    assert ours.directory == str(top / "user" / "apps")
    assert ours.controllers == ("memory",)
    assert "memory" in ours
    assert "cpu" not in ours


def test_a_cgroup_that_may_not_be_written_to_is_not_ours(tmp_path: Path) -> None:
    top = tmp_path / "fs"
    tree(top, root="cpu memory", user="")
    (top / "cgroup.procs").unlink()  # whoever runs this as root may write to every file that there is
    ours = found(tmp_path, top, "/user")
    assert ours == cgroups.none("no cgroup with the controllers cpu or memory is delegated to us")


def test_only_what_is_mounted_counts(tmp_path: Path) -> None:
    """In a container the tree begins at the container's own cgroup."""
    top = tmp_path / "fs"
    tree(top, root="cpu memory", child="")
    assert found(tmp_path, top, "/docker/1/child", root="/docker/1").directory == str(top)
    assert found(tmp_path, top, "/other", root="/docker/1").reason.startswith("our own cgroup is not in the tree")


def test_cgroup_v1_is_no_delegation(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(HYBRID)
    (tmp_path / "cgroup").write_text("5:memory:/\n")
    assert cgroups.find(tmp_path / "mountinfo", tmp_path / "cgroup").reason == "there is no cgroup v2 here"
    assert cgroups.find(tmp_path / "none", tmp_path / "none").reason == "this system has no cgroups"


def test_limits_are_written_as_the_kernel_reads_them(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "memory.swap.max").touch()
    made = Cgroup(str(tmp_path), "c", memory=150 << 20, milli_cpus=1500)
    texts = {path.name: path.read_text() for path in made.path.iterdir()}
    assert texts == {
        "memory.max": "157286400",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "cpu.max": "150000 100000",
    }
    assert not made.was_out_of_memory()
    assert made.peak() is None
    (made.path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n")
    (made.path / "memory.peak").write_text("157290496\n")
    assert made.was_out_of_memory()
    assert made.peak() == 157290496


def _real_tree() -> Path | None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines() if sys.platform == "linux" else ():
        if (mounted := cgroups._mounted(line)) is not None and os.access(mounted[1], os.W_OK):
            return mounted[1]
    return None


@pytest.mark.skipif(_real_tree() is None, reason="no cgroup v2 that we may write to")
def test_a_process_moves_into_a_real_cgroup_and_it_is_removed() -> None:
    """The kernel of this machine; its controllers for CPU and memory may belong to cgroup v1, as they do in ours."""
    top = _real_tree()
    assert top is not None
    name = f"trainwright-test-{os.getpid()}"
    made = Cgroup(str(top), name, memory=None, milli_cpus=None)
    try:
        code = (
            "import sys; from trainwright.embedded.node.supervision.cgroups import Cgroup;"
            "Cgroup(*sys.argv[1:], memory=None, milli_cpus=None).enter(); print(open('/proc/self/cgroup').read())"
        )
        shown = subprocess.run([sys.executable, "-c", code, top, name], check=True, capture_output=True, text=True)
    finally:
        made.remove()
    assert [line for line in shown.stdout.splitlines() if line.startswith("0::") and line.endswith(f"/{name}")]
    assert not made.path.exists()
