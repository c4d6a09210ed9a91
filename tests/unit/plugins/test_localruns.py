"""LocalRuns: pods of the local cluster say which run they belong to, and pods of other clusters do not."""

from __future__ import annotations

import msgspec
import pytest

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline import Observed
from trainwright.schema.jsonobject import Json
from unit.pipeline.objects import job_of_runtime, objects, plan, runtime, trainjob

UID = "12345678-aaaa-bbbb-cccc-000000000000"


def job_with(annotations: dict[str, str]) -> TrainJob:
    job = trainjob()
    metadata = msgspec.structs.replace(job.metadata, uid=UID, annotations=annotations)
    return msgspec.structs.replace(job, metadata=metadata)


def pod_annotations(job: TrainJob, *, local_runs: bool = True) -> dict[str, Json]:
    of = runtime(job_of_runtime("dataset-initializer", "dataset-initializer"), job_of_runtime())
    made = objects(plan(job, of, Observed(), local_runs=local_runs))["JobSet/tj"]
    return {
        item["name"]: item["template"]["spec"]["template"].get("metadata", {}).get("annotations", {})
        for item in made["spec"]["replicatedJobs"]
    }


def test_pods_carry_the_id_that_run_chose_and_the_trainjob_it_was_chosen_for() -> None:
    found = pod_annotations(job_with({"trainwright.dev/run": "tj-k3x9f", "trainwright.dev/workdir": "/home/me"}))
    ours = {"trainwright.dev/run": "tj-k3x9f", "trainwright.dev/run-trainjob": f"tj/{UID}"}
    assert found["node"] == {**ours, "trainwright.dev/workdir": "/home/me"}
    assert found["dataset-initializer"] == ours, "which works in its own directory"


@pytest.mark.parametrize("annotations", [{}, {"trainwright.dev/run": "../../etc"}, {"trainwright.dev/run": ""}])
def test_without_a_usable_id_one_follows_from_name_and_uid(annotations: dict[str, str]) -> None:
    assert pod_annotations(job_with(annotations))["node"]["trainwright.dev/run"] == "tj-12345"


def test_a_relative_working_directory_is_none() -> None:
    assert "trainwright.dev/workdir" not in pod_annotations(job_with({"trainwright.dev/workdir": "project"}))["node"]


def test_elsewhere_nothing_is_added() -> None:
    found = pod_annotations(job_with({"trainwright.dev/run": "tj-k3x9f"}), local_runs=False)
    assert not any(key.startswith("trainwright.dev/run") for key in found["node"])
