"""A port stays the same over restarts, unless another process has taken it."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from trainwright.cli.machine.keptport import bind_kept_port


def test_the_port_of_last_time_is_used_again(tmp_path: Path) -> None:
    file = tmp_path / "port"
    with bind_kept_port(file, "reports") as first:
        address, port = first.getsockname()
        first.listen()
    assert address == "127.0.0.1"
    with bind_kept_port(file, "reports") as second:
        assert second.getsockname()[1] == port


def test_a_port_that_is_taken_is_replaced_and_the_log_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "port"
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = somebody.getsockname()[1]
        file.write_text(f"{taken}\n")
        with caplog.at_level(logging.WARNING), bind_kept_port(file, "reports") as listener:
            port = listener.getsockname()[1]
            listener.listen()
    assert port != taken
    assert int(file.read_text()) == port
    assert f"reports: port {taken} of last time cannot be used" in caplog.text


@pytest.mark.parametrize("text", ["", "no number", "0", "70000"])
def test_a_damaged_file_is_no_port(tmp_path: Path, text: str) -> None:
    file = tmp_path / "port"
    file.write_text(text)
    with bind_kept_port(file, "reports") as listener:
        assert int(file.read_text()) == listener.getsockname()[1]


def test_it_is_held_from_the_first_moment_on(tmp_path: Path) -> None:
    with bind_kept_port(tmp_path / "port", "reports") as listener, socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(listener.getsockname())
