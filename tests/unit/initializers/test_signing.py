"""Signature Version 4 against the examples that AWS publishes for S3."""

from __future__ import annotations

from datetime import UTC, datetime

from trainwright.initializers.s3.signing import Keys, encoded, query_text, sign

KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
HOST = "https://examplebucket.s3.amazonaws.com"


def signature(url: str, headers: dict[str, str]) -> str:
    signed = sign("GET", url, headers, KEYS, region="us-east-1", service="s3", now=NOW)
    return signed["Authorization"].rpartition("Signature=")[2]


def test_a_range_of_an_object() -> None:
    found = signature(f"{HOST}/test.txt", {"Range": "bytes=0-9"})
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def test_a_listing_with_a_query() -> None:
    found = signature(f"{HOST}/?{query_text({'prefix': 'J', 'max-keys': '2'})}", {})
    assert found == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_a_query_without_a_value() -> None:
    assert signature(f"{HOST}/?lifecycle", {}) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"


def test_encoding_is_that_of_aws() -> None:
    assert encoded("a b+c/d~ä*", "/") == "a%20b%2Bc/d~%C3%A4%2A"


def test_a_session_token_is_signed_and_the_secret_is_never_shown() -> None:
    keys = Keys("id", "secret", "token")
    signed = sign("GET", HOST, {}, keys, region="r", service="s3", now=NOW)
    assert signed["X-Amz-Security-Token"] == "token"
    assert "x-amz-security-token" in signed["Authorization"]
    assert "secret" not in repr(keys) + str(signed)
