"""Training outlives the control plane (P1): it is killed again and again while eight ranks run, and none is lost or
started twice; those that end while nobody looks are known with their true exit codes.

Only with `TRAINWRIGHT_PLANE_KILLS`, which is how often; `make test-long` asks for fifty.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commandline import CommandLine, plain_job, processes_of_pods
from waiting import eventually

KILLS = int(os.environ.get("TRAINWRIGHT_PLANE_KILLS", "0"))
RANKS = 4
SCRIPT = """
import os, pathlib, sys, time
place, end = pathlib.Path({place!r}), pathlib.Path({place!r}) / "end"
with (place / {name!r}).open("a") as starts:
    starts.write(f"{{os.getpid()}} {{os.environ['JOB_COMPLETION_INDEX']}}\\n")
while not end.exists():
    time.sleep(0.1)
sys.exit({code} if os.environ["JOB_COMPLETION_INDEX"] == "2" else 0)
"""


def starts(place: Path, name: str) -> list[str]:
    file = place / name
    return sorted(file.read_text().splitlines()) if file.exists() else []


@pytest.mark.skipif(not KILLS, reason="a count of make test-long")
@pytest.mark.timeout(180 + 30 * KILLS)
def test_no_rank_notices_that_the_control_plane_dies(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    for name, code in (("good", 0), ("bad", 3)):
        script = SCRIPT.format(place=str(tmp_path), name=name, code=code)
        (tmp_path / f"{name}.yaml").write_text(plain_job(name, script, nodes=RANKS))
        trainwright("run", str(tmp_path / f"{name}.yaml"), "--detach")
    eventually("all ranks run", lambda: all(len(starts(tmp_path, it)) == RANKS for it in ("good", "bad")), 60)
    before = [starts(tmp_path, name) for name in ("good", "bad")]
    for number in range(KILLS):
        trainwright.kill_control_plane()
        eventually("it is dead", lambda: not Path(f"/proc/{trainwright.pid}").exists())
        if number == KILLS - 1:
            (tmp_path / "end").touch()
            eventually("they have ended", lambda: not processes_of_ranks(tmp_path), 30)
        trainwright("up", "--detach")
        assert [starts(tmp_path, name) for name in ("good", "bad")] == before, "a rank was started again"
    assert "Complete" in trainwright("wait", "good", "--timeout", "60s")
    trainwright("wait", "bad", "--for", "Failed", "--timeout", "60s")
    assert "exit code 3" in trainwright("why", "bad", code=None)
    assert [starts(tmp_path, name) for name in ("good", "bad")] == before
    eventually("nothing of its pods runs", lambda: not processes_of_pods(trainwright.directory))
    print(f"{KILLS} kills of the control plane: {2 * RANKS} ranks, each started once, all exit codes true")


def processes_of_ranks(place: Path) -> list[str]:
    """The pids of Python processes whose script names the place."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0].endswith("python3") and any(str(place) in word and "end.exists" in word for word in words):
                found.append(entry.name)
    return found
