"""exec, cp and port-forward into a rank of a TrainJob, as a user types them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import BadStatusLine, HTTPConnection
from pathlib import Path

import pytest

from commandline import CommandLine, in_process, plain_job
from pseudoterminal import on_terminal
from waiting import eventually

RANKS = """
    import http.server, os

    class Rank(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"rank " + os.environ["JOB_COMPLETION_INDEX"].encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Rank)
    print("listens on", server.server_address[1], flush=True)
    server.serve_forever()
"""


@pytest.fixture(scope="module")
def trainwright(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    directory = tmp_path_factory.mktemp("cluster")
    (directory / "job.yaml").write_text(plain_job("serving", RANKS, nodes=2))
    with in_process(directory / "state") as line:
        line("up", "--detach")
        line("run", "--detach", str(directory / "job.yaml"))
        eventually("both ranks to listen", lambda: line("logs", "serving", code=None).count("listens on") == 2)
        yield line


def test_a_command_runs_in_the_rank_that_was_named(trainwright: CommandLine) -> None:
    show = ["--", "sh", "-c", "echo I am $JOB_COMPLETION_INDEX; exit 3"]
    assert trainwright("exec", "serving", *show, code=3) == "I am 0\n"
    assert trainwright("exec", "serving", "--rank", "1", *show, code=3) == "I am 1\n"
    assert trainwright("exec", "-i", "serving", "--", "tr", "a-z", "A-Z", stdin="hello") == "HELLO"


def test_what_cannot_be_run_is_one_line(trainwright: CommandLine) -> None:
    said = trainwright("exec", "serving", "--rank", "7", "--", "true", code=1)
    assert said == "trainwright: serving has no running rank 7; running ranks: 0, 1\n"
    assert "executable file not found" in trainwright("exec", "serving", "--", "no-such-program", code=1)
    assert "did you mean serving?" in trainwright("exec", "servin", "--", "true", code=1)
    assert "no command is given" in trainwright("exec", "serving", code=2)


def test_a_shell_on_a_terminal(trainwright: CommandLine) -> None:
    with on_terminal(trainwright.command("exec", "serving", "--rank", "1")) as terminal:
        terminal.type(
            'until [ "$(stty size)" = "50 160" ]; do sleep 0.1; done; echo rank-$JOB_COMPLETION_INDEX of "50 160"\n'
        )
        terminal.wait_for("rank-1 of 50 160")
        terminal.type("exit 4\n")
        assert terminal.wait() == 4


def test_files_go_in_and_come_out(trainwright: CommandLine, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "here" / "deep").mkdir(parents=True)
    (tmp_path / "here" / "deep" / "file").write_bytes(data)
    there = tmp_path / "there"
    trainwright("cp", str(tmp_path / "here"), f"serving:{there}")
    assert (there / "deep" / "file").read_bytes() == data
    trainwright("cp", str(tmp_path / "here" / "deep" / "file"), f"serving:{there}", "--rank", "1")
    assert (there / "file").read_bytes() == data
    trainwright("cp", f"serving:{there}/deep", str(tmp_path / "back"))
    assert (tmp_path / "back" / "file").read_bytes() == data
    trainwright("cp", f"serving:{there}/file", str(tmp_path / "back" / "again"))
    assert (tmp_path / "back" / "again").read_bytes() == data
    assert "No such file" in trainwright("cp", f"serving:{there}/nothing", str(tmp_path), code=1)
    assert "no such file or directory" in trainwright("cp", str(tmp_path / "none"), "serving:/tmp", code=1)
    assert "one side is a path" in trainwright("cp", "a", "b", code=2)


@contextmanager
def forwarded(trainwright: CommandLine, port: str, rank: int) -> Iterator[HTTPConnection]:
    """A connection to where `port-forward` listens here."""
    command = trainwright.command("port-forward", "serving", f":{port}", "--rank", str(rank))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield HTTPConnection(found.group(), timeout=10)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130


def test_a_port_of_a_rank_is_reached_from_here_and_no_other_ranks(trainwright: CommandLine) -> None:
    port = re.findall(r"listens on (\d+)", trainwright("logs", "serving", "--rank", "1"))[0]
    with forwarded(trainwright, port, 1) as connection:
        for _ in range(3):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"rank 1"
            connection.close()
    with forwarded(trainwright, port, 0) as connection:
        connection.request("GET", "/")
        with pytest.raises((ConnectionError, BadStatusLine)):
            connection.getresponse()
        connection.close()
    assert "no pair of ports" in trainwright("port-forward", "serving", "x:y", code=2)


def test_top_shows_what_each_rank_uses(trainwright: CommandLine) -> None:
    lines = trainwright("top", "serving").splitlines()
    assert lines[0].split() == ["TRAINJOB", "RANK", "CPU", "MEMORY", "GPU", "MEMORY", "POD"]
    assert [line.split()[:2] for line in lines[1:]] == [["serving", "0"], ["serving", "1"]]
    usages = trainwright.parsed("top", "--json")
    assert all(5 * 2**20 < usage["memory"] < 500 * 2**20 for usage in usages)
    assert all(0 <= usage["cpu"] < 1 for usage in usages)
    assert "did you mean serving?" in trainwright("top", "servin", code=1)
