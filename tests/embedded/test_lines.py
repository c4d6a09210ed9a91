"""What `trainwright run` shows of the ranks: real processes, in a pipe and on a terminal."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from commandline import CommandLine, plain_job
from pseudoterminal import on_terminal

RANKS, LINES = 8, 50_000
MEMORY = 80 * 2**20

FLOOD = """
    import os, sys, time
    from pathlib import Path

    rank, done = os.environ["JOB_COMPLETION_INDEX"], Path({done!r})
    text = "".join(f"rank {{rank}} says line {{n}}\\n" for n in range({lines}))
    sys.stdout.write(text)
    sys.stdout.flush()
    (done / rank).touch()
    while {fails} and len(list(done.iterdir())) < {ranks}:
        time.sleep(0.02)
    if {fails} and rank == "5":  # the other pods are deleted at once, whoever reads their lines
        sys.exit("the last line, and a bad one")
"""


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("fails", [False, True])
def test_not_one_of_many_lines_is_lost_and_memory_stays_small(shared: CommandLine, tmp_path: Path, fails: bool) -> None:
    done = tmp_path / "done"
    done.mkdir()
    script = FLOOD.format(done=str(done), lines=LINES, fails=fails, ranks=RANKS)
    file = write(tmp_path / "flood.yaml", plain_job("flood", script, nodes=RANKS))
    seen, peak = defaultdict(list), 0
    with subprocess.Popen(shared.command("run", file), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        rest = []
        for line in run.stdout:
            if said := re.fullmatch(r"\[rank (\d)\] rank (\d) says line (\d+)\n", line):
                assert said[1] == said[2]
                seen[said[1]].append(int(said[3]))
            else:
                rest.append(line)
                peak = max(peak, _peak_memory(run.pid))
    assert run.returncode == (1 if fails else 0), rest
    assert sorted(seen) == [str(rank) for rank in range(RANKS)]
    assert all(numbers == list(range(LINES)) for numbers in seen.values()), {r: len(n) for r, n in seen.items()}
    assert ("[rank 5] the last line, and a bad one\n" in rest) is fails
    if fails:
        summary = [line for line in rest if line.startswith("    ")]
        assert summary[-1] == "    the last line, and a bad one\n"
    assert 0 < peak <= MEMORY


def _peak_memory(pid: int) -> int:
    """The most memory that the process has ever used; none if it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


BAR = """
    import sys, time
    for step in range(0, 101, 4):
        sys.stderr.write(f"\\r{step:3d}%|{'#' * (step // 10):10}| {step}/100 widgets")
        sys.stderr.flush()
        time.sleep(0.1)
    sys.stderr.write("\\n")
    print("after the bar")
"""


def test_a_bar_in_a_pipe_leaves_its_last_state(shared: CommandLine, tmp_path: Path) -> None:
    output = shared("run", write(tmp_path / "bar.yaml", plain_job("bar", BAR)))
    assert "[rank 0] 100%|##########| 100/100 widgets\n[rank 0] after the bar\n" in output
    assert output.count("widgets") == 1


def test_a_bar_on_a_terminal_moves_in_place(shared: CommandLine, tmp_path: Path) -> None:
    file = write(tmp_path / "bar.yaml", plain_job("bar", BAR))
    with on_terminal(shared.command("run", file)) as run:
        assert run.wait() == 0, run.screen
    states = {int(found[1]) for screen in run.ever_seen if (found := re.search(r"\[rank 0\] +(\d+)%\|", screen))}
    assert len(states) >= 3, "it was seen on its way"
    assert max(screen.count("widgets") for screen in run.ever_seen) == 1, "and never twice"
    assert "[rank 0] 100%|##########| 100/100 widgets\n[rank 0] after the bar\n" in run.screen


def test_what_all_ranks_say_is_one_line_on_a_terminal_and_a_line_for_each_in_a_pipe(
    shared: CommandLine, tmp_path: Path
) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    script = f"""
        import os, time
        from pathlib import Path
        rank, meet = os.environ["JOB_COMPLETION_INDEX"], Path({str(meet)!r})
        (meet / rank).touch()
        while len(list(meet.iterdir())) < 3:
            time.sleep(0.01)
        print("all together now")
        time.sleep(1)
        print(f"and {{rank}} alone")
    """
    file = write(tmp_path / "choir.yaml", plain_job("choir", script, nodes=3))
    with on_terminal(shared.command("run", file)) as run:
        assert run.wait() == 0, run.screen
    assert "[rank 0-2] all together now" in run.screen
    assert all(f"[rank {rank}] and {rank} alone" in run.screen for rank in range(3))
    assert "\x1b[36m[rank 0]" in run.raw
    piped = shared("logs", "choir")
    assert all(f"[rank {rank}] all together now" in piped for rank in range(3))
    assert "\x1b" not in piped
    with on_terminal(shared.command("logs", "choir"), NO_COLOR="1") as logs:
        assert logs.wait() == 0
    assert "\x1b[36m" not in logs.raw
    assert "and 2 alone" in logs.screen
