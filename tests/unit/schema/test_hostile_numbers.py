"""Numbers of thousands of digits, which Python refuses to convert, are refused like any other bad input."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.schema.cel import CelError, compile_expression
from trainwright.schema.errors import SchemaError
from trainwright.schema.jsonpatch import PatchError, json_patch
from trainwright.schema.quantity import QuantityError, parse_quantity
from trainwright.schema.regex import compile_regex
from trainwright.schema.selectors import SelectorError, parse_label_selector

DIGITS = "9" * 5000


@pytest.mark.parametrize("text", [DIGITS, f"{DIGITS}Gi", f"1.{DIGITS}", f"1e{DIGITS}", f"1e-{DIGITS}"])
def test_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_a_label_selector_is_refused() -> None:
    with pytest.raises(SelectorError, match="the value must be an integer"):
        parse_label_selector(f"a>{DIGITS}")


def test_an_index_of_a_json_patch_is_refused() -> None:
    with pytest.raises(PatchError, match="value out of range"):
        json_patch([1], [{"op": "remove", "path": f"/{DIGITS}"}])


@pytest.mark.parametrize("pattern", [r"\x{FFFFFFFF}", r"\x{110000}", f"a{{{DIGITS}}}", "a{99999999999999}", "(" * 5000])
def test_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError):
        compile_regex(pattern)


@pytest.mark.parametrize(
    "text",
    [
        "int(self) > 0",
        "uint(self) > 0u",
        "double(self) < 0.0",
        "duration(self + 'h') > duration('1h')",
        "duration('0.' + self + 'h') > duration('1h')",
        "timestamp(self) > timestamp('2026-01-01T00:00:00Z')",
        "quantity(self).isGreaterThan(quantity('1'))",
        "semver(self + '.0.0').major() > 1",
        "semver('1.0.0-' + self).major() > 1",
        "semver('v' + self, true).major() > 1",
        "'%d'.format([int(self)]) == ''",
        "ip(self).family() == 4",
        "cidr('10.0.0.0/' + self).prefixLength() == 8",
    ],
)
def test_an_expression_is_refused_or_false(text: str) -> None:
    program: Any = compile_expression(text, {"self": None})
    try:
        assert program({"self": DIGITS}) is not True
    except CelError:
        pass


@pytest.mark.parametrize("literal", [DIGITS, f"{DIGITS}u", f"0x{DIGITS}", f"'\\U{'F' * 8}'", f"1e{DIGITS}"])
def test_a_literal_is_refused_or_infinite(literal: str) -> None:
    try:
        value = compile_expression(literal, {})({})
    except SchemaError:
        return
    assert value == float("inf")
