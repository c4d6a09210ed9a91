"""Recorded inputs render to what the reference applied; rejected ones are refused with the recorded message."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from conformance import check
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOB_SETS, POD_GROUPS, VOLCANO_POD_GROUPS
from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import trainjob_from
from trainwright.cli.files.documents import Document, parse
from trainwright.cli.files.offline import Offline
from trainwright.cli.main import main
from trainwright.pipeline import MaskedKeys, ObjectName, Observed, Workload, WorkloadStatus, build, status
from trainwright.plugins import load
from trainwright.plugins.jobset import JobSet, StoredJobSet
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import merge_patch

HERE = Path(__file__).parent
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


CASES = list(check.load([HERE / "cases", HERE / "random.jsonl"]))
STEPS = sorted(path.parent for path in HERE.glob("cases/*/step-1.yaml"))
REJECTED = sorted(path.parent for path in HERE.glob("rejected/*/error.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_renders_what_the_reference_applied(
    case: check.Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def render(documents: list[Json], gate: str) -> tuple[list[Json] | None, str]:
        monkeypatch.setattr(sys, "stdin", _Stdin("---\n".join(json.dumps(item) + "\n" for item in documents)))
        code = main(["render", "-n", "golden", "--feature-gates", f"TrainJobStatus={gate}", "-f", "-"])
        printed = capsys.readouterr()
        return (list(yaml.load_all(printed.out, yaml.CSafeLoader)), "") if code == 0 else (None, printed.err)

    assert check.judge(case, render) == []


class _Stdin:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


@pytest.mark.parametrize("folder", REJECTED, ids=lambda folder: folder.name)
def test_refuses_what_the_reference_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = ["--patch", str(folder / "update.yaml")] if (folder / "update.yaml").exists() else []
    code = main(["validate", "-f", str(folder / "input.yaml"), *patch])
    _, _, message = (folder / "error.txt").read_text().split("\n", 2)
    assert code == 1
    assert TIME.sub("<time>", message.strip()) in TIME.sub("<time>", capsys.readouterr().out)


def _offline(folder: Path) -> Offline:
    text = (folder / "input.yaml").read_bytes()
    documents = [
        Document("input.yaml", n, value, place) for n, (value, place) in enumerate(parse(text, "input.yaml"), 1)
    ]
    return Offline(documents, "golden", load(discovered={}))


def _stored(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text())["spec"]


@pytest.mark.parametrize("folder", sorted(HERE.glob("cases/*")), ids=lambda folder: folder.name)
def test_stores_what_the_api_stored(folder: Path) -> None:
    offline = _offline(folder)
    (document,) = offline.train_jobs
    answer = offline.answer_train_job(document)
    assert answer.messages == []
    text = TIME.sub("<time>", json.dumps(answer.value["spec"]))
    assert json.loads(text) == _stored(folder, "trainjob.yaml")


@pytest.mark.parametrize("folder", STEPS, ids=lambda folder: folder.name)
def test_an_update_is_followed_as_the_reference_followed_it(folder: Path) -> None:
    offline = _offline(folder)
    (document,) = offline.train_jobs
    stored = offline.answer_train_job(document).value
    step = yaml.safe_load((folder / "step-1.yaml").read_text())
    answer = offline.answer_train_job(document, merge_patch(stored, step["patch"]), stored)
    assert answer.messages == []
    job = trainjob_from({**answer.value, "metadata": {**answer.value["metadata"], "uid": "u"}})
    workload = Workload(JOB_SETS, ObjectMeta(), "JobSet", WorkloadStatus(is_suspended=True))
    groups = {ObjectName(it.api_version, it.kind, job.metadata.name) for it in (POD_GROUPS, VOLCANO_POD_GROUPS)}
    assert job.spec is not None
    runtime = offline.find_runtime(job.spec.runtime_ref, "golden")
    assert runtime is not None
    typed = runtime_from(offline.answer_runtime(runtime).value)
    observed = Observed(workload=workload, children=frozenset(groups))
    plan = build(job, typed, observed, offline.framework, MaskedKeys())
    expected = list(yaml.safe_load_all((folder / "expected-1.yaml").read_text()))
    assert check.keyed([i.object for i in plan.objects]) == check.keyed(expected)


RECORDED = [(folder, name) for folder in sorted(HERE.glob("cases/*")) for name in ("trainjob.yaml", "trainjob-1.yaml")]


@pytest.mark.parametrize(
    ("folder", "name"),
    [pytest.param(*item, id=f"{item[0].name}/{item[1]}") for item in RECORDED if (item[0] / item[1]).exists()],
)
def test_folds_the_status_that_the_reference_stored(folder: Path, name: str) -> None:
    recorded = yaml.safe_load((folder / name).read_text())
    expected = recorded.pop("status", None) or {}
    if name != "trainjob.yaml":
        recorded["status"] = yaml.safe_load((folder / "trainjob.yaml").read_text()).get("status")
    ends = [{**c, "type": "Completed"} for c in expected.get("conditions", ()) if c["type"] == "Complete"]
    seen = {"replicatedJobsStatus": expected.get("jobsStatus"), "conditions": ends}
    job = trainjob_from(recorded)
    workload = JobSet().status(job, msgspec.convert({"status": seen}, StoredJobSet))
    folded = msgspec.to_builtins(status(job, workload, datetime.now(UTC)).status)
    for condition in [*folded.get("conditions", ()), *expected.get("conditions", ())]:
        condition["lastTransitionTime"] = "<time>"
    ours = ("state", "message", "runtimeRevision")
    assert {key: value for key, value in folded.items() if key not in ours} == expected


@pytest.fixture
def some_cases(tmp_path: Path) -> Path:
    for name in ("torch-patches-full", "mpi-deepspeed-4nodes-gpu", "flux-lammps", "status-sidecar"):
        shutil.copytree(HERE / "cases" / name, tmp_path / name)
    return tmp_path


def test_the_checker_agrees_through_the_real_command(some_cases: Path) -> None:
    flags = "-n golden --feature-gates TrainJobStatus={gate} -f {input}"
    command = f"{sys.executable} -m trainwright.cli.main render {flags}"
    arguments = [sys.executable, str(HERE / "check.py"), "--command", command, str(some_cases)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=110, check=False)
    assert done.stdout.splitlines()[-1:] == ["4 of 4 equal"], done.stdout + done.stderr


def _checked(jobset: Json) -> list[str]:
    """The differences that the checker finds between a small JobSet and this one."""
    case = check.Case("small", [], [_jobset({})], None, "false")
    return check.judge(case, lambda documents, gate: ([jobset], ""))


def _jobset(annotations: dict[str, str], **spec: Any) -> Json:
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "node", "image": "python"}]}}
    job = {"name": "node", "template": {"metadata": {"annotations": annotations}, "spec": {"template": pod}}}
    metadata = {"name": "small", "annotations": annotations}
    return {"kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": [job], **spec}}


def test_the_checker_passes_over_our_annotations_and_the_time_to_live() -> None:
    ours = {"trainwright.dev/ports": "29500", "trainer.kubeflow.org/runtime-revision": "torch-1"}
    assert _checked(_jobset(ours, ttlSecondsAfterFinished=60)) == []


@pytest.mark.parametrize(
    "changed",
    [_jobset({"example.com/trainwright.dev": "x"}), _jobset({}, suspend=True)],
    ids=["an annotation that is not ours", "a field"],
)
def test_the_checker_finds_what_differs(changed: Json) -> None:
    assert _checked(changed) != []
