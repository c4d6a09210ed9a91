# ruff: noqa: E501 - tables of whole sentences read better on one line
"""Selectors parse and match as kube-apiserver's do, and refuse in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.selectors import (
    SelectorError,
    label_selector_faults,
    parse_field_selector,
    parse_label_selector,
    selector_of,
)

LABELS = {"app": "web", "tier": "a", "size": "5"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=a", True),
        ("app!=web", False),
        ("gone!=x", True),
        ("tier in (a, b)", True),
        ("tier notin (a)", False),
        ("gone notin (a)", True),
        ("app", True),
        ("!app", False),
        ("!gone", True),
        ("size>4", True),
        ("size<5", False),
        ("app>4", False),
        ("in in (in)", False),
        ("app in ()", False),
        ("gone=", False),
    ],
)
def test_a_label_selector_matches(text: str, matches: bool) -> None:
    assert parse_label_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("env in dev", "unable to parse requirement: found 'dev' expected: '('"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
    ],
)  # fmt: skip
def test_a_bad_label_selector_is_refused(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_label_selector(text)
    assert str(error.value) == message


def test_a_bad_key_is_refused_with_the_rule() -> None:
    with pytest.raises(SelectorError, match=r'unable to parse requirement: <nil>: Invalid value: "-a": name part must'):
        parse_label_selector("-a=b")


def test_a_field_selector_matches() -> None:
    selector = parse_field_selector("metadata.name=a,status.phase!=Failed")
    assert selector.matches({"metadata.name": "a", "status.phase": "Running"})
    assert not selector.matches({"metadata.name": "a", "status.phase": "Failed"})
    assert parse_field_selector(r"x=a\,b").matches({"x": "a,b"})
    with pytest.raises(SelectorError, match=r"invalid selector: 'metadata.name'; can't understand 'metadata.name'"):
        parse_field_selector("metadata.name")
    with pytest.raises(SelectorError, match=r"invalid escape sequence: \\x"):
        parse_field_selector(r"a=\x")


def test_a_label_selector_object_matches() -> None:
    selector = selector_of(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}
    )
    assert selector.matches(LABELS)
    assert selector_of({}).matches({})
    assert not selector_of(None).matches({})
    faults = label_selector_faults({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector")
    assert [str(fault) for fault in faults] == [
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    ]


_words = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@given(st.dictionaries(_words, _words, max_size=4), st.dictionaries(_words, _words, max_size=4))
def test_an_equality_selector_matches_supersets(wanted: dict[str, str], labels: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in wanted.items())
    assert parse_label_selector(text).matches(labels) is (wanted.items() <= labels.items())


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            parse(text)
        except SelectorError:
            pass
