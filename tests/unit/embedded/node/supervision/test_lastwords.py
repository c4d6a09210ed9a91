"""What a failed container said last is kept in its status, and what the kernel said of it."""

from __future__ import annotations

from pathlib import Path

from trainwright.embedded.node.supervision import lastwords


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def record(seconds_ago: float, text: str) -> str:
    return f"6,1000,{int((uptime() - seconds_ago) * 1e6)},-;{text}\n"


def test_the_kernels_last_kill_is_found_and_old_ones_are_not(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    killed = "Out of memory: Killed process 42 (python3) total-vm:9kB"
    log.write_text(record(500, "Out of memory: Killed process 7 (java)") + record(1, "eth0 up") + record(1, killed))
    assert lastwords.kernel_words(str(log)) == killed
    log.write_text(record(500, "Out of memory: Killed process 7 (java)"))
    assert lastwords.kernel_words(str(log)) == ""
    assert lastwords.kernel_words(str(tmp_path / "nothing")) == "", "a log that may not be read says nothing"


def test_the_end_of_a_log_is_read_with_its_parts_joined(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    stamp = "2026-01-01T00:00:00.000000000Z"
    records = ["stdout F step 1", "stderr P half ", "stderr F of a line", "stdout P last"]
    log.write_text("\n".join(f"{stamp} {record}" for record in records))
    assert lastwords.of_log(log) == "step 1\nhalf of a line\nlast"


def test_a_traceback_is_kept_however_much_a_launcher_prints_after_it() -> None:
    raised = ["Traceback (most recent call last):", '  File "/home/ada/train.py", line 3', "    f()", "ValueError: nan"]
    noise = [f"launcher: line {number} of its own" for number in range(2000)]
    kept = lastwords.excerpt(["step 1", *raised, *noise]).splitlines()
    assert kept[:4] == raised
    assert kept[-1] == noise[-1]
    assert len("\n".join(kept).encode()) <= lastwords.MAX_BYTES


def test_endless_lines_are_cut() -> None:
    assert len(lastwords.excerpt(["x" * 100_000] * 50).encode()) <= lastwords.MAX_BYTES
