"""What S3 servers answer, and what servers answer that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.initializers.s3.answers import Fault, NotXml, Object, fault, page

LISTING = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>
  <EncodingType>url</EncodingType>
  <Contents><Key>a+b%2Bc%2F%C3%A4</Key><Size>12</Size><ETag>&quot;0123&quot;</ETag></Contents>
  <Contents><Key>plain</Key><Size>0</Size></Contents>
</ListBucketResult>"""


def test_a_page_of_a_listing() -> None:
    found = page(LISTING)
    assert found.objects == [Object("a b+c/ä", 12, "0123"), Object("plain", 0, "")]
    assert found.token == "next"
    assert page(LISTING.replace(b"true", b"false")).token == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"<html></html>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><ListBucketResult>&a;</ListBucketResult>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><ListBucketResult/>',
        b"<a>" * 100_000,
        b"<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        b'{"json": true}',
    ],
)
def test_what_is_no_listing_is_refused(body: bytes) -> None:
    with pytest.raises(NotXml):
        page(body)


@given(st.binary() | st.sampled_from([LISTING]).flatmap(lambda text: st.integers(0, 400).map(lambda at: text[:at])))
def test_any_bytes_are_a_page_or_refused(body: bytes) -> None:
    try:
        page(body)
    except NotXml:
        pass
    fault(body)


def test_failures_say_code_message_and_region() -> None:
    s3 = b"<Error><Code>NoSuchBucket</Code><Message>gone</Message><Region>eu</Region></Error>"
    assert fault(s3) == Fault("NoSuchBucket", "gone", "eu")
    sts = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
    assert fault(sts) == Fault("AccessDenied", "no")
    assert fault(b"<html>bad gateway</html>") == fault(b"") == fault(b"\xff") == Fault()
