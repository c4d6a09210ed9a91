"""JSON of built-in kinds as Go's types leave it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from trainwright.embedded.apiserver.wire.scalars import DecodeError
from trainwright.embedded.apiserver.wire.table import decode


def test_empty_values_are_left_out_and_structs_are_filled_in() -> None:
    body = {"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [{"name": "a"}]}}
    decoded, unknown = decode("core/v1.Pod", body)
    assert unknown == []
    assert decoded == {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "resources": {}}]},
        "status": {},
    }


def test_unknown_fields_are_dropped_and_listed_in_the_order_of_the_body() -> None:
    body = {"metadata": {"zz": 1}, "spec": {"containers": [{"name": "a", "bogus": 1, "ports": [{"x": 1}]}]}, "aa": 1}
    decoded, unknown = decode("core/v1.Pod", body)
    assert unknown == ["metadata.zz", "spec.containers[0].bogus", "spec.containers[0].ports[0].x", "aa"]
    assert "aa" not in decoded


def test_pointers_keep_their_zero_and_plain_values_do_not() -> None:
    decoded, _ = decode("batch/v1.Job", {"spec": {"parallelism": 0, "suspend": False}})
    assert decoded["spec"]["parallelism"] == 0
    assert decoded["spec"]["suspend"] is False
    decoded, _ = decode("core/v1.Pod", {"spec": {"hostNetwork": False, "containers": [{"name": "a", "stdin": False}]}})
    assert "hostNetwork" not in decoded["spec"]


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (
            "core/v1.ConfigMap",
            {"data": {"a": 1}},
            "cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "batch/v1.Job",
            {"spec": {"parallelism": "2"}},
            "cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32",
        ),
        ("core/v1.Secret", {"data": {"a": "%%%"}}, "illegal base64 data at input byte 0"),
        (
            "core/v1.Pod",
            {"metadata": {"ownerReferences": [{"uid": 5}]}},
            "OwnerReference.metadata.ownerReferences.uid of type types.UID",
        ),
        ("core/v1.ConfigMap", {"data": ["a"]}, "cannot unmarshal array into Go struct field ConfigMap.data of type"),
        ("core/v1.ConfigMap", {"data": "a"}, "cannot unmarshal string into Go struct field ConfigMap.data of type"),
        ("core/v1.ConfigMap", {"metadata": {"name": 5}}, "ObjectMeta.metadata.name of type string"),
        ("core/v1.ConfigMap", {"metadata": {"labels": {"a": True}}}, "cannot unmarshal bool into Go struct field"),
        ("core/v1.ConfigMap", {"immutable": "yes"}, "ConfigMap.immutable of type bool"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(kind: str, body: Any, words: str) -> None:
    with pytest.raises(DecodeError, match=re.escape(words)):
        decode(kind, body)


@pytest.mark.parametrize(
    ("given", "canonical"), [("1000m", "1"), ("1.5", "1500m"), (2, "2"), ("1Gi", "1Gi"), (1024, "1024")]
)
def test_quantities_are_written_in_canonical_form(given: Any, canonical: str) -> None:
    container = {"name": "a", "resources": {"limits": {"cpu": given}}}
    decoded, _ = decode("core/v1.Pod", {"spec": {"containers": [container]}})
    assert decoded["spec"]["containers"][0]["resources"]["limits"]["cpu"] == canonical


def test_times_are_written_in_utc() -> None:
    decoded, _ = decode("core/v1.Pod", {"metadata": {"creationTimestamp": "2024-01-01T02:00:00+02:00"}})
    assert decoded["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"
