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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from commandline import CommandLine, plain_job, processes_of

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


def wait_for(what: str, check: Callable[[], Any], seconds: float = 40) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return found


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
        before = [wait_for(f"rank {rank} to report", partial(reported, rank)) for rank in (0, 1)]
        first = wait_for("the status", lambda: status_of(trainwright, "steps"))
        assert (first["progressPercentage"], first["estimatedRemainingSeconds"]) == (20, 125)
        assert "20 %, 2m5s left, rank=" in trainwright("get")
        trainwright.kill_control_plane()
        killed = time.time()
        trainwright("up", "--detach")
        for rank, (pid, _) in enumerate(before):
            again = wait_for(f"rank {rank} to report again", partial(reported, rank, since=killed + 1))
            assert again[0] == pid, "the same process"
        wait_for("the new report", lambda: float(metric(status_of(trainwright, "steps"), "time") or 0) > killed)
        go.touch()
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    for rank in (0, 1):
        assert f"[rank {rank}] forged: 403 none: 403 good: 200" in output
        assert f"[rank {rank}] last: 200" in output
    assert "Progress  20 %, 2m5s left" in output
    assert "Progress  100 %, loss=0.25" in output
    assert (trainwright.directory / "operator" / "progress-port").read_text() == port
    assert "jobset completed successfully; 100 %, loss=0.25" in trainwright("get")


def test_a_token_of_another_job_is_refused(trainwright: CommandLine, tmp_path: Path) -> None:
    stolen = tmp_path / "token"
    body = f"""
        import time
        Path({str(stolen)!r}).write_text(Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text())
        time.sleep(600)
    """
    trainwright("up", "--detach")
    (tmp_path / "victim.yaml").write_text(plain_job("victim", script(body)))
    (tmp_path / "thief.yaml").write_text(
        plain_job("thief", script(f'print("stolen:", report(50, Path({str(stolen)!r}).read_text()))'))
    )
    with trainwright.start("run", str(tmp_path / "victim.yaml")) as victim:
        wait_for("the victim's token", lambda: stolen.exists() and stolen.read_text())
        assert "stolen: 403" in trainwright("run", str(tmp_path / "thief.yaml"))
        assert not status_of(trainwright, "thief")
        victim.terminate()
        victim.communicate(timeout=60)


def test_a_missing_service_account_costs_a_job_its_reports_and_nothing_else(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    body = """print("token:", Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).exists())"""
    job = plain_job("nobody", script(body)).replace(
        "restartPolicy: Never\n", f"restartPolicy: Never\n{' ' * 18}serviceAccountName: somebody-else\n"
    )
    assert "somebody-else" in job
    (tmp_path / "job.yaml").write_text(job)
    assert "token: False" in trainwright("run", str(tmp_path / "job.yaml"))


def test_the_example_shows_its_progress(trainwright: CommandLine) -> None:
    output = trainwright("run", str(EXAMPLE))
    assert re.search(r"Progress  \d+ %, \ds left, loss=[\d.]+, step=\d", output), output
    assert "Progress  100 %, loss=0.125, step=8" in output


PLAIN = """
import sys
from trainwright.embedded.node import tiers
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
