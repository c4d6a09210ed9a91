"""The gang schedulers: PodGroups of scheduler-plugins and of Volcano."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.runtime import runtime_from
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.info import make_info
from trainwright.plugins.kubernetesgang import KubernetesGang
from unit.pipeline.objects import job_of_runtime, jobset, objects, plan, runtime, trainjob

BOX = {"name": "node", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
INITIALIZER = job_of_runtime("dataset-initializer", "dataset-initializer")


def templates(made: Any) -> dict[str, Any]:
    return {
        item["name"]: item["template"]["spec"]["template"].get("metadata") for item in made["spec"]["replicatedJobs"]
    }


def test_coscheduling_waits_for_every_pod_and_all_they_ask_for() -> None:
    of = runtime(
        job_of_runtime(containers=[BOX]),
        job_of_runtime("aux", ""),
        gang={"coscheduling": {"scheduleTimeoutSeconds": 9}},
    )
    made = objects(plan(trainjob({"numNodes": 3}), of))
    assert made["PodGroup/tj"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert made["PodGroup/tj"]["spec"] == {
        "minMember": 4,
        "minResources": {"cpu": "1500m", "memory": "3Gi"},
        "scheduleTimeoutSeconds": 9,
    }
    label = {"labels": {"scheduling.x-k8s.io/pod-group": "tj"}}
    assert templates(made["JobSet/tj"]) == {"node": label, "aux": label}


@pytest.mark.parametrize("gang", [{"coscheduling": {}}, {"volcano": {}}])
def test_initializers_are_no_part_of_the_gang(gang: Any) -> None:
    made = objects(plan(trainjob({"numNodes": 2}), runtime(INITIALIZER, job_of_runtime(), gang=gang)))
    assert made["PodGroup/tj"]["spec"]["minMember"] == 2
    assert templates(made["JobSet/tj"])["dataset-initializer"] is None
    assert templates(made["JobSet/tj"])["node"] is not None


def test_volcano_carries_queue_priority_and_topology() -> None:
    of = runtime(
        job_of_runtime(priorityClassName="low"),
        job_of_runtime("aux", "", priorityClassName="high"),
        gang={"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}},
    )
    queue = {
        "manager": "a.io/x",
        "trainingRuntimeSpec": {"template": {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}}},
    }
    made = objects(plan(trainjob(runtimePatches=[queue]), of))
    assert made["PodGroup/tj"]["spec"] == {
        "minMember": 2,
        "minResources": {},
        "queue": "q",
        "priorityClassName": "high",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
    }
    assert templates(made["JobSet/tj"])["node"] == {"annotations": {"scheduling.k8s.io/group-name": "tj"}}


def test_a_queue_is_written_as_the_runtime_has_it() -> None:
    of = runtime_from(
        {
            "kind": "ClusterTrainingRuntime",
            "spec": {
                "podGroupPolicy": {"volcano": {}},
                "template": {
                    "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": ""}},
                    "spec": {"replicatedJobs": [job_of_runtime()]},
                },
            },
        }
    )
    assert objects(plan(trainjob(), of))["PodGroup/tj"]["spec"]["queue"] == ""


def test_without_a_policy_nothing_is_said_of_gangs() -> None:
    made = plan(trainjob(), runtime())
    assert list(objects(made)) == ["JobSet/tj"]
    assert templates(jobset(trainjob(), runtime())) == {"node": None}


def test_kubernetes_own_gang_is_a_pod_group_that_pods_name() -> None:
    of = runtime(INITIALIZER, job_of_runtime(), gang={"kubernetes": {}})
    made = objects(plan(trainjob({"numNodes": 3}), of, kubernetes_gang=True))
    assert made["PodGroup/tj"]["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert made["PodGroup/tj"]["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    groups = {
        item["name"]: item["template"]["spec"]["template"]["spec"].get("schedulingGroup")
        for item in made["JobSet/tj"]["spec"]["replicatedJobs"]
    }
    assert groups == {"dataset-initializer": None, "node": {"podGroupName": "tj"}}


def test_without_its_gate_a_runtime_of_kubernetes_own_gang_is_refused_and_not_run_without_one() -> None:
    of = runtime(job_of_runtime(), gang={"kubernetes": {}})
    with pytest.raises(TemplateInvalid, match="needs the operator's feature gate KubernetesGang=true"):
        plan(trainjob(), of)
    (error,) = KubernetesGang(is_on=False).validate(make_info(trainjob(), of), trainjob(), None)
    assert error.field == "spec.runtimeRef"
    assert "KubernetesGang=true" in error.detail
