"""`progress()` in training code: what reaches the server, and that training never notices it.

Each training is a process of its own, since the end of the process is part of the promise.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import trainwright.reporting
from waiting import eventually

SOURCE = Path(trainwright.reporting.__file__)


class Server(ThreadingHTTPServer):
    """Takes reports as the operator's progress server does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reports: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        self.is_away = False
        """Whether it cannot store reports, as while the API server is away."""
        self.code = 200
        self.refused = 0

    @property
    def last(self) -> dict[str, Any]:
        return self.reports[-1]

    @property
    def metrics(self) -> dict[str, str]:
        return {item["name"]: item["value"] for item in self.last["metrics"]}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        code = 500 if self.server.is_away else self.server.code
        if code != 200:
            self.server.refused += 1
            self.send_response(code)
            self.end_headers()
            return
        self.server.tokens.append(self.headers["Authorization"])
        self.server.reports.append(body["trainerStatus"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A directory with the one file, as pods find it."""
    directory = tmp_path / "python"
    directory.mkdir()
    shutil.copy(SOURCE, directory / "trainwright.py")
    return directory


def train(path: Path, code: str, url: str | None, *, site: bool = False, **variables: str) -> str:
    """Runs training code with only Python's standard library and the directory, and returns what it printed."""
    token = path / "token"
    token.write_text("secret\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KUBEFLOW", "RANK"))}
    environment |= {"PYTHONPATH": str(path), "KUBEFLOW_TRAINER_SERVER_TOKEN": str(token), **variables}
    if url is not None:
        environment["KUBEFLOW_TRAINER_SERVER_URL"] = url
    command = [sys.executable, *([] if site else ["-S"]), "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/status"


def test_two_lines_of_code_report_the_last_step_with_its_metrics(server: Server, alone: Path) -> None:
    train(
        alone,
        """
        from trainwright import progress
        for step in range(1, 101):
            progress(step, 100, loss=1 / step, epoch=step // 50, note="fine")
        """,
        address(server),
    )
    assert server.last["progressPercentage"] == 100
    assert server.metrics == {"loss": "0.01", "epoch": "2", "note": "fine", "step": "100", "total": "100"}
    assert server.tokens[-1] == "Bearer secret"
    assert len(server.reports) <= 3, "a fast loop sends the newest and not every note"


def test_the_time_left_follows_from_the_speed_since_the_first_step(server: Server, alone: Path) -> None:
    train(
        alone,
        """
        import time
        from trainwright import progress
        progress(500, 1000)  # resumed from a checkpoint: these steps took no time here
        time.sleep(1.5)
        progress(600, 1000)
        """,
        address(server),
    )
    assert server.last["progressPercentage"] == 60
    assert 5 <= server.last["estimatedRemainingSeconds"] <= 12, "400 steps at 100 in a little over 1.5 s"


def test_only_the_first_rank_reports(server: Server, alone: Path) -> None:
    code = "from trainwright import progress; progress(1, 2)"
    train(alone, code, address(server), RANK="1")
    train(alone, code, address(server), JOB_COMPLETION_INDEX="1")
    assert server.reports == []
    train(alone, code, address(server), RANK="0", JOB_COMPLETION_INDEX="3")
    assert server.last["progressPercentage"] == 50


def test_reports_of_an_outage_are_kept_and_arrive_in_order(server: Server, alone: Path) -> None:
    url = address(server)
    server.is_away = True
    code = """
        import time
        from pathlib import Path
        from trainwright import progress
        for step in range(1, 7):
            progress(step, 8)
            time.sleep(1.05)
        Path("{back}").touch()
        time.sleep(2)
        progress(7, 8)
        time.sleep(1.2)
        progress(8, 8)
    """.format(back=alone / "back")
    watching = threading.Thread(target=_come_back, args=(server, alone / "back"), daemon=True)
    watching.start()
    train(alone, code, url)
    assert server.refused >= 5
    assert [report["progressPercentage"] for report in server.reports] == [12, 25, 37, 50, 62, 75, 87, 100]
    times = [report["lastUpdatedTime"] for report in server.reports]
    assert times == sorted(set(times)), "each with the time at which it was noted"


def _come_back(server: Server, mark: Path) -> None:
    eventually("the training has seen the outage", mark.exists, 30)
    server.is_away = False


def test_a_refused_report_is_not_sent_again(server: Server, alone: Path) -> None:
    server.code = 422
    train(alone, "import time; from trainwright import progress; progress(1, 2); time.sleep(2.5)", address(server))
    assert server.refused == 1


def test_an_outage_keeps_a_bounded_number_of_reports_evenly(server: Server, alone: Path) -> None:
    printed = train(
        alone,
        """
        from trainwright import _Reporter, MOST_KEPT
        reporter = _Reporter("http://127.0.0.1:1")
        for second in range(3600):
            reporter._keep({"n": second})
            assert len(reporter._kept) <= MOST_KEPT
        kept = [report["n"] for _, report in reporter._kept]
        gaps = {after - before for before, after in zip(kept, kept[1:])}
        print(kept[0], kept[-1], len(kept) > MOST_KEPT // 3, kept == sorted(kept), max(gaps))
        """,
        None,
    )
    first, last, many, in_order, gap = printed.split()
    assert (first, last, many, in_order) == ("0", "3599", "True", "True")
    assert int(gap) <= 32


@pytest.mark.parametrize(
    "call",
    [
        "progress(3)",
        "progress(None, None)",
        "progress('three', 'many', loss=object())",
        "progress(1, 0)",
        "progress(float('nan'), float('inf'), loss=float('nan'))",
        "progress(5, 3, **{'x' * 500: 'y' * 500})",
        "progress(1, 2, **{f'm{n}': n for n in range(1000)})",
        "progress(1, 2, bad=Bad())",
    ],
)
def test_whatever_is_said_training_goes_on(server: Server, alone: Path, call: str) -> None:
    bad = "class Bad:\n    def __float__(self): raise SystemError('of a framework')\n"
    code = f"from trainwright import progress\n{bad}{call}\nprint('trained')"
    assert train(alone, code, address(server)) == "trained\n"
    assert all(len(item["name"]) <= 64 and len(item["value"]) <= 64 for item in server.last["metrics"])
    assert len(server.last["metrics"]) <= 256
    assert 0 <= server.last.get("progressPercentage", 0) <= 100


@pytest.mark.parametrize("url", [None, "", "http://127.0.0.1:1/", "nonsense", "https://127.0.0.1:1/"])
def test_where_nobody_listens_training_goes_on(alone: Path, url: str | None) -> None:
    assert train(alone, "from trainwright import progress; progress(1, 2); print('trained')", url) == "trained\n"


def test_a_server_that_never_answers_costs_no_step_and_little_at_the_end(alone: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        said = train(
            alone,
            """
            import atexit, time
            begin = time.monotonic()
            atexit.register(lambda: print(time.monotonic() - begin))  # runs after what is registered later
            from trainwright import progress
            for step in range(10_000):
                progress(step, 10_000, loss=0.5)
            print(time.monotonic() - begin)
            """,
            url,
        )
    steps, end = map(float, said.split())
    assert steps < 1.0, "10,000 calls"
    assert end < 4.0


def test_a_tensor_is_kept_without_its_graph(server: Server, alone: Path) -> None:
    train(
        alone,
        """
        from trainwright import progress
        class Tensor:
            def __init__(self, has_graph): self.has_graph = has_graph
            def detach(self): return Tensor(False)
            def __float__(self): return 1.0 if self.has_graph else 0.25
        progress(1, 2, loss=Tensor(True))
        """,
        address(server),
    )
    assert server.metrics["loss"] == "0.25"


def test_a_forked_worker_is_silent_and_a_forked_training_is_not(server: Server, alone: Path) -> None:
    train(
        alone,
        """
        import os
        from trainwright import progress
        if os.fork() == 0:      # a launcher forks the training
            progress(1, 2)
            if os.fork() == 0:  # which forks a worker for its data
                progress(2, 2)
                os._exit(0)
            os.wait()
            raise SystemExit
        os.wait()
        """,
        address(server),
    )
    assert {report["progressPercentage"] for report in server.reports} == {50}


def test_the_one_file_does_not_hide_an_installed_trainwright(server: Server, alone: Path) -> None:
    code = """
        import trainwright, trainwright.version, trainwright.api.times
        from trainwright import progress
        progress(1, 4)
        print(trainwright.__file__)
    """
    source = str(SOURCE.parents[1])
    said = train(alone, code, address(server), site=True, PYTHONPATH=f"{alone}{os.pathsep}{source}")
    assert said.strip() == str(alone / "trainwright.py")
    eventually("the report", lambda: server.reports)
    assert server.last["progressPercentage"] == 25


def test_the_installed_package_has_it_too(server: Server, alone: Path) -> None:
    code = "import trainwright; from trainwright import progress; progress(1, 5); print(trainwright.__file__)"
    said = train(alone, code, address(server), site=True, PYTHONPATH=str(SOURCE.parents[1]))
    assert said.strip() == str(SOURCE.parent / "__init__.py")
    assert server.last["progressPercentage"] == 20
