"""The built-in kinds: schemas, list types and merge keys as Kubernetes 1.36 has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trainwright.schema import kubernetes
from trainwright.schema.errors import SchemaError
from trainwright.schema.strategic import strategic_merge


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for member in schema.values():
            yield from references(member)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


@pytest.mark.parametrize("name", sorted(kubernetes.kinds()))
def test_every_reference_below_a_kind_has_a_definition(name: str) -> None:
    api_version, _, kind = name.rpartition("/")
    seen: set[str] = set()
    todo = [kubernetes.definition_name(api_version, kind)]
    while todo:
        definition = kubernetes.definition(todo.pop())
        new = set(references(definition)) - seen
        seen |= new
        todo += new
    assert {"apiVersion", "kind"} <= set(
        kubernetes.definition(kubernetes.definition_name(api_version, kind))["properties"]
    )


def test_list_types_and_defaults_of_a_container() -> None:
    properties = kubernetes.definition("core.v1.Container")["properties"]
    ports = properties["ports"]
    assert ports["x-kubernetes-list-type"] == "map"
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    port = kubernetes.definition(ports["items"]["$ref"])
    assert port["properties"]["protocol"]["default"] == "TCP"
    assert properties["command"]["x-kubernetes-list-type"] == "atomic"


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


def test_a_kind_without_a_schema_is_refused_by_name() -> None:
    assert not kubernetes.has_kind("apps/v1", "Deployment")
    with pytest.raises(SchemaError, match="no built-in schema for Deployment in apps/v1"):
        kubernetes.definition_name("apps/v1", "Deployment")
