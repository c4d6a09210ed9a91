"""HorizontalPodAutoscalers by the rules of kube-controller-manager, which `tests/kube` compares with the real one."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.autoscaler.decision import Decision, Seen, decide
from trainwright.embedded.workloads.autoscaler.limits import Memory
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

NOW = 1_800_000_000.0
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def pod(name: str, phase: str = "Running", *, ready: str = "True", age: float = 3600, **metadata: Any) -> ApiObject:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(NOW - age)}
    container = {"name": "node", "resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}
    status = {"phase": phase, "startTime": rfc3339(NOW - age), "conditions": [condition]}
    return ApiObject(ObjectMeta(name=name, namespace="n", **metadata), {"containers": [container]}, status)


def usage(name: str, **values: str) -> Json:
    containers = [{"name": "node", "usage": values}]
    return {"metadata": {"name": name}, "timestamp": rfc3339(NOW), "window": "15s", "containers": containers}


def autoscaler(*metrics: Json, status: Json | None = None, **spec: Any) -> ApiObject:
    body = {"minReplicas": 1, "maxReplicas": 10, "metrics": [*metrics], **spec}
    return ApiObject(ObjectMeta(name="hpa", namespace="n", uid="u"), body, status or {})


def judged(scaler: ApiObject, seen: Seen, memory: Memory | None = None, now: float = NOW) -> Decision:
    return decide(scaler, seen, memory or Memory(), now)


def condition(decision: Decision, type: str) -> tuple[str, str]:
    [found] = [it for it in decision.status["conditions"] if it["type"] == type]
    return found["status"], found["reason"]


def all_use(count: int, **values: str) -> Seen:
    names = [f"p{number}" for number in range(count)]
    return Seen(count, [pod(name) for name in names], [usage(name, **values) for name in names])


@pytest.mark.parametrize(
    ("used", "replicas"),
    [("100Mi", None), ("109Mi", None), ("111Mi", 3), ("150Mi", 3), ("151Mi", 4), ("400Mi", 4)],
)
def test_a_metric_above_its_target_and_tolerance_asks_for_more(used: str, replicas: int | None) -> None:
    decision = judged(autoscaler(MEMORY), all_use(2, memory=used))
    assert decision.replicas == replicas
    expected = ("True", "ScaleUpLimit") if used == "400Mi" else ("False", "DesiredWithinRange")
    assert condition(decision, "ScalingLimited") == expected
    assert condition(decision, "ScalingActive") == ("True", "ValidMetricFound")


def test_utilization_is_of_what_the_pods_request_and_the_greatest_wish_counts() -> None:
    decision = judged(autoscaler(MEMORY, CPU), all_use(2, memory="90Mi", cpu="700m"))
    assert decision.replicas == 3
    assert decision.events == (
        (
            "Normal",
            "SuccessfulRescale",
            "New size: 3; reason: cpu resource utilization (percentage of request) above target",
        ),
    )
    assert decision.status["currentMetrics"][1] == {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "700m"}},
    }


def test_shrinking_waits_for_five_minutes_without_a_higher_recommendation() -> None:
    scaler, idle = autoscaler(MEMORY), all_use(4, memory="20Mi")
    first = judged(scaler, idle)
    assert first.replicas is None
    assert condition(first, "AbleToScale") == ("True", "ScaleDownStabilized")
    early = judged(scaler, idle, first.memory, NOW + 299)
    assert early.replicas is None
    late = judged(scaler, idle, early.memory, NOW + 301)
    assert late.replicas == 1
    assert late.events[0][2] == "New size: 1; reason: All metrics below target"


def test_behavior_says_how_fast() -> None:
    rules = {
        "scaleDown": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
        },
        "scaleUp": {"selectPolicy": "Disabled"},
    }
    scaler = autoscaler(MEMORY, behavior=rules)
    first = judged(scaler, all_use(4, memory="20Mi"))
    assert first.replicas == 3
    assert condition(first, "ScalingLimited") == ("True", "ScaleDownLimit")
    second = judged(scaler, all_use(3, memory="20Mi"), first.memory, NOW + 15)
    assert second.replicas is None, "one in a minute"
    third = judged(scaler, all_use(3, memory="20Mi"), second.memory, NOW + 61)
    assert third.replicas == 2
    assert judged(scaler, all_use(2, memory="300Mi")).replicas is None, "growing is disabled"


def test_the_limits_hold_whatever_is_measured() -> None:
    assert judged(autoscaler(MEMORY, minReplicas=3), all_use(2, memory="1Mi")).replicas == 3
    assert judged(autoscaler(MEMORY, maxReplicas=2), all_use(4, memory="999Mi")).replicas == 2
    most = judged(autoscaler(MEMORY, maxReplicas=3), all_use(2, memory="900Mi"))
    assert (most.replicas, condition(most, "ScalingLimited")) == (3, ("True", "TooManyReplicas"))
    none = judged(autoscaler(MEMORY), Seen(0, [], []))
    assert (none.replicas, condition(none, "ScalingActive")) == (None, ("False", "ScalingDisabled"))


def test_pods_that_start_or_are_not_measured_hold_growth_back() -> None:
    pods = [pod("a"), pod("b", "Pending")]
    assert judged(autoscaler(MEMORY), Seen(2, pods, [usage("a", memory="150Mi")])).replicas is None
    starting = [pod("a"), pod("b", age=10)]
    metrics = [usage("a", cpu="900m"), usage("b", cpu="1")]
    assert judged(autoscaler(CPU), Seen(2, starting, metrics)).replicas is None, "its CPU is that of its start"
    missing = [pod("a"), pod("b")]
    assert judged(autoscaler(MEMORY), Seen(2, missing, [usage("a", memory="150Mi")])).replicas is None
    gone = [pod("a"), pod("b", deletion_timestamp=rfc3339(NOW))]
    assert judged(autoscaler(MEMORY), Seen(1, gone, [usage("a", memory="150Mi")])).replicas == 2


@pytest.mark.parametrize(
    ("metric", "metrics", "reason", "words"),
    [
        (MEMORY, [], "FailedGetResourceMetric", "no metrics returned from resource metrics API"),
        (MEMORY, "the node does not answer", "FailedGetResourceMetric", "the node does not answer"),
        ({"type": "Pods", "pods": {}}, [], "FailedGetPodsMetric", "no metrics of type Pods"),
        ({"type": "Resource", "resource": {"name": "cpu"}}, [], "FailedGetResourceMetric", "neither an average"),
    ],
)
def test_a_metric_that_says_nothing_changes_nothing_and_says_why(
    metric: Json, metrics: list[Json] | str, reason: str, words: str
) -> None:
    decision = judged(autoscaler(metric), Seen(2, [pod("a"), pod("b")], metrics))
    assert decision.replicas is None
    [active] = [it for it in decision.status["conditions"] if it["type"] == "ScalingActive"]
    assert (active["status"], active["reason"]) == ("False", reason)
    assert words in active["message"]
    assert decision.events[0][:2] == ("Warning", reason)


def test_a_missing_request_is_named() -> None:
    bare = ApiObject(ObjectMeta(name="a", namespace="n"), {"containers": [{"name": "node"}]}, pod("a").status)
    decision = judged(autoscaler(CPU), Seen(1, [bare], [usage("a", cpu="1")]))
    [active] = [it for it in decision.status["conditions"] if it["type"] == "ScalingActive"]
    assert "missing request for cpu in container node of Pod a" in active["message"]
