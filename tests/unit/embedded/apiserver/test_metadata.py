"""Metadata: what the server fills in, and what a client may not change."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver import metadata
from trainwright.schema.names import dns1123_subdomain_faults


def faults(meta: dict[str, Any], *, namespaced: bool = True) -> list[str]:
    whole = {"name": "n", "namespace": "ns", **meta} if namespaced else {"name": "n", **meta}
    found = metadata.validate(whole, namespaced=namespaced, name_faults=dns1123_subdomain_faults)
    return [str(fault) for fault in found]


def changes(**meta: Any) -> list[str]:
    old = {"name": "n", "namespace": "ns", "uid": "u", "finalizers": ["a/b"], "deletionTimestamp": "t"}
    return sorted({str(e) for e in metadata.validate_update({**old, **meta}, old, namespaced=True)})


def test_a_plain_object_has_no_faults() -> None:
    assert faults({"labels": {"a/b": "c"}, "annotations": {"A.b": "any thing"}, "finalizers": ["x/y"]}) == []


@pytest.mark.parametrize(
    ("meta", "fault"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A"}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain'),
        ({"labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"annotations": {"a": "x" * 300_000}}, "metadata.annotations: Too long"),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, "cannot be both set"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}, "metadata.ownerReferences.uid"),
    ],
)
def test_rules_of_a_new_object(meta: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in faults(meta)), faults(meta)


def test_a_cluster_wide_object_has_no_namespace() -> None:
    assert faults({"namespace": "x"}, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_only_one_owner_may_be_the_controller() -> None:
    one = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True}
    (found,) = faults({"ownerReferences": [one, {**one, "uid": "2", "name": "q"}]})
    assert found.endswith("references for Pod/p and Pod/q")


def test_identity_cannot_change() -> None:
    assert changes(uid="v") == ['metadata.uid: Invalid value: "v": field is immutable']
    assert changes() == []


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    assert changes(finalizers=["a/b", "c/d"]) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new"
        ' finalizers []string{"c/d"}'
    ]
    assert changes(finalizers=[]) == []


def test_what_a_client_leaves_out_is_carried_over() -> None:
    new: dict[str, Any] = {"name": "n", "selfLink": "x", "generation": 99}
    metadata.carry_over(new, {"uid": "u", "creationTimestamp": "t", "generation": 3, "deletionTimestamp": "d"})
    assert new == {"name": "n", "uid": "u", "creationTimestamp": "t", "generation": 3, "deletionTimestamp": "d"}


def test_a_new_object_has_no_marks_of_an_earlier_life() -> None:
    meta = {"uid": "old", "deletionTimestamp": "x", "deletionGracePeriodSeconds": 5, "selfLink": "y"}
    metadata.fill_system_fields(meta, "now")
    assert meta["uid"] != "old"
    assert {**meta, "uid": ""} == {"uid": "", "creationTimestamp": "now"}


def test_generated_names_fit_and_differ() -> None:
    names = {metadata.generated_name("x" * 100) for _ in range(20)}
    assert len(names) == 20
    assert {len(name) for name in names} == {63}
