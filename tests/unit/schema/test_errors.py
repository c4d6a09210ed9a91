# ruff: noqa: E501 - tables of whole sentences read better on one line
"""Field errors print as kube-apiserver prints them."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.schema import errors
from trainwright.schema.errors import OMITTED, FieldError, aggregate
from trainwright.schema.gotext import json_text, number_text, quote


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        (errors.required("spec.runtimeRef"), "spec.runtimeRef: Required value", "FieldValueRequired"),
        (errors.invalid("a", -1, "too small"), "a: Invalid value: -1: too small", "FieldValueInvalid"),
        (errors.invalid("a", None, "x"), "a: Invalid value: null: x", "FieldValueInvalid"),
        (errors.invalid("", OMITTED, "x"), "<nil>: Invalid value: x", "FieldValueInvalid"),
        (errors.invalid("a", {"b": 1, "a": "<"}, "x"), 'a: Invalid value: {"a":"\\u003c","b":1}: x', "FieldValueInvalid"),
        (errors.too_long("a", 500), "a: Too long: may not be more than 500 bytes", "FieldValueTooLong"),
        (errors.too_many("a", 17, 16), "a: Too many: 17: must have at most 16 items", "FieldValueTooMany"),
        (errors.duplicate("a[1]", {"name": "A"}), 'a[1]: Duplicate value: {"name":"A"}', "FieldValueDuplicate"),
        (errors.not_supported("a", "Intel", ["OpenMPI", ""]), 'a: Unsupported value: "Intel": supported values: "OpenMPI", ""', "FieldValueNotSupported"),
        (errors.forbidden("a", "no"), "a: Forbidden: no", "FieldValueForbidden"),
        (errors.type_invalid("a", "x", "must be"), 'a: Invalid value: "x": must be', "FieldValueTypeInvalid"),
    ],
)  # fmt: skip
def test_an_error_has_kubernetes_text_and_reason(error: FieldError, text: str, reason: str) -> None:
    assert str(error) == text
    assert error.reason == reason


def test_an_aggregate_lists_equal_texts_once() -> None:
    a, b = errors.required("a"), errors.required("b")
    assert aggregate([a]) == "a: Required value"
    assert aggregate([a, a]) == "a: Required value"
    assert aggregate([a, b, a]) == "[a: Required value, b: Required value]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (2.5, "2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
    ],
)
def test_floats_print_as_in_go(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-7, "1e-7"), (0.00001, "0.00001"), ({"b": [True, None]}, '{"b":[true,null]}'), ("a&b\u2028", '"a\\u0026b\\u2028"')],
)  # fmt: skip
def test_json_prints_as_in_go(value: Any, text: str) -> None:
    assert json_text(value) == text


def test_strings_are_quoted_as_in_go() -> None:
    assert quote('a"b\\\n\x00é\u200b') == '"a\\"b\\\\\\n\\x00é\\u200b"'
