"""The machine as several nodes: shares, and files that say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.node.shapes import NodeShape, ShapeError, capacities, equal, read

MACHINE = {"cpu": "3", "memory": "1001Ki", "pods": "110", "nvidia.com/gpu": "5"}


def test_equal_nodes_share_the_machine() -> None:
    assert [shape.name for shape in equal(2)] == ["local-0", "local-1"]
    share = {"cpu": "1500m", "memory": "500Ki", "pods": "110", "nvidia.com/gpu": "2"}
    assert capacities(equal(2), MACHINE) == {"local-0": share, "local-1": share}
    assert capacities(equal(1), MACHINE) == {"local": MACHINE}


def test_a_file_gives_names_labels_taints_and_sizes() -> None:
    taint = {"key": "big", "effect": "NoSchedule"}
    nodes = [{"name": "a", "labels": {"zone": "east"}, "capacity": {"cpu": 2}}, {"name": "b", "taints": [taint]}]
    shapes = read({"nodes": nodes}, "nodes.yaml")
    assert shapes == [NodeShape("a", {"zone": "east"}, [], {"cpu": "2"}), NodeShape("b", {}, [taint], {})]
    assert capacities(shapes, MACHINE)["a"]["cpu"] == "2"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "expected `nodes:`"),
        ({"nodes": []}, "names no node"),
        ({"nodes": [{"name": "A"}]}, "RFC 1123"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "two nodes are called a"),
        ({"nodes": [{"name": "a", "capacity": {"cpu": "much"}}]}, "capacity cpu: quantities must match"),
        ({"nodes": [{"name": "a", "taints": [{"key": "k"}]}]}, "a taint needs a key and an effect"),
        ({"nodes": [{"name": "a", "color": "red"}]}, "unknown field `color`"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(document: Any, said: str) -> None:
    with pytest.raises(ShapeError, match=r"nodes\.yaml") as refused:
        read(document, "nodes.yaml")
    assert said in str(refused.value)
