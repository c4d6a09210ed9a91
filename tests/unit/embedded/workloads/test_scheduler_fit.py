"""Whether a pod fits a node, and the sentence when it does not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler.cluster import NodeState, requests
from trainwright.embedded.workloads.scheduler.fit import Against, against, message
from trainwright.schema.quantity import Quantity


def reasons_against(pod: ApiObject, node: ApiObject, there: list[ApiObject]) -> list[str]:
    found = against(pod, requests(pod), NodeState(node, there))
    return list(found.reasons) if found is not None else []


def node(spec: dict[str, Any] | None = None, **allocatable: str) -> ApiObject:
    room = {"cpu": "4", "memory": "8Gi", "pods": "2", **{k.replace("_", "/"): v for k, v in allocatable.items()}}
    ready = [{"type": "Ready", "status": "True"}]
    metadata = ObjectMeta(name="local", labels={"kubernetes.io/os": "linux"})
    return ApiObject(metadata, spec or {}, {"allocatable": room, "conditions": ready})


_numbers = itertools.count()


def pod(cpu: str | None = None, **spec: Any) -> ApiObject:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return ApiObject(
        ObjectMeta(name="p", uid=f"uid-{next(_numbers)}"),
        {"containers": [{"name": "c", "resources": resources}], **spec},
        {},
    )


def test_a_pod_that_asks_for_nothing_fits() -> None:
    assert reasons_against(pod(), node(), []) == []


def test_room_is_what_others_left() -> None:
    assert reasons_against(pod("1500m"), node(), [pod("2500m")]) == []
    assert reasons_against(pod("1501m"), node(), [pod("2500m")]) == ["Insufficient cpu"]
    assert reasons_against(pod(), node(), [pod(), pod()]) == ["Too many pods"]


def test_a_limit_without_a_request_is_a_request_and_unknown_resources_are_missing() -> None:
    gpu = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    assert reasons_against(ApiObject(ObjectMeta(name="p"), gpu), node(), []) == ["Insufficient nvidia.com/gpu"]


def test_init_containers_ask_for_their_largest() -> None:
    init = [
        {"name": "i", "resources": {"requests": {"cpu": "3"}}},
        {"name": "j", "resources": {"requests": {"cpu": "2"}}},
    ]
    assert str(Quantity(requests(pod("1", initContainers=init))["cpu"])) == "3"


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, True),
        ({"nodeSelector": {"zone": "a"}}, False),
    ],
)
def test_node_selectors_are_honoured(spec: dict[str, Any], fits: bool) -> None:
    assert (reasons_against(pod(**spec), node(), []) == []) is fits


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [("In", ["linux"], True), ("NotIn", ["linux"], False), ("Exists", [], True), ("DoesNotExist", [], False)],
)
def test_required_node_affinity_is_honoured(operator: str, values: list[str], fits: bool) -> None:
    expression = {"key": "kubernetes.io/os", "operator": operator, "values": values}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert (reasons_against(pod(affinity=affinity), node(), []) == []) is fits


def test_taints_need_tolerations() -> None:
    tainted = node({"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]})
    assert reasons_against(pod(), tainted, []) == ["node(s) had untolerated taint(s)"]
    assert reasons_against(pod(tolerations=[{"key": "gpu", "operator": "Exists"}]), tainted, []) == []
    assert reasons_against(pod(tolerations=[{"key": "gpu", "value": "none"}]), tainted, []) != []


def test_the_first_rule_that_fails_speaks_alone() -> None:
    tainted = node({"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    assert reasons_against(pod("100", nodeSelector={"a": "b"}), tainted, []) == ["node(s) had untolerated taint(s)"]


def test_the_message_counts_nodes_by_reason() -> None:
    both = Against(("Insufficient cpu", "Too many pods"), False)
    assert message(2, [Against(("Insufficient cpu",), False), both]) == (
        "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu."
    )
    assert message(0, []) == "no nodes available to schedule pods"
