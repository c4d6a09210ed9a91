"""The example's own tests: it runs inside a real build, with the built-in plugins around it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from trainwright.api.resources import JOB_SETS, JOBS
from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.trainjob import JobStatus, TrainJob, trainjob_from
from trainwright.pipeline import Apply, MaskedKeys, Observed, PluginFailed, Workload, build, workload_of
from trainwright.pipeline.validation import validate_trainjob
from trainwright.plugins import load

sys.path.insert(0, str(Path(__file__).parent))
from trainwright_plainjob import LABEL, PlainJob

HERE = Path(__file__).parent
FRAMEWORK = load(discovered={"plainjob": PlainJob})


def runtime(*others: str, nodes: int = 1, **policy: Any) -> TrainingRuntime:
    def job(name: str) -> dict[str, Any]:
        pod = {"containers": [{"name": name, "image": "i", "env": [{"name": "FROM", "value": "runtime"}]}]}
        return {"name": name, "template": {"spec": {"backoffLimit": 3, "template": {"spec": pod}}}}

    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"replicatedJobs": [*map(job, others), job("node")]}}
    return runtime_from(
        {"metadata": {"name": "r"}, "spec": {"mlPolicy": {"numNodes": nodes, **policy}, "template": template}}
    )


def train_job(label: str | None = "true", **spec: Any) -> TrainJob:
    metadata = {"name": "tj", "namespace": "ns", "uid": "u1", "labels": {LABEL: label} if label else {}}
    return trainjob_from({"metadata": metadata, "spec": {"runtimeRef": {"name": "r"}, **spec}})


def built(job: TrainJob, of: TrainingRuntime | None = None, observed: Observed | None = None) -> dict[str, Any]:
    """The one object that the build makes."""
    (intention,) = build(job, of or runtime(), observed or Observed(), FRAMEWORK, MaskedKeys()).objects
    assert isinstance(intention, Apply)
    assert intention.workload
    return intention.object


def test_a_labelled_job_becomes_a_job_with_all_that_the_trainjob_says() -> None:
    trainer = {"image": "mine", "command": ["run"], "args": ["me"], "env": [{"name": "MINE", "value": "1"}]}
    made = built(train_job(trainer=trainer))
    assert (made["apiVersion"], made["kind"], made["metadata"]["name"]) == ("batch/v1", "Job", "tj")
    assert made["metadata"]["labels"]["team"] == "a"
    spec = made["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 1, 1)
    assert (spec["backoffLimit"], spec["suspend"]) == (3, False)
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "OnFailure"
    container = pod["containers"][0]
    assert (container["image"], container["command"], container["args"]) == ("mine", ["run"], ["me"])
    assert {"name": "FROM", "value": "runtime"} in container["env"]
    assert {"name": "MINE", "value": "1"} in container["env"]


def test_the_first_nodes_name_leads_to_the_pod_itself() -> None:
    pod = built(train_job(), runtime(torch={}))["spec"]["template"]["spec"]
    address = next(it["value"] for it in pod["containers"][0]["env"] if it["name"] == "PET_MASTER_ADDR")
    assert pod["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": [address]}]


@pytest.mark.parametrize("label", [None, "false"])
def test_any_other_job_is_a_jobset_as_before(label: str | None) -> None:
    assert built(train_job(label))["kind"] == "JobSet"


def test_a_suspended_trainjob_has_a_suspended_job() -> None:
    assert built(train_job(suspend=True))["spec"]["suspend"] is True


def faults(job: TrainJob, of: TrainingRuntime) -> list[str]:
    return [str(error) for error in validate_trainjob(job, of, None, Observed(), FRAMEWORK).errors]


SENTENCE = f'a TrainJob labelled {LABEL}: "true" runs as one Job'


def test_more_than_one_node_is_refused_with_a_sentence() -> None:
    why = f"spec.trainer.numNodes: Invalid value: 2: must be 1: {SENTENCE} of one node"
    assert faults(train_job(trainer={"numNodes": 2}), runtime()) == [why]
    assert faults(train_job(), runtime(nodes=2)) == [why]
    assert faults(train_job(trainer={"numNodes": 1}), runtime(nodes=2)) == []
    assert faults(train_job(None, trainer={"numNodes": 2}), runtime()) == []
    with pytest.raises(PluginFailed, match=r"^plugin PlainJob failed in build: spec\.trainer\.numNodes: Inv"):
        built(train_job(trainer={"numNodes": 2}))


def test_a_runtime_with_other_jobs_is_refused_with_a_sentence() -> None:
    why = f'Invalid value: "r": must name a runtime with a trainer and no other job: {SENTENCE}'
    assert faults(train_job(), runtime("side")) == [f"spec.runtimeRef.name: {why}"]


def reported(spec: dict[str, Any], status: dict[str, Any]) -> Workload:
    reference = {"apiVersion": "v1", "kind": "TrainJob", "name": "tj", "uid": "u1", "controller": True}
    metadata = {"name": "tj", "ownerReferences": [reference], "annotations": {"trainwright.dev/workload": "PlainJob"}}
    (named,) = [named for named in FRAMEWORK.watches if named.plugin == "PlainJob"]
    found = msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, named.watch.decode)
    workload = workload_of(train_job(), [(named, found)], FRAMEWORK)
    assert workload is not None
    return workload


def test_a_running_job_is_reported() -> None:
    status = reported({}, {"active": 1, "ready": 1}).status
    assert status.jobs == [JobStatus("node", ready=1, active=1)]
    assert (status.end, status.is_suspended, status.is_at_rest) == (None, False, False)


def test_nulls_and_an_empty_status_are_a_job_that_nobody_has_acted_on() -> None:
    nothing = {"active": None, "ready": None, "terminating": None, "conditions": None}
    for status in (reported({"suspend": None}, nothing).status, reported({}, {}).status):
        assert (status.jobs, status.end) == ([JobStatus("node")], None)


@pytest.mark.parametrize(("type", "counts"), [("Complete", {"succeeded": 1}), ("Failed", {"failed": 1})])
def test_an_end_is_reported_in_the_jobs_own_words(type: str, counts: dict[str, int]) -> None:
    conditions = [
        {"type": "SuccessCriteriaMet", "status": "True"},
        {
            "type": type,
            "status": "True",
            "reason": "Why",
            "message": "words",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ]
    status = reported({}, {"conditions": conditions}).status
    assert status.end is not None
    assert (status.end.type, status.end.reason, status.end.message) == (type, "Why", "words")
    assert status.jobs == [JobStatus("node", **counts)]


def test_a_suspended_job_is_at_rest_when_its_pod_is_gone() -> None:
    assert not reported({"suspend": True}, {"active": 1}).status.is_at_rest
    assert not reported({"suspend": True}, {"active": 0, "terminating": 1}).status.is_at_rest
    status = reported({"suspend": True}, {}).status
    assert (status.is_suspended, status.is_at_rest) == (True, True)


def test_a_workload_stays_what_it_is_whatever_becomes_of_the_label() -> None:
    ours = reported({"suspend": True}, {})
    assert built(train_job(None, suspend=True), observed=Observed(workload=ours))["kind"] == "Job"
    theirs = msgspec.structs.replace(ours, plugin="JobSet", resource=JOB_SETS)
    assert built(train_job(suspend=True), observed=Observed(workload=theirs))["kind"] == "JobSet"


def test_the_file_serves_as_it_is_in_a_directory_of_plugins(tmp_path: Path) -> None:
    shutil.copy(HERE / "trainwright_plainjob.py", tmp_path)
    (tmp_path / "trainwright_plainjob.py").chmod(0o644)
    framework = load(directory=str(tmp_path), discovered={})
    assert framework.plugins[-1].name == "PlainJob"
    (intention,) = build(train_job(), runtime(), Observed(), framework, MaskedKeys()).objects
    assert intention.object["kind"] == "Job"


def test_its_role_allows_what_the_operator_does_with_a_workload() -> None:
    role, binding = yaml.safe_load_all((HERE / "role.yaml").read_text())
    verbs = ["create", "delete", "get", "list", "patch", "watch"]
    assert role["rules"] == [{"apiGroups": [JOBS.group], "resources": [JOBS.plural], "verbs": verbs}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
