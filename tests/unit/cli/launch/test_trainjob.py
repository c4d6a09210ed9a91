"""The TrainJob that a program becomes, as a user typed it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from trainwright.api.wellknown import RUN, WORKDIR
from trainwright.cli.failure import Failure
from trainwright.cli.launch.choice import Choice, variables
from trainwright.cli.launch.interpreter import callers_environment
from trainwright.cli.launch.program import Program, program_of
from trainwright.cli.launch.trainjob import Runtime, local_trainjob, remote_trainjob
from trainwright.cli.launch.travel import UNPACK, Luggage
from trainwright.schema.jsonobject import Json

TORCH = Runtime("torch-distributed", is_torch=True)
PLAIN = Runtime("plain")
PYTHON = Path("/venv/bin/python")


def local(program: Program, runtime: Runtime = TORCH, choice: Choice | None = None) -> Json:
    return local_trainjob(
        choice or Choice(), program, runtime, name="train-x", run="train-x", python=PYTHON, workdir=Path("/proj")
    )


def test_a_script_runs_under_torchrun_of_the_users_python_in_the_users_directory() -> None:
    job = local(Program("script", "/proj/src/train.py", ("--lr", "0.1")), choice=Choice(nodes=2))
    assert job["spec"] == {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {
            "command": [str(PYTHON), "-m", "torch.distributed.run", "src/train.py", "--lr", "0.1"],
            "numNodes": 2,
        },
    }
    assert job["metadata"] == {"name": "train-x", "annotations": {RUN: "train-x", WORKDIR: "/proj"}}


def test_a_module_and_a_script_without_torch_run_by_python_itself() -> None:
    assert local(Program("module", "pkg.train", ("-v",)), PLAIN)["spec"]["trainer"] == {
        "command": [str(PYTHON), "-m", "pkg.train", "-v"]
    }
    assert local(Program("module", "pkg.train"))["spec"]["trainer"]["command"][1:] == [
        "-m",
        "torch.distributed.run",
        "-m",
        "pkg.train",
    ]


def test_mpirun_starts_a_script_whose_runtime_is_an_mpis() -> None:
    runtime = Runtime("mpi-distributed", is_mpi=True)
    job = local(Program("script", "/proj/train.py", ("--lr", "0.1")), runtime, Choice(nodes=3))
    assert job["spec"]["trainer"] == {"command": ["mpirun", str(PYTHON), "train.py", "--lr", "0.1"], "numNodes": 3}
    typed = local(Program("command", "mpirun", ("-n", "2", "python", "train.py")), runtime)
    assert typed["spec"]["trainer"]["command"] == ["mpirun", "-n", "2", "python", "train.py"], "and none twice"


def test_a_command_stays_as_it_was_typed() -> None:
    job = local(Program("command", "./train.sh", ("a b", "$(date)", "$HOME", "100$$")), TORCH)
    assert job["spec"]["trainer"]["command"] == ["./train.sh", "a b", "$$(date)", "$HOME", "100$$$$"], (
        "what Kubernetes would expand is escaped"
    )


def test_several_processes_mark_their_lines() -> None:
    job = local(Program("script", "/proj/train.py"), choice=Choice(procs=4))
    assert job["spec"]["trainer"]["command"][3:] == ["--tee=3", "train.py"]
    assert job["spec"]["trainer"]["numProcPerNode"] == 4


def test_resources_are_those_of_each_node() -> None:
    trainer = local(Program("script", "/proj/t.py"), choice=Choice(cpus="4", memory="16Gi", gpus=2))["spec"]["trainer"]
    assert trainer["resourcesPerNode"] == {
        "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "2"},
    }
    for wrong in ("lots", "0", "-1"):
        with pytest.raises(Failure, match="such as 4 or 16Gi"):
            local(Program("script", "/proj/t.py"), choice=Choice(memory=wrong))


def test_many_processes_need_a_runtime_that_starts_them() -> None:
    with pytest.raises(Failure, match="such as torch-distributed"):
        local(Program("script", "/proj/t.py"), PLAIN, Choice(procs=2))


def test_a_long_command_line_goes_on_in_args() -> None:
    words = tuple(str(number) for number in range(200))
    trainer = local(Program("command", "go", words), PLAIN)["spec"]["trainer"]
    assert [*trainer["command"], *trainer["args"]] == ["go", *words]
    assert len(trainer["command"]) == 128
    with pytest.raises(Failure, match="301 words"):
        local(Program("command", "go", words + words[:100]), PLAIN)


def test_elsewhere_the_image_has_the_python_and_only_named_variables_travel() -> None:
    luggage = Luggage(run="train-x", job="node", variables={"HF_TOKEN": "hf_value"}, output_claim="results")
    program = Program("script", "train.py", ("--lr", "1"))
    job = remote_trainjob(Choice(), program, TORCH, luggage, name="train-x", run="train-x")
    trainer = job["spec"]["trainer"]
    assert trainer["command"] == ["sh", "-c", UNPACK, "trainwright", "torchrun", "train.py", "--lr", "1"]
    assert trainer["env"] == [
        {"name": "TRAINWRIGHT_OUTPUT", "value": "/trainwright/output/train-x"},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "train-x", "key": "HF_TOKEN"}}},
    ]
    assert "hf_value" not in str(job)
    assert WORKDIR not in job["metadata"]["annotations"]


def test_what_was_typed_is_understood(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    assert program_of(str(script), None, ["-x"]) == Program("script", str(script), ("-x",))
    assert program_of(None, "pkg.mod", ["-x"]) == Program("module", "pkg.mod", ("-x",))
    assert program_of(None, None, ["torchrun", "t.py"]) == Program("command", "torchrun", ("t.py",))
    assert program_of("job.yaml", None, []) is None
    assert program_of("-", None, []) is None
    with pytest.raises(Failure, match="nothing to run: name a script"):
        program_of(None, None, [])
    with pytest.raises(Failure, match="there is no file"):
        program_of(str(tmp_path / "trian.py"), None, [])
    with pytest.raises(Failure, match="arguments go after --"):
        program_of("x", "pkg", [])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (["A=1", "B=", "C=x=y"], {"A": "1", "B": "", "C": "x=y"}),
        (["HOME"], {"HOME": "/home/ada"}),
    ],
)
def test_variables_are_named_with_or_without_a_value(named: list[str], expected: Mapping[str, str]) -> None:
    assert variables(named, {"HOME": "/home/ada"}) == expected


def test_bytes_that_are_no_text_are_refused_or_stay_behind(tmp_path: Path) -> None:
    odd = b"\xff".decode(errors="surrogateescape")
    with pytest.raises(Failure, match="is not UTF-8"):
        program_of(None, None, ["echo", odd])
    with pytest.raises(Failure, match="--env ODD: its value is not UTF-8"):
        variables(["ODD"], {"ODD": odd})
    assert callers_environment({"ODD": odd, "EVEN": "2"}, {}, None, tmp_path) == {"EVEN": "2", "PWD": str(tmp_path)}


def test_a_script_that_looks_like_a_flag_is_still_a_script() -> None:
    assert local(Program("script", "/proj/-c.py"), PLAIN)["spec"]["trainer"]["command"] == [str(PYTHON), "./-c.py"]


def test_a_variable_that_is_not_set_is_a_sentence() -> None:
    with pytest.raises(Failure, match="HF_TOKEN is not set here"):
        variables(["HF_TOKEN"], {})
    with pytest.raises(Failure, match="not the name of a variable"):
        variables(["1=2"], {})
