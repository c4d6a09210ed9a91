"""Ports, mounts and other lists of a pod set are merged by their keys."""

from __future__ import annotations

from trainwright.pipeline.podset import Container, PodSet
from unit.pipeline.objects import job_of_runtime


def test_upsert_replaces_in_place_and_appends_the_rest() -> None:
    box = Container({"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}]})
    box.set_env({"name": "B", "value": "2"}, {"name": "C", "value": "3"})
    assert box.env == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]


def test_two_ports_without_a_name_are_two_ports() -> None:
    box = Container({"ports": [{"containerPort": 8080}, {"containerPort": 9090}]})
    box.set_ports({"containerPort": 29500})
    assert [port["containerPort"] for port in box.json["ports"]] == [8080, 9090, 29500]


def test_a_port_matches_by_number_and_protocol() -> None:
    box = Container(
        {"ports": [{"containerPort": 29500, "protocol": "UDP"}, {"containerPort": 29500, "protocol": "TCP"}]}
    )
    box.set_ports({"containerPort": 29500})
    assert box.json["ports"] == [{"containerPort": 29500, "protocol": "UDP"}, {"containerPort": 29500}]


def test_mounts_match_by_path() -> None:
    box = Container({"volumeMounts": [{"name": "a", "mountPath": "/x"}]})
    box.set_volume_mounts({"name": "b", "mountPath": "/x"}, {"name": "b", "mountPath": "/y"})
    assert [(m["name"], m["mountPath"]) for m in box.volume_mounts] == [("b", "/x"), ("b", "/y")]


def test_setting_nothing_leaves_no_empty_list_behind() -> None:
    box = Container({})
    box.set_env()
    assert box.json == {}


def test_a_regular_container_is_found_before_an_init_container() -> None:
    pods = PodSet(
        job_of_runtime(containers=[{"name": "x", "image": "r"}], initContainers=[{"name": "x", "image": "i"}])
    )
    found = pods.any_container("x")
    assert found is not None
    assert found.json["image"] == "r"


def test_labels_go_to_the_pod_template() -> None:
    pods = PodSet(job_of_runtime())
    pods.set_pod_label("a", "b")
    pods.set_pod_annotation("c", "d")
    assert pods.pod_template["metadata"] == {"labels": {"a": "b"}, "annotations": {"c": "d"}}
