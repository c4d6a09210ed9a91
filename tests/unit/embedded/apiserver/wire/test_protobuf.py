"""Protobuf bodies of known objects, written by the rules of the encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.embedded.apiserver.wire.protobuf import MAGIC, ProtobufError, decode_unknown, fields, type_name


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def unknown(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_a_config_map_is_read() -> None:
    metadata = field(1, "c") + field(3, "ns") + field(11, field(1, "app") + field(2, "x"))
    raw = field(1, metadata) + field(2, field(1, "k") + field(2, "v")) + field(3, field(1, "b") + field(2, b"\x00\x01"))
    assert decode_unknown(unknown("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "ns", "labels": {"app": "x"}},
        "data": {"k": "v"},
        "binaryData": {"b": "AAE="},
    }


def test_a_body_recorded_from_kubectl_is_read() -> None:
    body = bytes.fromhex(
        "6b3873000a0f0a0276311209436f6e6669674d6170121d0a130a03636d7a12001a0022002a00320038004200120"
        "60a01611201621a002200"
    )
    assert decode_unknown(body)["data"] == {"a": "b"}
    assert decode_unknown(body)["metadata"]["name"] == "cmz"


def test_times_owners_and_negative_numbers_are_read() -> None:
    owner = field(1, "Job") + field(3, "j") + field(4, "u") + field(5, "batch/v1") + field(6, 1)
    metadata = field(8, field(1, 1_767_225_600)) + field(10, (1 << 64) - 5) + field(13, owner)
    found = decode_unknown(unknown("v1", "Secret", field(1, metadata)))["metadata"]
    assert found["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert found["deletionGracePeriodSeconds"] == -5
    assert found["ownerReferences"] == [
        {"kind": "Job", "name": "j", "uid": "u", "apiVersion": "batch/v1", "controller": True}
    ]


def test_fields_of_newer_versions_are_left_out() -> None:
    raw = field(1, field(1, "c")) + field(999, "new")
    assert decode_unknown(unknown("v1", "ConfigMap", raw))["metadata"] == {"name": "c"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (unknown("v9", "Nothing", b""), 'no kind "Nothing" is known for version "v9"'),
        (unknown("v1", "ConfigMap", b"\x0a\xff"), "cut off"),
        (unknown("v1", "ConfigMap", b"\x0a\x05ab"), "a field is cut off"),
        (unknown("v1", "ConfigMap", field(1, 5)), "a number stands where a message belongs"),
        (MAGIC + b"\x0b", "wire type 3 is not used by Kubernetes"),
        (b"", "does not appear to be a protobuf message"),
        (b"k8s", "does not appear to be a protobuf message"),
        (MAGIC + b"\xff", "a number is cut off"),
        (MAGIC + b"\x0a\xff\xff\xff\xff\x7f", "a field is cut off"),
        (MAGIC + b"\x0a\x00", 'no kind "" is known for version ""'),
    ],
)
def test_a_damaged_body_is_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode_unknown(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        decode_unknown(unknown("v1", "Pod", data))
    except ProtobufError:
        return


@given(st.lists(st.tuples(st.integers(1, 2**20), st.integers(0, 2**64 - 1) | st.binary(max_size=300)), max_size=5))
def test_fields_come_back_as_they_were(found: list[tuple[int, int | bytes]]) -> None:
    assert fields(b"".join(field(number, value) for number, value in found)) == found


def test_kinds_are_found_by_the_first_part_of_their_group() -> None:
    assert type_name("rbac.authorization.k8s.io/v1", "Role") == "rbac/v1.Role"
    assert type_name("v1", "Pod") == "core/v1.Pod"
    assert type_name("policy/v1", "DeleteOptions") == "meta/v1.DeleteOptions"
