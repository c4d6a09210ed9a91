"""Failures in protobuf, compared with what kube-apiserver 1.36.4 sent."""

from __future__ import annotations

import json

import pytest

from trainwright.client.requests import Request
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.wire.status import encode_status
from trainwright.testing.virtualserver import VirtualServer

PROTOBUF = "application/vnd.kubernetes.protobuf"
ENVELOPE = b"k8s\x00\n\x0c\n\x02v1\x12\x06Status"
NO_LIST = b"\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure"
END = b'\x1a\x00"\x00'


@pytest.mark.parametrize(
    ("error", "recorded"),
    [
        (
            StatusError(404, 'configmaps "none" not found', details={"name": "none", "kind": "configmaps"}),
            b'\x12U%b\x1a\x1bconfigmaps "none" not found"\x08NotFound'
            b"*\x18\n\x04none\x12\x00\x1a\nconfigmaps(\x002\x000\x94\x03",
        ),
        (
            StatusError(
                404,
                'things.example.com "none" not found',
                details={"name": "none", "group": "example.com", "kind": "things"},
            ),
            b'\x12d%b\x1a#things.example.com "none" not found"\x08NotFound'
            b"*\x1f\n\x04none\x12\x0bexample.com\x1a\x06things(\x002\x000\x94\x03",
        ),
        (
            StatusError(415, "415: Unsupported Media Type", details={}),
            b'\x12S%b\x1a\x1b415: Unsupported Media Type"\x14UnsupportedMediaType'
            b"*\n\n\x00\x12\x00\x1a\x00(\x002\x000\x9f\x03",
        ),
        (
            StatusError(400, "the name of the object (other) does not match the name on the URL (none)"),
            b"\x12j%b\x1aHthe name of the object (other) does not match the name on the URL (none)"
            b'"\nBadRequest0\x90\x03',
        ),
        (
            StatusError(
                504,
                "Timeout: Too large resource version: 99999999, current: 207",
                details={
                    "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                    "retryAfterSeconds": 1,
                },
            ),
            b"\x12\x9f\x01%b\x1a;Timeout: Too large resource version: 99999999, current: 207"
            b'"\x07Timeout*C\n\x00\x12\x00\x1a\x00"7\n\x17ResourceVersionTooLarge'
            b"\x12\x1aToo large resource version\x1a\x00"
            b"(\x012\x000\xf8\x03",
        ),
    ],
    ids=["named", "of a custom kind", "empty details", "no details", "with a cause"],
)
def test_a_failure_is_encoded_byte_for_byte_as_by_the_real_server(error: StatusError, recorded: bytes) -> None:
    assert encode_status(error.status) == ENVELOPE + recorded % NO_LIST + END


@pytest.mark.parametrize(
    ("accept", "told"),
    [
        (PROTOBUF, PROTOBUF),
        (f"{PROTOBUF},application/json", PROTOBUF),
        (f"{PROTOBUF}, */*", PROTOBUF),
        (f"{PROTOBUF};stream=watch", PROTOBUF),
        (f"application/json;q=0.5,{PROTOBUF}", PROTOBUF),
        (f"application/json,{PROTOBUF}", "application/json"),
        (f"application/yaml,{PROTOBUF}", "application/yaml"),
        (f"{PROTOBUF};q=0.1,application/json", "application/json"),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json", "application/json"),
        (f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json"),
    ],
)
async def test_a_failure_is_told_in_the_form_that_is_asked_for_first(
    server: VirtualServer, accept: str, told: str
) -> None:
    request = Request("POST", "/api/v1/namespaces/default/configmaps", (), b"{", accept=accept)
    answer = await server.client.transport.send(request, deadline=1.0)
    assert (answer.status, answer.headers["Content-Type"]) in ((400, told), (406, told))
    assert answer.body.startswith(b"k8s\x00") is (told == PROTOBUF)


async def test_a_client_that_reads_both_gets_objects_as_json(server: VirtualServer) -> None:
    accept = f"{PROTOBUF},application/json"
    body = json.dumps({"metadata": {"name": "c"}}).encode()
    request = Request("POST", "/api/v1/namespaces/default/configmaps", (), body, accept=accept)
    answer = await server.client.transport.send(request, deadline=1.0)
    assert (answer.status, answer.headers["Content-Type"]) == (201, "application/json")
    assert json.loads(answer.body)["metadata"]["name"] == "c"
