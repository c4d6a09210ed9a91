"""A container's variables and command line, as a kubelet would resolve them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from trainwright.embedded.node.podspec.environment import (
    Facts,
    Sources,
    Unresolved,
    command_line,
    references,
    variables,
)
from trainwright.schema.expansion import expand

FACTS = Facts("127.64.0.1", "127.0.0.1", {"cpu": "4", "memory": "8Gi"})
POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"batch.kubernetes.io/job-completion-index": "3"},
    },
    "spec": {"containers": [{"name": "c"}], "nodeName": "local"},
}
SOURCES = Sources(
    {
        "settings": {
            "data": {"LR": "0.1", "text": "a\nb"},
            "binaryData": {"blob": base64.b64encode(b"\x00\xff").decode()},
        }
    },
    {"keys": {"data": {"TOKEN": base64.b64encode(b"secret").decode()}}},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $$ ${A}", "$A $ ${A}"),
        ("$(", "$("),
    ],
)
def test_expansion_is_kubernetes_own(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_variables_see_those_before_them_and_env_from_comes_first() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"prefix": "S_", "secretRef": {"name": "keys"}}],
        "env": [
            {"name": "RATE", "value": "lr=$(LR)"},
            {"name": "LATER", "value": "$(NOT_YET)"},
            {"name": "NOT_YET", "value": "x"},
            {"name": "LR", "value": "0.2"},
        ],
    }
    found = variables(container, POD, SOURCES, FACTS)
    assert found["RATE"] == "lr=0.1"
    assert found["LATER"] == "$(NOT_YET)"
    assert (found["LR"], found["S_TOKEN"]) == ("0.2", "secret")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "p"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.64.0.1"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "local"),
        ({"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}, "3"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}, "1500"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}, "8"),
        ({"configMapKeyRef": {"name": "settings", "key": "LR"}}, "0.1"),
        ({"secretKeyRef": {"name": "keys", "key": "TOKEN"}}, "secret"),
    ],
)
def test_values_come_from_where_they_say(origin: dict[str, Any], expected: str) -> None:
    container = {
        "env": [{"name": "V", "valueFrom": origin}],
        "resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1500m"}},
    }
    assert variables(container, POD, SOURCES, FACTS)["V"] == expected


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"configMapKeyRef": {"name": "gone", "key": "k"}}, 'configmap "gone" not found'),
        ({"secretKeyRef": {"name": "gone", "key": "k"}}, 'secret "gone" not found'),
        ({"configMapKeyRef": {"name": "settings", "key": "k"}}, "couldn't find key k in ConfigMap ns/settings"),
    ],
)
def test_what_is_missing_is_named(origin: dict[str, Any], message: str) -> None:
    with pytest.raises(Unresolved, match=message):
        variables({"env": [{"name": "V", "valueFrom": origin}]}, POD, SOURCES, FACTS)


def test_what_is_missing_and_optional_is_left_out() -> None:
    origin = {"configMapKeyRef": {"name": "gone", "key": "k", "optional": True}}
    assert variables({"env": [{"name": "V", "valueFrom": origin}]}, POD, SOURCES, FACTS) == {}


def test_command_and_args_are_expanded() -> None:
    assert command_line({"command": ["run", "$(A)"], "args": ["--x=$(A)"]}, {"A": "1"}) == ["run", "1", "--x=1"]


def test_references_are_found_in_variables_and_volumes() -> None:
    pod = {
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "envFrom": [{"secretRef": {"name": "s1"}}],
                    "env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k"}}}],
                }
            ],
            "volumes": [
                {"name": "a", "configMap": {"name": "c2"}},
                {"name": "b", "secret": {"secretName": "s2"}},
                {"name": "p", "projected": {"sources": [{"secret": {"name": "s3"}}, {"configMap": {"name": "c3"}}]}},
            ],
        }
    }
    assert references(pod) == ({"c1", "c2", "c3"}, {"s1", "s2", "s3"})
