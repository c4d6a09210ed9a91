"""v1's jobs become TrainJobs whose pods mean the same, or are refused with a reason."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.cli.files.convert import rendered
from trainwright.cli.main import main
from trainwright.conversion.conversion import Converted, Options, convert
from trainwright.conversion.findings import Refused, Verdict
from trainwright.conversion.proof import differences, prove
from trainwright.conversion.v1job import read
from v1jobs import random_job

Json = dict[str, Any]
RECORDED = Path(__file__).parents[2] / "conformance" / "v1" / "jobs.yaml"
JOBS = {job["metadata"]["name"]: job for job in yaml.safe_load_all(RECORDED.read_text())}

CANNOT_BE_KEPT = {
    "restartPolicy",  # Always
    "backoffLimit",
    "enableDynamicWorker",
    "worker command",
    "minAvailable",
    "elasticPolicy.metrics",
}


def proven(value: Json, options: Options = Options()) -> tuple[Converted, set[str]]:  # noqa: B008
    """The converted job, and what differs."""
    converted = convert(read(value), options)
    return converted, {finding.aspect for finding in differences(prove(converted, rendered(converted)), set())}


@pytest.mark.parametrize("name", JOBS)
def test_every_recorded_job_converts_with_a_complete_proof(name: str) -> None:
    _, differing = proven(JOBS[name])
    assert not differing


@pytest.mark.parametrize("block", range(8))
def test_random_jobs_convert_or_are_refused_with_a_known_reason(block: int) -> None:
    gangs = ("volcano", "coscheduling", "none")
    clean = 0
    for seed in range(block * 50, block * 50 + 50):
        _, differing = proven(random_job(seed), Options(gang=gangs[seed % 3]))
        assert differing <= CANNOT_BE_KEPT, f"seed {seed}"
        clean += not differing
    assert clean >= 20


def test_a_plain_job_needs_no_runtime_of_its_own() -> None:
    converted, _ = proven(JOBS["jax"])
    assert converted.runtime is None
    assert converted.train_job["spec"]["runtimeRef"]["name"] == "jax-distributed"
    assert converted.train_job["spec"]["trainer"]["numNodes"] == 2


def test_types_with_one_template_become_one_replicated_job_and_others_one_each() -> None:
    job = copy.deepcopy(JOBS["pt"])
    assert [group.name for group in proven(job)[0].layout.groups] == ["master", "worker"]
    replicas = job["spec"]["pytorchReplicaSpecs"]
    replicas["Master"]["template"] = replicas["Worker"]["template"]
    assert [group.name for group in proven(job)[0].layout.groups] == ["node"]


def test_wrapped_by_torchrun_as_asked() -> None:
    converted, differing = proven(JOBS["pt"], Options(wrap="torchrun"))
    assert not differing
    jobset = next(item for item in rendered(converted) if item["kind"] == "JobSet")
    commands = [
        job["template"]["spec"]["template"]["spec"]["containers"][0]["command"]
        for job in jobset["spec"]["replicatedJobs"]
    ]
    assert commands == [["torchrun", "train.py", "--epochs", "1"]] * 2


def broken_image(jobset: Json) -> None:
    pod_spec(jobset)["containers"][0]["image"] = "another:1"


def broken_rank(jobset: Json) -> None:
    env = pod_spec(jobset, 1)["containers"][0]["env"]
    next(entry for entry in env if entry["name"] == "RANK")["valueFrom"]["fieldRef"]["fieldPath"] = (
        "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    )


def broken_address(jobset: Json) -> None:
    env = pod_spec(jobset, 1)["containers"][0]["env"]
    next(entry for entry in env if entry["name"] == "MASTER_ADDR")["value"] = "pt-worker-0-0.pt"


def broken_count(jobset: Json) -> None:
    jobset["spec"]["replicatedJobs"][1]["replicas"] = 3


def broken_limit(jobset: Json) -> None:
    pod_spec(jobset)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2"


def broken_field(jobset: Json) -> None:
    pod_spec(jobset)["hostIPC"] = True


def pod_spec(jobset: Json, number: int = 0) -> Json:
    found: Json = jobset["spec"]["replicatedJobs"][number]["template"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("harm", "aspect"),
    [
        (broken_image, "image"),
        (broken_rank, "v1's variables"),
        (broken_address, "v1's variables"),
        (broken_count, "pods"),
        (broken_limit, "resources"),
        (broken_field, "pod fields"),
    ],
)
def test_the_proof_sees_what_is_not_the_same(harm: Callable[[Json], None], aspect: str) -> None:
    converted = convert(read(JOBS["pt"]))
    objects = rendered(converted)
    harm(next(item for item in objects if item["kind"] == "JobSet"))
    assert aspect in {finding.aspect for finding in differences(prove(converted, objects), set())}


def without(*path: str) -> Callable[[Json], None]:
    def remove(job: Json) -> None:
        for step in path[:-1]:
            job = job[step]
        del job[path[-1]]

    return remove


def with_value(value: Any, *path: str) -> Callable[[Json], None]:
    def put(job: Json) -> None:
        for step in path[:-1]:
            job = job.setdefault(step, {})
        job[path[-1]] = value

    return put


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("pt", without("spec", "pytorchReplicaSpecs", "Master"), "there is no Master"),
        ("xgb", without("spec", "xgbReplicaSpecs", "Master"), "must be there: it is rank 0"),
        ("mpi", without("spec", "mpiReplicaSpecs", "Launcher"), "exactly one launcher"),
        ("mpi", without("spec", "mpiReplicaSpecs", "Worker"), "there is no worker"),
        ("pt", with_value({}, "spec", "pytorchReplicaSpecs", "Boss"), "has no such replica type"),
        ("pt", with_value(None, "spec", "pytorchReplicaSpecs"), "must be given, by type"),
        ("pt-elastic", without("spec", "pytorchReplicaSpecs", "Worker"), "must be given, by type"),
        ("pt", with_value({"minReplicas": 3, "maxReplicas": 1}, "spec", "elasticPolicy"), "minReplicas 3 is more"),
        ("tf", with_value({"queue": "q"}, "spec", "runPolicy", "schedulingPolicy"), "--gang volcano"),
        ("jax", with_value("Sometimes", "spec", "jaxReplicaSpecs", "Worker", "restartPolicy"), "must be one of"),
        ("jax", with_value("nobody", "spec", "runPolicy", "managedBy"), "must be one of"),
        ("jax", with_value("Not-A-Name", "metadata", "name"), "is not a DNS label"),
        ("jax", with_value(-1, "spec", "jaxReplicaSpecs", "Worker", "replicas"), "not negative"),
    ],
)
def test_bad_input_gets_a_sentence(name: str, change: Callable[[Json], None], sentence: str) -> None:
    job = copy.deepcopy(JOBS[name])
    change(job)
    with pytest.raises(Refused) as refused:
        convert(read(job))
    assert any(sentence in text for text in refused.value.sentences)


def test_both_kinds_of_elastic_settings_are_refused() -> None:
    job = copy.deepcopy(JOBS["pt-elastic"])
    job["spec"]["nprocPerNode"] = "2"
    job["spec"]["elasticPolicy"]["nProcPerNode"] = 2
    with pytest.raises(Refused) as refused:
        read(job)
    assert refused.value.sentences == [
        "spec.elasticPolicy.nProcPerNode: must not be given beside spec.nprocPerNode; keep the latter"
    ]


def test_null_fields_count_as_absent() -> None:
    job = copy.deepcopy(JOBS["pt"])
    job["metadata"]["labels"] = None
    job["spec"].update(elasticPolicy=None, runPolicy={"backoffLimit": None, "schedulingPolicy": None})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": None}
    assert not proven(job)[1]


def test_what_cannot_be_kept_is_refused_unless_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = copy.deepcopy(JOBS["pt"])
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "Always"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    assert main(["convert", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is refused: it would differ; to convert it all the same: --accept 'restartPolicy'" in printed.err
    assert main(["convert", str(file), "--accept", "restartPolicy"]) == 0
    printed = capsys.readouterr()
    assert {item["kind"] for item in yaml.safe_load_all(printed.out)} == {"TrainingRuntime", "TrainJob"}
    assert "differs (accepted)" in printed.err


def test_what_is_printed_can_be_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--quiet", str(RECORDED)]) == 0
    file = tmp_path / "converted.yaml"
    file.write_text(capsys.readouterr().out)
    assert main(["validate", str(file)]) == 0
    assert "all admitted" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["validate", "render"])
def test_commands_for_trainjobs_say_that_convert_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(RECORDED)]) == 1
    assert "make a TrainJob of it with: trainwright convert" in capsys.readouterr().err


def test_a_file_without_v1_jobs_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    assert main(["convert", str(file)]) == 1
    assert "no job of Training Operator v1 to convert" in capsys.readouterr().err


def test_names_of_v1_pods_in_a_command_are_pointed_out() -> None:
    job = copy.deepcopy(JOBS["pt"])
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["args"] = ["--to", "pt-master-0"]
    converted, differing = proven(job)
    assert "names" in differing
    reason = next(finding.reason for finding in converted.findings if finding.aspect == "names")
    assert reason == "Worker, container pytorch spells out pt-master-0, which is now pt-master-0-0.pt"
    assert all(finding.verdict is not Verdict.DIFFERS for finding in converted.findings if finding.aspect != "names")
