"""Bodies: values, duplicates, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.embedded.apiserver.http.bodies import MAX_DEPTH, parse_json, parse_yaml

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == (value, [])


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), JSON, min_size=1, max_size=3))
def test_json_that_is_called_yaml_is_read_the_same(value: Any) -> None:
    assert parse_yaml(json.dumps(value).encode()) == (value, [])


def test_duplicates_are_named_with_their_path_and_the_last_wins() -> None:
    body = b'{"a":1,"a":2,"b":{"c":1,"c":2},"d":[{"e":1,"e":2,"e":3}]}'
    value, duplicates = parse_json(body)
    assert value == {"a": 2, "b": {"c": 2}, "d": [{"e": 3}]}
    assert duplicates == [f'duplicate field "{path}"' for path in ("a", "b.c", "d[0].e", "d[0].e")]


def test_duplicates_come_in_the_order_of_the_text() -> None:
    _, duplicates = parse_json(b'{"b":{"c":1,"c":2},"a":1,"a":2}')
    assert duplicates == ['duplicate field "b.c"', 'duplicate field "a"']


def test_whole_numbers_written_as_fractions_are_integers() -> None:
    value, _ = parse_json(b'{"a":1.0,"b":1e3,"c":1.5}')
    assert value == {"a": 1, "b": 1000, "c": 1.5}
    assert [type(value[name]) for name in "abc"] == [int, int, float]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        (b"not json", "invalid character 'o' in literal null (expecting 'u')"),
        (b"tru", "invalid character ' ' in literal true (expecting 'e')"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b'{"a":"]","b":[1 2]}', "invalid character '2' after array element"),
        (b'{"a":1} x', "invalid character 'x' after top-level value"),
        (b'{"a":"\\q"}', "invalid character 'q' in string escape code"),
        (b'{"a":-Infinity}', "invalid character '-'"),
        (b"\xff", "invalid UTF-8"),
        (b'{"a":' + b"[" * 100_000, "exceeded max depth"),
        (b'{"a":' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}", "exceeded max depth"),
    ],
)
def test_json_that_cannot_be_read_is_refused_in_words(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_json(body)


def test_yaml_keeps_times_as_text_and_keys_as_strings() -> None:
    value, _ = parse_yaml(b"when: 2026-01-01T00:00:00Z\n8: eight\ntrue: yes\n")
    assert value == {"when": "2026-01-01T00:00:00Z", "8": "eight", "true": True}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"a: &x [1]\nb: *x\n", "aliases are not supported"),
        (b"a: [1\n", "yaml: line "),
        (b"a: " + b"[" * 600 + b"]" * 600, "exceeded max depth"),
        (b"a: !!python/object:os.system {}\n", "could not determine a constructor"),
        (b"a: !!binary aGk=\n", "values of type bytes are not supported"),
    ],
)
def test_yaml_that_cannot_be_read_is_refused_in_words(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_yaml(body)
