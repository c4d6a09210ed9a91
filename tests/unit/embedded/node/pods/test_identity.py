"""A process is identified by pid, start time and boot, never by the pid alone."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from selfcheck.leftovers import Processes
from trainwright.embedded.node.pods import identity

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_live_process_is_known_and_a_dead_one_is_not(processes: Processes) -> None:
    process = processes.start(["sleep", "60"])
    found = identity.of(process.pid)
    assert found is not None
    assert identity.is_alive(found)
    assert identity.send_signal(found, signal.SIGKILL)
    process.wait()
    assert not identity.is_alive(found)
    assert not identity.send_signal(found, signal.SIGKILL)


def test_a_zombie_is_dead(processes: Processes) -> None:
    process = processes.start(["true"])
    found = identity.of(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identity.start_time(process.pid) is None
    process.wait()
    assert found is None or not identity.is_alive(found)


def test_another_process_with_the_same_pid_is_never_signalled(processes: Processes) -> None:
    process = processes.start(["sleep", "60"])
    mine = identity.of(process.pid)
    assert mine is not None
    assert not identity.send_signal(mine._replace(start="1"), signal.SIGKILL)
    assert not identity.send_signal(mine._replace(boot="another boot"), signal.SIGKILL)
    assert process.poll() is None


@linux_only
def test_a_name_with_parentheses_and_spaces_does_not_confuse(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    fields = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "7" / "stat").write_text(f"7 (a ) S (b) S {fields}")
    assert identity.start_time(7, tmp_path) == "22"
