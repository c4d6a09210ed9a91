"""`trainwright run train.py` on another cluster, with real processes behind it.

The other cluster is a local one, reached by a kubeconfig that does not lie in its directory: the command then knows it
only as a Kubernetes API, and its pods run exactly the command that they would run anywhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commandline import COMMAND, CommandLine
from trainwright.runs import RunsHome
from trainwright.runs.logs import log_files, merged


class Elsewhere:
    """Commands with `--kubeconfig`, and their records in a directory of their own."""

    def __init__(self, trainwright: CommandLine, folder: Path) -> None:
        trainwright("up", "--detach")
        self.kubeconfig = folder / "team.kubeconfig"
        self.kubeconfig.write_text(trainwright.kubeconfig.read_text())
        self.records = folder / "records"
        self.project = folder / "proj"
        self.project.mkdir()

    def __call__(self, name: str, *arguments: str, code: int = 0, **variables: str) -> str:
        done = subprocess.run(
            [*COMMAND, name, "--kubeconfig", str(self.kubeconfig), "--dir", str(self.records), *arguments],
            cwd=self.project,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def objects(self, kubectl_path: str) -> str:
        """The body of a GET, by a client of the same kubeconfig."""
        script = (
            "import asyncio, sys\n"
            "from trainwright.client import Client\n"
            "from trainwright.client.kubeconfig import load\n"
            "async def main():\n"
            "    async with Client.to(load(sys.argv[1])) as client:\n"
            "        print((await client.raw(sys.argv[2], decode=bytes)).decode())\n"
            "asyncio.run(main())\n"
        )
        command = [sys.executable, "-c", script, str(self.kubeconfig), kubectl_path]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in json.loads(self.objects(path))["items"]]


@pytest.fixture
def elsewhere(trainwright: CommandLine, tmp_path: Path) -> Elsewhere:
    return Elsewhere(trainwright, tmp_path)


TRAIN = """
import os, sys
from neighbour import load
print("arguments", sys.argv[1:], "data", load(), "token", len(os.environ["HF_TOKEN"]), os.environ.get("UNNAMED"))
print("in the project itself:", os.path.samefile(os.getcwd(), {project!r}))
open(os.environ["TRAINWRIGHT_OUTPUT"] + "/model.pt", "w").write("trained")
"""


def test_code_data_and_named_variables_travel_and_nothing_else(elsewhere: Elsewhere) -> None:
    (elsewhere.project / "data").mkdir()
    (elsewhere.project / "data" / "x.csv").write_text("1,2,3")
    (elsewhere.project / "neighbour.py").write_text("def load():\n    return open('data/x.csv').read()\n")
    (elsewhere.project / "train.py").write_text(TRAIN.format(project=str(elsewhere.project)))
    (elsewhere.project / "secrets.txt").write_text("stays here")
    (elsewhere.project / ".gitignore").write_text("secrets.txt\n")
    output = elsewhere("run", "train.py", "--env", "HF_TOKEN", "--", "--lr", "0.1", HF_TOKEN="abc", UNNAMED="1")
    assert "arguments ['--lr', '0.1'] data 1,2,3 token 3 None" in output
    assert "in the project itself: False" in output
    assert "4 files" in output, "what git ignores stays at home"
    assert "--output-claim" in output, "an output that goes with the pods is announced"
    found = re.search(r"^(\S+)  Created", output, re.MULTILINE)
    assert found
    name = found[1]
    record = json.loads((elsewhere.records / "runs" / name / "run.json").read_text())
    assert (record["state"], record["context"], record["exit_code"]) == ("Complete", "trainwright", 0)
    assert record["server"].startswith("https://127.0.0.1:")
    kept = (elsewhere.records / "runs" / name / "trainjob.yaml").read_text()
    assert "HF_TOKEN" in kept
    assert "YWJj" not in kept, "no value of a Secret is kept here"
    assert not (elsewhere.records / "runs" / name / "environment.json").exists()

    assert "arguments ['--lr', '0.1']" in elsewhere("logs", name)

    secrets, config_maps = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/configmaps"
    assert name in elsewhere.names(secrets)
    assert name in elsewhere.names(config_maps)
    elsewhere("delete", name)
    wait_until_gone(elsewhere, name, secrets, config_maps)
    kept_lines = [line.text for line in merged(log_files(RunsHome(elsewhere.records).of(name)))]
    assert any(line.startswith("arguments ['--lr', '0.1']") for line in kept_lines), "what run saw is kept here"


def wait_until_gone(elsewhere: Elsewhere, name: str, *paths: str) -> None:
    deadline = time.monotonic() + 20
    while left := [path for path in paths if name in elsewhere.names(path)]:
        assert time.monotonic() < deadline, f"{name} stays in {left}"
        time.sleep(0.1)


def test_a_refused_trainjob_leaves_nothing_behind(elsewhere: Elsewhere) -> None:
    (elsewhere.project / "train.py").write_text("import torch")
    output = elsewhere("run", "train.py", "--env", "PET_NNODES=7", "--retries", "1", code=1)
    assert "PET_NNODES" in output
    assert elsewhere.names("/api/v1/namespaces/default/secrets") == []
    assert not [name for name in elsewhere.names("/api/v1/namespaces/default/configmaps") if name.startswith("train-")]
    assert elsewhere.names("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes") == []


def test_retries_bring_a_runtime_that_goes_with_the_run(elsewhere: Elsewhere) -> None:
    (elsewhere.project / "train.py").write_text("raise SystemExit('no luck')")
    output = elsewhere("run", "train.py", "--retries", "1", code=1)
    assert "attempt 2 of 2" in output
    runtimes = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes"
    [name] = elsewhere.names(runtimes)
    elsewhere("delete", name)
    wait_until_gone(elsewhere, name, runtimes)


def test_a_directory_that_is_too_large_is_refused_before_anything_is_created(elsewhere: Elsewhere) -> None:
    (elsewhere.project / "train.py").write_text("print(1)")
    (elsewhere.project / "weights.bin").write_bytes(os.urandom(2_000_000))
    output = elsewhere("run", "train.py", code=1)
    assert "weights.bin (2.0 MB)" in output
    assert "--image IMAGE --workdir none" in output
    assert elsewhere.names("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs") == []
    (elsewhere.project / ".trainwrightignore").write_text("*.bin\n")
    assert "Complete" in elsewhere("run", "train.py")


def test_with_the_code_in_the_image_nothing_travels(elsewhere: Elsewhere) -> None:
    (elsewhere.project / "here.txt").write_text("at home")
    output = elsewhere("run", "--workdir", "none", "--", "sh", "-c", "test -d $TRAINWRIGHT_OUTPUT && ls; echo listed")
    assert "[rank 0] listed" in output
    assert "here.txt" not in output
    [name] = elsewhere.names("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs")
    assert name not in elsewhere.names("/api/v1/namespaces/default/configmaps")
