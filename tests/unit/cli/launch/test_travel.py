"""What goes along to a cluster, and the runtime of a run that may try again."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from trainwright.cli.failure import Failure
from trainwright.cli.launch.archive import pack
from trainwright.cli.launch.runtimes import runtime_of_run, training_job
from trainwright.cli.launch.travel import ARCHIVE, Luggage
from trainwright.cli.run.recording import discreet
from trainwright.embedded import manifests
from trainwright.schema.jsonobject import Json


def shipped(name: str) -> Json:
    return next(item for item in manifests.objects("runtimes") if item["metadata"]["name"] == name)


def test_a_secret_has_the_variables_and_an_immutable_config_map_the_directory(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    luggage = Luggage(run="train-x", job="node", variables={"TOKEN": "s€cret"}, archive=pack(tmp_path))
    secret, config_map = luggage.objects()
    assert (secret["kind"], config_map["kind"]) == ("Secret", "ConfigMap")
    assert secret["metadata"]["name"] == config_map["metadata"]["name"] == "train-x"
    assert base64.b64decode(secret["data"]["TOKEN"]).decode() == "s€cret"
    assert config_map["immutable"] is True
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(config_map["binaryData"][ARCHIVE]))) as tar:
        assert tar.getnames() == ["train.py"]
    assert "TOKEN" in str(discreet(secret))
    assert base64.b64encode("s€cret".encode()).decode() not in str(discreet(secret))


def test_nothing_to_carry_makes_no_objects() -> None:
    luggage = Luggage(run="train-x", job="node")
    assert luggage.objects() == []
    assert [volume["name"] for volume in _pod(luggage)["volumes"]] == ["trainwright-output"]


def test_output_goes_to_the_claim_in_a_directory_of_the_run() -> None:
    luggage = Luggage(run="train-x", job="node", output_claim="results")
    assert _pod(luggage)["volumes"] == [
        {"name": "trainwright-output", "persistentVolumeClaim": {"claimName": "results"}}
    ]
    assert {"name": "TRAINWRIGHT_OUTPUT", "value": "/trainwright/output/train-x"} in luggage.env()


def _pod(luggage: Luggage) -> Json:
    [job] = luggage.patch()["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == "node"
    pod: Json = job["template"]["spec"]["template"]["spec"]
    return pod


def test_the_command_unpacks_changes_directory_and_becomes_the_program(tmp_path: Path) -> None:
    code, work, output = tmp_path / "code.tar.gz", tmp_path / "work", tmp_path / "out" / "run"
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data" / "x.csv").write_text("1,2")
    code.write_bytes(pack(project).content)
    work.mkdir()
    luggage = Luggage(run="train-x", job="node")
    variables = {"TRAINWRIGHT_CODE": code, "TRAINWRIGHT_WORKDIR": work, "TRAINWRIGHT_OUTPUT": output}
    script = "import os, sys; print(os.getcwd(), open('data/x.csv').read(), sys.argv[1:], os.getpid())"
    process = subprocess.Popen(
        [*luggage.command, "python3", "-c", script, "a b", "$HOME"],
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = process.communicate(timeout=30)
    assert said.split("\n")[0] == f"{work} 1,2 ['a b', '$HOME'] {process.pid}", "signals reach the program itself"
    assert output.is_dir()


def test_an_archive_that_cannot_be_unpacked_fails_before_the_program(tmp_path: Path) -> None:
    luggage = Luggage(run="train-x", job="node")
    done = subprocess.run(
        [*luggage.command, "echo", "it ran"],
        env={
            **os.environ,
            "TRAINWRIGHT_CODE": "/no/such.tar.gz",
            "TRAINWRIGHT_WORKDIR": str(tmp_path),
            "TRAINWRIGHT_OUTPUT": str(tmp_path / "out"),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode != 0
    assert "it ran" not in done.stdout


def test_a_run_with_retries_has_a_runtime_of_its_own() -> None:
    base = shipped("torch-distributed")
    own = runtime_of_run(base, name="train-x", retries=2)
    assert (own["kind"], own["metadata"]["name"]) == ("TrainingRuntime", "train-x")
    assert own["spec"]["template"]["spec"]["failurePolicy"] == {"maxRestarts": 2}
    assert own["spec"]["mlPolicy"] == base["spec"]["mlPolicy"]
    assert own["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "torch"
    assert "failurePolicy" not in base["spec"]["template"]["spec"], "the runtime it was made from is untouched"


def test_rules_of_the_runtime_stay_beside_the_retries() -> None:
    base = shipped("plain")
    rules = [{"name": "oom", "action": "FailJobSet"}]
    base["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 9, "rules": rules}
    own = runtime_of_run(base, name="x", retries=1)
    assert own["spec"]["template"]["spec"]["failurePolicy"] == {"maxRestarts": 1, "rules": rules}


def test_a_directory_goes_to_the_job_that_trains_and_not_to_one_that_starts_others_over_ssh() -> None:
    assert training_job(shipped("torch-distributed"), ships=True) == "node"
    with pytest.raises(Failure, match="--workdir none"):
        training_job(shipped("deepspeed-distributed"), ships=True)
    assert training_job(shipped("deepspeed-distributed"), ships=False)
