"""Values in messages are what a typed object prints."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.pipeline.typed import containers_text, json_of, requirements_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"name": "A", "value": ""}, '{"name":"A"}'),
        (
            {"name": "A", "valueFrom": {"secretKeyRef": {"optional": False, "key": "", "name": ""}}},
            '{"name":"A","valueFrom":{"secretKeyRef":{"key":"","optional":false}}}',
        ),
        (
            {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}, "name": "A"},
            '{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}',
        ),
        (
            {"name": "A", "valueFrom": {"fileKeyRef": {"key": "k", "optional": True, "path": "p", "volumeName": "v"}}},
            '{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"p","key":"k","optional":true}}}',
        ),
    ],
)
def test_a_variable(value: dict[str, Any], text: str) -> None:
    assert json_of([value], "core.EnvVar") == f"[{text}]"


def test_a_patch_in_the_order_of_its_type() -> None:
    pod = {
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"effect": "NoSchedule", "key": "k", "tolerationSeconds": 0}],
        "nodeSelector": {"b": "", "a": "<"},
        "containers": [{"securityContext": {"runAsUser": 0, "privileged": False, "capabilities": {}}, "name": "node"}],
        "serviceAccountName": "",
        "volumes": [{"emptyDir": {"sizeLimit": "1024Mi", "medium": ""}, "name": "v"}],
    }
    assert json_of(pod, "trainer.PodSpecPatch") == (
        '{"serviceAccountName":"","volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}],'
        '"containers":[{"name":"node","securityContext":{"capabilities":{},"privileged":false,"runAsUser":0}}],'
        '"nodeSelector":{"a":"\\u003c","b":""},'
        '"tolerations":[{"key":"k","effect":"NoSchedule","tolerationSeconds":0}],"terminationGracePeriodSeconds":0}'
    )


def test_containers_always_have_resources() -> None:
    containers = [{"image": "i", "name": "a", "command": [], "args": ["x"]}]
    assert containers_text(containers) == '[{"name":"a","image":"i","args":["x"],"resources":{}}]'


def test_requirements_are_canonical() -> None:
    assert requirements_text(None) == "null"
    requirements = {"claims": [{"name": "c"}], "requests": {"memory": "1024Mi", "cpu": 1}, "limits": {}}
    assert requirements_text(requirements) == '{"requests":{"cpu":"1","memory":"1Gi"},"claims":[{"name":"c"}]}'


def test_what_is_always_written_is_written() -> None:
    assert json_of({"projected": {}}, "core.Volume") == '{"name":"","projected":{"sources":null}}'
