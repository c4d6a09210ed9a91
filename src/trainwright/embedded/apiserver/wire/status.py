"""A failure as protobuf: what Go's typed clients, which ask for protobuf first, read when a request fails.

In: a Status as JSON. Out: `k8s\\0` and a `runtime.Unknown` around `meta.v1.Status`, byte for byte as kube-apiserver
writes it: in the order of field numbers, with empty texts and zeros of fields that are no pointers in Go.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.wire.protobuf import MAGIC
from trainwright.schema.jsonobject import Json


def encode_status(status: Json) -> bytes:
    type_meta = _text(1, status.get("apiVersion")) + _text(2, status.get("kind"))
    content_encoding, content_type = _text(3, ""), _text(4, "")
    return MAGIC + _message(1, type_meta) + _message(2, _status(status)) + content_encoding + content_type


def _status(status: Json) -> bytes:
    list_meta = _text(1, "") + _text(2, "") + _text(3, "")  # a failure has no list: selfLink, resourceVersion, continue
    data = _message(1, list_meta) + _text(2, status.get("status"))
    data += _text(3, status.get("message")) + _text(4, status.get("reason"))
    details = status.get("details")
    if details is not None:
        data += _message(5, _details(details))
    return data + _number(6, status.get("code"))


def _details(details: Json) -> bytes:
    data = _text(1, details.get("name")) + _text(2, details.get("group")) + _text(3, details.get("kind"))
    for cause in details.get("causes") or ():
        data += _message(
            4, _text(1, cause.get("reason")) + _text(2, cause.get("message")) + _text(3, cause.get("field"))
        )
    return data + _number(5, details.get("retryAfterSeconds")) + _text(6, details.get("uid"))


def _message(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str | None) -> bytes:
    return _message(number, (text or "").encode(errors="replace"))


def _number(number: int, value: int | None) -> bytes:
    return _varint(number << 3) + _varint((value or 0) & (2**64 - 1))  # a negative number takes all 64 bits


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
