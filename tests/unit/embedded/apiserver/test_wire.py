"""Built-in kinds come back from decoding as Go would write them."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.wire.protobuf import ProtobufError, decode_unknown
from trainwright.embedded.apiserver.wire.table import DecodeError, decode


def test_empty_values_vanish_and_structs_appear() -> None:
    decoded, unknown = decode(
        "core/v1.Pod", {"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [{"name": "a"}]}}
    )
    assert unknown == []
    assert decoded == {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "resources": {}}]},
        "status": {},
    }


def test_unknown_fields_are_named_in_the_bodys_order_and_dropped() -> None:
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


def test_quantities_and_times_become_canonical() -> None:
    container = {"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": 1024}}}
    decoded, _ = decode(
        "core/v1.Pod",
        {"metadata": {"creationTimestamp": "2024-01-01T02:00:00+02:00"}, "spec": {"containers": [container]}},
    )
    assert decoded["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1024"}
    assert decoded["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"


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
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(kind: str, body: Any, words: str) -> None:
    with pytest.raises(DecodeError, match=words.replace(".", r"\.")):
        decode(kind, body)


def test_a_recorded_protobuf_body_is_read() -> None:
    body = bytes.fromhex(
        "6b3873000a0f0a0276311209436f6e6669674d6170121d0a130a03636d7a12001a0022002a00320038004200120"
        "60a01611201621a002200"
    )
    assert decode_unknown(body)["data"] == {"a": "b"}
    assert decode_unknown(body)["metadata"]["name"] == "cmz"


@pytest.mark.parametrize(
    "body", [b"", b"k8s", b"k8s\x00\xff", b"k8s\x00\x0a\xff\xff\xff\xff\x7f", b"k8s\x00" + b"\x0a\x00"]
)
def test_broken_protobuf_is_refused(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_unknown(body)
