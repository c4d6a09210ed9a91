"""YAML as Go's library reads it."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.http import yamldocument


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Off", False),
        ("1e3", 1000.0),
        ("1.5e-1", 0.15),
        ("010", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("-0o7", -7),
        ("08", 8.0),
        ("1_000", 1000),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("~", None),
        ("'y'", "y"),
        ("{1: a, true: b, null: c}", {"1": "a", "true": "b", "null": "c"}),
        ("a: 1\n---\na: 2\n", {"a": 1}),
        ("a: &x {b: 1}\n", {"a": {"b": 1}}),
    ],
)
def test_a_scalar_is_what_go_makes_of_it(text: str, value: Any) -> None:
    found, twice = yamldocument.first(text.encode())
    assert (found, type(found), twice) == (value, type(value), [])


def test_a_key_set_twice_is_named_with_its_line() -> None:
    found, twice = yamldocument.first(b"a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert found == {"a": 3, "b": {"c": 2}}
    assert sorted(twice) == ['line 2: key "c" already set in map', 'line 3: key "a" already set in map']


def test_a_merged_key_is_not_set_twice() -> None:
    assert yamldocument.first(b"<<: {a: 1}\na: 2\n") == ({"a": 2}, [])


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="json: unsupported value"):
        yamldocument.first(text.encode())
