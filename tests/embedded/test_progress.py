"""Progress reports in the local cluster: training code with nothing but the standard library, real processes, real TLS.

On a machine with namespaces the pods find the server by name and the files at their path; `plain` tells the control
plane that there are none, as on macOS, and pods find both by their variables.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import time
import venv
from functools import partial
from pathlib import Path
from typing import Any

from commandline import CommandLine, plain_job, processes_of
from pseudoterminal import on_terminal
from waiting import eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "progress" / "trainjob.yaml"

REPORT = """
import json, os, ssl, urllib.error, urllib.request
from datetime import datetime, timezone
from pathlib import Path

RANK = os.environ["JOB_COMPLETION_INDEX"]

def report(percentage, token=None, **metrics):
    status = {
        "progressPercentage": percentage,
        "estimatedRemainingSeconds": 125,
        "metrics": [{"name": name, "value": str(value)} for name, value in metrics.items()],
        "lastUpdatedTime": datetime.now(timezone.utc).isoformat(),
    }
    token = token or Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text()
    request = urllib.request.Request(
        os.environ["KUBEFLOW_TRAINER_SERVER_URL"],
        json.dumps({"trainerStatus": status}).encode(),
        {"Authorization": f"Bearer {token}"},
    )
    trust = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
    try:
        return urllib.request.urlopen(request, timeout=5, context=trust).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return str(error)
"""


def script(body: str) -> str:
    return REPORT + textwrap.dedent(body)


def status_of(trainwright: CommandLine, name: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(trainwright("get", "trainjobs", name, "-o", "json")).get("status", {})
    return status.get("trainerStatus") or {}


def metric(status: dict[str, Any], name: str) -> str:
    return next((item["value"] for item in status.get("metrics", ()) if item["name"] == name), "")


def test_two_ranks_report_and_the_same_processes_report_again_after_a_kill_of_the_control_plane(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    body = f"""
        import time
        good = Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text()
        head, claims, signature = good.split(".")
        forged = f"{{head}}.{{claims}}.{{signature[::-1]}}"
        print("forged:", report(99, forged), "none:", report(99, "x"), "good:", report(10, rank=RANK))
        while not Path({str(go)!r}).exists():
            answer = report(20, **{{"rank": RANK, f"pid-of-{{RANK}}": os.getpid(), "time": int(time.time())}})
            if answer == 200:
                Path({str(tmp_path)!r}, f"rank-{{RANK}}").write_text(f"{{os.getpid()}} {{time.time()}}")
            time.sleep(0.2)
        print("last:", report(100, loss=0.25))
    """
    file = tmp_path / "job.yaml"
    file.write_text(plain_job("steps", script(body), nodes=2))

    def reported(rank: int, since: float = 0.0) -> tuple[int, float] | None:
        path = tmp_path / f"rank-{rank}"
        words = path.read_text().split() if path.exists() else []
        return (int(words[0]), float(words[1])) if len(words) == 2 and float(words[1]) > since else None

    trainwright("up", "--detach")
    port = (trainwright.directory / "operator" / "progress-port").read_text()
    with trainwright.start("run", str(file)) as run:
        before = [eventually(f"rank {rank} to report", partial(reported, rank)) for rank in (0, 1)]
        first = eventually("the status", lambda: status_of(trainwright, "steps"))
        assert (first["progressPercentage"], first["estimatedRemainingSeconds"]) == (20, 125)
        assert "20 %, 2m5s left, rank=" in trainwright("get")
        trainwright.kill_control_plane()
        killed = time.time()
        trainwright("up", "--detach")
        for rank, (pid, _) in enumerate(before):
            again = eventually(f"rank {rank} to report again", partial(reported, rank, since=killed + 1))
            assert again[0] == pid, "the same process"
        eventually("the new report", lambda: float(metric(status_of(trainwright, "steps"), "time") or 0) > killed)
        go.touch()
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    for rank in (0, 1):
        assert f"[rank {rank}] forged: 403 none: 403 good: 200" in output
        assert f"[rank {rank}] last: 200" in output
    assert re.search("Progress  [12]0 %, 2m5s left", output)
    assert "Progress  100 %, loss=0.25" in output
    assert (trainwright.directory / "operator" / "progress-port").read_text() == port
    assert re.search(r"100 %, loss=0.25 +jobset completed successfully", trainwright("get"))


def test_reports_and_lines_of_an_outage_arrive_later_in_order(trainwright: CommandLine, tmp_path: Path) -> None:
    """The control plane is away for some seconds; the training counts on, and nothing of what it says is lost."""
    end = tmp_path / "end"
    (tmp_path / "train.py").write_text(
        textwrap.dedent(f"""
        import pathlib, time
        from trainwright import progress
        step = 0
        while not pathlib.Path({str(end)!r}).exists():
            step += 1
            print("step", step, flush=True)
            progress(step, 1000)
            time.sleep(1.1)
        """)
    )
    trainwright("up", "--detach")
    trainwright("run", "train.py", "--name", "patient", "--detach", cwd=tmp_path)

    def steps() -> list[int]:
        [run] = trainwright.parsed("runs", "-o", "json")
        recorded = trainwright.parsed("runs", "describe", run["id"], "-o", "json")["metrics"]
        return [int(report["metrics"]["step"]) for report in recorded]

    eventually("it reports", steps, 30)
    trainwright.kill_control_plane()
    seen = steps()[-1]
    time.sleep(6)  # the outage
    assert steps()[-1] == seen
    trainwright("up", "--detach")
    eventually("what was kept, and what is new", lambda: steps()[-1] > seen + 7, 60)
    end.touch()
    trainwright("wait", "patient", "--timeout", "30s")
    arrived = [step for step in steps() if step >= seen]
    assert arrived == list(range(seen, arrived[-1] + 1)), "each of them, once and in order"
    lines = [line.rpartition("step ")[2] for line in trainwright("logs", "patient").splitlines() if "step " in line]
    assert lines == [str(number) for number in range(1, int(lines[-1]) + 1)]


def test_a_token_of_another_job_is_refused(shared: CommandLine, tmp_path: Path) -> None:
    stolen = tmp_path / "token"
    body = f"""
        import time
        Path({str(stolen)!r}).write_text(Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text())
        time.sleep(600)
    """
    (tmp_path / "victim.yaml").write_text(plain_job("victim", script(body)))
    (tmp_path / "thief.yaml").write_text(
        plain_job("thief", script(f'print("stolen:", report(50, Path({str(stolen)!r}).read_text()))'))
    )
    with shared.start("run", str(tmp_path / "victim.yaml")) as victim:
        eventually("the victim's token", lambda: stolen.exists() and stolen.read_text())
        assert "stolen: 403" in shared("run", str(tmp_path / "thief.yaml"))
        assert not status_of(shared, "thief")
        victim.terminate()
        victim.communicate(timeout=60)


def test_a_missing_service_account_costs_a_job_its_reports_and_nothing_else(
    shared: CommandLine, tmp_path: Path
) -> None:
    body = """print("token:", Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).exists())"""
    job = plain_job("nobody", script(body)).replace(
        "restartPolicy: Never\n", f"restartPolicy: Never\n{' ' * 18}serviceAccountName: somebody-else\n"
    )
    assert "somebody-else" in job
    (tmp_path / "job.yaml").write_text(job)
    assert "token: False" in shared("run", str(tmp_path / "job.yaml"))


def test_the_example_shows_its_progress(shared: CommandLine) -> None:
    output = shared("run", str(EXAMPLE))
    assert re.search(r"Progress  \d+ %, \ds left, loss=[\d.]+, step=\d", output), output
    assert "Progress  100 %, loss=0.125, step=8" in output


PLAIN = """
import sys
from trainwright.embedded.node.supervision import tiers
tiers.probe = lambda: tiers.plain("told so by a test")
from trainwright.cli.main import main
sys.exit(main())
"""


def test_plain_processes_report_by_what_their_variables_say(trainwright: CommandLine, tmp_path: Path) -> None:
    body = 'print("answer:", report(70), os.environ["KUBEFLOW_TRAINER_SERVER_URL"][:18])'
    (tmp_path / "job.yaml").write_text(plain_job("plain", script(body), nodes=2))
    up = [sys.executable, "-c", PLAIN, "up", "--dir", str(trainwright.directory)]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        assert any("is up" in line for line in iter(serving.stdout.readline, ""))
        output = trainwright("run", str(tmp_path / "job.yaml"))
        serving.terminate()
        serving.communicate(timeout=60)
    for rank in (0, 1):
        assert f"[rank {rank}] answer: 200 https://127.0.0.1:" in output
    assert "Progress  70 %, 2m5s left" in output
    assert not processes_of(trainwright.directory)


def test_two_lines_of_code_are_enough_whatever_python_runs_them(shared: CommandLine, tmp_path: Path) -> None:
    """A virtualenv of the user's that has never heard of Trainwright, and a PYTHONPATH of their own."""
    venv.create(tmp_path / "theirs", symlinks=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "neighbour.py").write_text("STEPS = 4")
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        import time
        from neighbour import STEPS
        from trainwright import progress
        for step in range(1, STEPS + 1):
            time.sleep(0.3)
            progress(step, STEPS, loss=1 / step)
        """)
    )
    python = str(tmp_path / "theirs" / "bin" / "python")
    environment = {"PYTHONPATH": str(mine)}
    shared("run", "train.py", "--python", python, "--name", "two-lines", "--nodes", "2", cwd=tmp_path, env=environment)
    assert "100 %" in shared("get", "two-lines")
    assert metric(status_of(shared, "two-lines"), "loss") == "0.25"


def test_a_bar_grows_on_a_terminal_and_its_last_state_stays(shared: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""
        import time
        from trainwright import progress
        for step in range(1, 41):
            time.sleep(0.1)
            progress(step, 40, loss=1 / step)
        """)
    )
    with on_terminal(shared.command("run", str(tmp_path / "train.py"), "--name", "grows")) as run:
        assert run.wait() == 0, run.screen
    rows = [re.search(r"^grows  (█*)░*  (\d+) %, (\d+)/40, (.*)$", screen, re.MULTILINE) for screen in run.ever_seen]
    seen = {int(row[2]): row for row in rows if row}
    assert len(seen) >= 3, "it was seen on its way"
    assert all(len(row[1]) == 24 * percent // 100 for percent, row in seen.items())
    assert any(re.search(r"\d+s left, [\d.]+/s, loss=", row[4]) for row in seen.values()), "time left, pace and metric"
    assert max(screen.count("░") for screen in run.ever_seen) <= 24, "and never twice"
    assert "░" not in run.screen
    assert "grows  Progress  100 %, 40/40, loss=0.025" in run.screen


def test_a_bar_that_the_code_prints_is_understood_without_a_line_of_code(shared: CommandLine, tmp_path: Path) -> None:
    """The recorded output of a training with Hugging Face's Trainer, printed again at its pace."""
    recorded = Path(__file__).parents[1] / "unit" / "embedded" / "recorder" / "bars" / "hf.txt"
    body = f"""
        import sys, time
        for piece in open({str(recorded)!r}, newline="").read().split("\\r"):
            sys.stderr.write("\\r" + piece)
            sys.stderr.flush()
            time.sleep(0.05)
    """
    (tmp_path / "job.yaml").write_text(plain_job("quiet", body, nodes=2))
    output = shared("run", str(tmp_path / "job.yaml"))
    percents = [int(found) for found in re.findall(r"Progress  (\d+) %, \d+/48, ", output)]
    assert len(percents) >= 2, output
    assert percents == sorted(percents)
    assert re.search(
        r"100 %, 48/48, loss=0\.\d+, grad_norm=[\d.]+, learning_rate=\S+, and \d+ more", shared("get", "quiet")
    )
