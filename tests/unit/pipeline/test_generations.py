"""Overrides of every generation of the API are merged into the template."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.cli.console.output import to_yaml
from trainwright.pipeline import TemplateInvalid
from unit.pipeline.objects import container, job_of_runtime, jobset, plan, pods, runtime, trainjob

POD = {
    "nodeSelector": {"zone": "z1"},
    "serviceAccountName": "sa",
    "tolerations": [{"key": "t2"}],
    "volumes": [{"name": "v9", "emptyDir": {}}, {"name": "v2", "secret": {"secretName": "z"}}],
    "containers": [{"name": "node", "volumeMounts": [{"name": "v9", "mountPath": "/z"}]}],
    "schedulingGates": [{"name": "g"}],
}
BASE = job_of_runtime(
    volumes=[{"name": "v1", "emptyDir": {}}, {"name": "v2", "emptyDir": {}}],
    tolerations=[{"key": "t1"}],
    nodeSelector={"a": "1"},
)


def patch(pod_spec: Any, manager: str = "a.io/x", job: str = "node", **template: Any) -> dict[str, Any]:
    jobs = [{"name": job, "template": {"spec": {"template": {"spec": pod_spec, **template}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def test_three_generations_of_one_job_give_the_same_bytes() -> None:
    target = {"targetJobs": [{"name": "node"}]}
    of = runtime(BASE, job_of_runtime("aux", ""), policy={"torch": {}})
    spellings = [
        trainjob({"numNodes": 2}, podSpecOverrides=[{**target, **POD}], labels={"l": "v"}, annotations={"n": "v"}),
        trainjob(
            {"numNodes": 2}, podTemplateOverrides=[{**target, "spec": POD}], labels={"l": "v"}, annotations={"n": "v"}
        ),
        trainjob(
            {"numNodes": 2},
            runtimePatches=[
                {
                    "manager": "a.io/m",
                    "trainingRuntimeSpec": {
                        "template": {"metadata": {"labels": {"l": "v"}, "annotations": {"n": "v"}}}
                    },
                },
                patch(POD),
            ],
        ),
    ]
    first, *others = [to_yaml([i.object for i in plan(job, of).objects]) for job in spellings]
    assert [other == first for other in others] == [True, True]
    assert "zone: z1" in first


def test_lists_merge_by_key_and_new_items_come_first() -> None:
    made = pods(jobset(trainjob(runtimePatches=[patch(POD)]), runtime(BASE)))
    assert made["volumes"] == [
        {"name": "v9", "emptyDir": {}},
        {"name": "v1", "emptyDir": {}},
        {"name": "v2", "emptyDir": {}, "secret": {"secretName": "z"}},
    ]
    assert made["tolerations"] == [{"key": "t2"}]
    assert made["nodeSelector"] == {"a": "1", "zone": "z1"}


def test_later_patches_win_field_by_field() -> None:
    first = patch({"serviceAccountName": "one", "nodeSelector": {"k": "1", "l": "1"}})
    second = patch({"serviceAccountName": "two", "nodeSelector": {"k": "2"}}, "a.io/y")
    made = pods(jobset(trainjob(runtimePatches=[first, second]), runtime()))
    assert made["serviceAccountName"] == "two"
    assert made["nodeSelector"] == {"k": "2", "l": "1"}


def test_legacy_overrides_apply_before_modern_ones() -> None:
    legacy = {"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "old", "nodeSelector": {"o": "1"}}}
    job = trainjob(podTemplateOverrides=[legacy], runtimePatches=[patch({"serviceAccountName": "new"})])
    made = pods(jobset(job, runtime()))
    assert (made["serviceAccountName"], made["nodeSelector"]) == ("new", {"o": "1"})


def test_only_labels_and_annotations_of_a_template_override_count() -> None:
    legacy = {"targetJobs": [{"name": "node"}], "metadata": {"labels": {"a": "b"}, "name": "no"}}
    template = jobset(trainjob(podTemplateOverrides=[legacy]), runtime())["spec"]["replicatedJobs"][0]["template"]
    assert template["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


@pytest.mark.parametrize("empty", [{"tolerations": []}, {"nodeSelector": {}}, {"volumes": None}])
def test_an_empty_value_in_a_patch_changes_nothing(empty: dict[str, Any]) -> None:
    assert jobset(trainjob(runtimePatches=[patch(empty)]), runtime(BASE)) == jobset(trainjob(), runtime(BASE))


def test_an_empty_env_value_in_a_patch_keeps_the_templates() -> None:
    base = job_of_runtime(
        containers=[{"name": "node", "image": "i"}, {"name": "side", "env": [{"name": "A", "value": "x"}]}]
    )
    changed = patch({"containers": [{"name": "side", "env": [{"name": "A", "value": ""}, {"name": "B"}]}]})
    made = container(jobset(trainjob(runtimePatches=[changed]), runtime(base)), name="side")
    assert made["env"] == [{"name": "A", "value": "x"}, {"name": "B"}]


def test_jobs_keep_the_order_of_the_template() -> None:
    of = runtime(job_of_runtime("b", ""), job_of_runtime("a", ""), job_of_runtime())
    job = trainjob(
        runtimePatches=[patch({"serviceAccountName": "s"}), patch({"serviceAccountName": "s"}, "a.io/y", "a")]
    )
    assert [item["name"] for item in jobset(job, of)["spec"]["replicatedJobs"]] == ["b", "a", "node"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (patch({"serviceAccountName": "s"}, job="zz"), "zz"),
        (patch({"containers": [{"name": "yy", "volumeMounts": [{"name": "v1", "mountPath": "/x"}]}]}), "yy"),
        (patch({"initContainers": [{"name": "node"}]}), "node"),
    ],
)
def test_no_plan_is_made_of_a_patch_that_fits_nothing(change: dict[str, Any], name: str) -> None:
    with pytest.raises(TemplateInvalid, match=f"'{name}'"):
        plan(trainjob(runtimePatches=[change]), runtime(BASE))


def test_a_patch_can_give_a_job_its_role() -> None:
    role = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    change = {
        "manager": "a.io/x",
        "trainingRuntimeSpec": {
            "template": {"spec": {"replicatedJobs": [{"name": "chief", "template": {"metadata": {"labels": role}}}]}}
        },
    }
    made = jobset(trainjob({"image": "mine"}, runtimePatches=[change]), runtime(job_of_runtime("chief", "")))
    assert container(made, "chief")["image"] == "mine"


def test_a_patch_can_take_a_role_away() -> None:
    role = {"trainer.kubeflow.org/trainjob-ancestor-step": "helper"}
    change = {
        "manager": "a.io/x",
        "trainingRuntimeSpec": {
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"metadata": {"labels": role}}}]}}
        },
    }
    made = jobset(trainjob({"image": "mine"}, runtimePatches=[change]), runtime())
    assert container(made)["image"] == "img:1"


def test_an_empty_service_account_in_a_patch_is_the_default_one() -> None:
    of = runtime(job_of_runtime(serviceAccountName="sa"))
    assert "serviceAccountName" not in pods(jobset(trainjob(runtimePatches=[patch({"serviceAccountName": ""})]), of))
