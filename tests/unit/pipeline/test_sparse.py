"""Objects are reduced to the fields that Go's API types would write."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.fields import Field, fields_of
from trainwright.pipeline.sparse import sparse
from trainwright.schema.jsonobject import Json


def test_an_unset_field_and_its_zero_are_the_same() -> None:
    containers = [{"name": "a", "tty": False, "env": [{"name": "X", "value": ""}], "command": None, "args": []}]
    job = {"name": "node", "replicas": 0, "template": {"spec": {"template": {"spec": {"containers": containers}}}}}
    left: Any = {"containers": [{"name": "a", "env": [{"name": "X"}]}]}
    assert sparse({"failurePolicy": {"maxRestarts": 0}, "replicatedJobs": [job]}) == {
        "failurePolicy": {},
        "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": left}}}}],
    }


@pytest.mark.parametrize(
    ("struct", "kept"),
    [
        ("core.SecurityContext", {"runAsUser": 0, "privileged": False}),
        ("core.PodSpec", {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}),
        ("core.PodSpec", {"securityContext": {"sysctls": [{"name": "a", "value": ""}]}}),
        ("meta.ObjectMeta", {"labels": {"empty": ""}}),
        ("core.HTTPGetAction", {"port": 0, "httpHeaders": [{"name": "a", "value": ""}]}),
        ("core.Volume", {"name": "", "emptyDir": {}, "projected": {"sources": []}}),
        ("core.PodSpec", {"notYetKnown": {"value": "", "name": "", "tty": False, "list": [], "map": {}}}),
        ("not.Known", {"hostNetwork": False, "containers": []}),
    ],
)
def test_a_zero_that_means_something_stays(struct: str, kept: dict[str, Any]) -> None:
    assert sparse(kept, struct) == kept


def test_one_name_in_two_structs_is_two_fields() -> None:
    assert sparse({"spec": {"hostNetwork": False}}, "core.PodTemplateSpec") == {"spec": {}}
    assert sparse({"spec": {"completions": 0, "suspend": False}}, "batch.JobTemplateSpec") == {
        "spec": {"completions": 0, "suspend": False}
    }
    assert sparse({"serviceAccountName": ""}, "core.PodSpec") == {}
    assert sparse({"serviceAccountName": ""}, "trainer.PodSpecPatch") == {"serviceAccountName": ""}


def test_amounts_are_written_as_the_api_writes_them() -> None:
    assert sparse({"limits": {"cpu": 1, "memory": "1024Mi"}}, "core.ResourceRequirements") == {
        "limits": {"cpu": "1", "memory": "1Gi"}
    }
    assert sparse({"sizeLimit": "0.5Gi"}, "core.EmptyDirVolumeSource") == {"sizeLimit": "512Mi"}
    assert sparse({"overhead": {"cpu": 0.25}}, "core.PodSpec") == {"overhead": {"cpu": "250m"}}
    assert sparse({"limits": {"cpu": "many"}}, "core.ResourceRequirements") == {"limits": {"cpu": "many"}}


def test_a_resource_field_always_has_a_divisor() -> None:
    assert sparse({"resourceFieldRef": {"resource": "limits.cpu", "containerName": ""}}, "core.EnvVarSource") == {
        "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}
    }


def test_an_empty_list_says_nothing() -> None:
    patch: Json = {"tolerations": [], "nodeSelector": {}, "securityContext": {}}
    assert sparse(patch, "trainer.PodSpecPatch") == {"securityContext": {}}


def test_the_copy_shares_nothing_with_the_original() -> None:
    original: dict[str, Any] = {"a": [{"b": {"c": [1]}}], "network": {"x": {"y": 1}}}
    copy = sparse(original)
    copy["a"][0]["b"]["c"].append(2)
    copy["network"]["x"]["y"] = 2
    assert original == {"a": [{"b": {"c": [1]}}], "network": {"x": {"y": 1}}}


def test_fields_come_in_the_order_of_their_declaration() -> None:
    assert list(fields_of("core.EnvVarSource")) == [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ]
    assert fields_of("core.ResourceRequirements")["limits"] == Field("e", "{}", "quantity")
    assert fields_of("core.Pod") == {}


def test_text_that_is_always_written_is_empty_when_not_set() -> None:
    assert sparse({"type": "Ready"}, "batch.PodFailurePolicyOnPodConditionsPattern") == {"type": "Ready", "status": ""}
