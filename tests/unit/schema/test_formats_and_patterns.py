"""String formats and Go's regular expressions on Python's engine."""

from __future__ import annotations

import pytest

from trainwright.schema.errors import SchemaError
from trainwright.schema.formats import FORMATS, format_check
from trainwright.schema.names import config_key_faults, dns1035_label_faults, dns1123_label_faults, label_key_faults
from trainwright.schema.regex import compile_regex

SAMPLES = {
    "bsonobjectid": ("507f1f77bcf86cd799439011", "xyz"),
    "byte": ("YWJj", "***"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "creditcard": ("4111 1111 1111 1111", "4111 1111 1111 1112"),
    "date": ("2026-01-31", "2026-02-30"),
    "datetime": ("2026-01-31T23:59:59+02:00", "2026-01-31 23:59:59"),
    "duration": ("1h30m", "soon"),
    "email": ("a@b.example", "a at b"),
    "hexcolor": ("#fff", "#ggg"),
    "hostname": ("a-b.example", "-a"),
    "ipv4": ("10.0.0.1", "300.0.0.1"),
    "ipv6": ("::1", "10.0.0.1"),
    "isbn": ("978-0321751041", "978-0321751042"),
    "isbn10": ("0321751043", "0321751044"),
    "isbn13": ("9780321751041", "0321751043"),
    "k8slongname": ("a.b-c", "A"),
    "k8sshortname": ("a-b", "a.b"),
    "mac": ("01:23:45:67:89:ab", "01:23"),
    "password": ("", None),
    "rgbcolor": ("rgb(255, 0, 1)", "rgb(256,0,0)"),
    "ssn": ("123-45-6789", "123"),
    "uri": ("https://h/p", "not a uri"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
    "uuid3": ("123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "uuid5": ("123e4567-e89b-52d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_accepts_and_refuses_strings(name: str) -> None:
    good, bad = SAMPLES[name]
    judge = format_check(name)
    assert judge is not None
    assert judge(good)
    assert bad is None or not judge(bad)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^\d+$", "٣", False),
        (r"^[[:alpha:]_]+$", "ab_", True),
        (r"^[[:alpha:]]+$", "a1", False),
        (r"^\pL+$", "é", True),
        (r"(?i)^ABC\z", "abc", True),
        (r"^[a[]$", "[", True),
        (r"\Qa.b\E", "axb", False),
        (r"(?P<n>a)b", "ab", True),
        (r"(?<n>a)b", "ab", True),
        (r"^a\x{62}$", "ab", True),
        (r"^[$]$", "$", True),
    ],
)
def test_a_pattern_matches_what_it_matches_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (compile_regex(pattern).search(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "a++", "(", r"\Z"])
def test_a_pattern_that_go_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError):
        compile_regex(pattern)


def test_names_are_refused_in_kubernetes_words() -> None:
    assert label_key_faults("example.com/My.Name") == []
    assert label_key_faults("a/b/c")[0].startswith("a valid label key must consist of")
    assert label_key_faults("/x") == ["prefix part must be non-empty"]
    assert "name part must be no more than 63 bytes" in label_key_faults("a" * 64)
    assert dns1123_label_faults("a.b") == ["must not contain dots"]
    assert dns1035_label_faults("1a")[0].startswith("a DNS-1035 label must consist of")
    assert config_key_faults("..a") == ["must not start with '..'"]
