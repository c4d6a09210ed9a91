"""The built-in kinds: schemas, list types and merge keys as Kubernetes 1.36 has them."""

from __future__ import annotations

import pytest

from trainwright.schema import kubernetes
from trainwright.schema.errors import SchemaError
from trainwright.schema.strategic import strategic_merge


@pytest.mark.parametrize("name", sorted(kubernetes.kinds()))
def test_every_kind_has_a_schema_that_compiles(name: str) -> None:
    api_version, _, kind = name.rpartition("/")
    schema = kubernetes.structural_schema(api_version, kind)
    assert "kind" in schema.field_names
    assert schema.prune({"apiVersion": api_version, "kind": kind, "bogus": 1, "metadata": {"name": "a"}}) == ["bogus"]


def test_list_types_and_defaults_of_a_pod() -> None:
    container = kubernetes.definition_schema("core.v1.Container")
    ports = container.field("ports")
    assert ports is not None
    assert (ports.list_type, ports.list_map_keys) == ("map", ("containerPort", "protocol"))
    assert ports.items is not None
    protocol = ports.items.field("protocol")
    assert protocol is not None
    assert protocol.default_value == "TCP"
    command = container.field("command")
    assert command is not None
    assert command.list_type == "atomic"


def test_unknown_fields_deep_in_a_pod_are_found() -> None:
    pod = {"spec": {"containers": [{"name": "a", "bogus": 1, "ports": [{"containerPort": 1, "x": 2}]}]}}
    assert kubernetes.structural_schema("v1", "Pod").prune(pod) == [
        "spec.containers[0].bogus",
        "spec.containers[0].ports[0].x",
    ]


def test_free_form_parts_keep_everything() -> None:
    revision = {"data": {"any": {"thing": [1]}}, "metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}}
    assert kubernetes.structural_schema("apps/v1", "ControllerRevision").prune(revision) == []
    crd = {
        "spec": {
            "versions": [
                {
                    "schema": {
                        "openAPIV3Schema": {"properties": {"a": {"default": {"x": 1}, "items": {"type": "string"}}}}
                    }
                }
            ]
        }
    }
    assert kubernetes.structural_schema("apiextensions.k8s.io/v1", "CustomResourceDefinition").prune(crd) == []


def test_merge_keys_of_a_pod() -> None:
    schema = kubernetes.merge_schema("v1", "Pod")
    container = {"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/a"}], "env": [{"name": "X", "value": "1"}]}
    patch = {"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/b"}], "env": [{"name": "X", "value": "2"}]}
    merged = strategic_merge(
        {"metadata": {"finalizers": ["f"]}, "spec": {"containers": [container], "tolerations": [{"key": "a"}]}},
        {"metadata": {"finalizers": ["g"]}, "spec": {"containers": [patch], "tolerations": [{"key": "b"}]}},
        schema,
    )
    assert [m["mountPath"] for m in merged["spec"]["containers"][0]["volumeMounts"]] == ["/b", "/a"]
    assert merged["spec"]["containers"][0]["env"] == [{"name": "X", "value": "2"}]
    assert merged["spec"]["tolerations"] == [{"key": "b"}]
    assert merged["metadata"]["finalizers"] == ["g", "f"]


def test_a_kind_without_a_schema_is_named() -> None:
    assert not kubernetes.has_kind("apps/v1", "Deployment")
    with pytest.raises(SchemaError, match="no built-in schema for Deployment in apps/v1"):
        kubernetes.structural_schema("apps/v1", "Deployment")
