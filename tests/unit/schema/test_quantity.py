"""Quantities are exact and print as the API server prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.quantity import WRONG_FORMAT, WRONG_NUMBER, WRONG_SUFFIX, QuantityError, parse_quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        (".", "0"),
        ("m", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("0.1", "100m"),
        ("100000", "100k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("512", "512"),
        ("2e3", "2e3"),
        ("1e-3", "1e-3"),
        ("0.0000000001", "1n"),
        ("-1500m", "-1500m"),
        ("1.500", "1.500"),
        ("9223372036854775808", "9223372036854775808"),
        ("12345678901234567890Ei", "9223372036854775807"),
        (2, "2"),
        (2.0, "2"),
        (2.5, "2500m"),
    ],
)
def test_a_quantity_prints_its_canonical_text(text: str | int | float, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", WRONG_FORMAT),
        ("abc", WRONG_FORMAT),
        ("1 Gi", WRONG_FORMAT),
        ("1..5", WRONG_FORMAT),
        ("1kk", WRONG_SUFFIX),
        ("1Zi", WRONG_FORMAT),
        ("1K", WRONG_SUFFIX),
        ("1e99999999", WRONG_NUMBER),
    ],
)
def test_bad_text_is_refused_in_the_servers_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as error:
        parse_quantity(text)
    assert str(error.value) == message


def test_values_round_away_from_zero() -> None:
    assert parse_quantity("1500m").value() == 2
    assert parse_quantity("-1500m").value() == -2


def test_a_sum_keeps_the_format_of_its_first_non_zero_part() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1Gi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("500m") + parse_quantity("500m")) == "1"
    assert str(parse_quantity("1Gi") * 3) == "3Gi"


_texts = st.builds(
    lambda number, suffix: f"{number}{suffix}",
    st.decimals(min_value=0, max_value=10**6, places=6),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e2"]),
)


@given(_texts)
def test_canonical_text_means_the_same_amount_and_is_stable(text: str) -> None:
    quantity = parse_quantity(text)
    again = parse_quantity(quantity.canonical())
    assert again == quantity
    assert again.canonical() == quantity.canonical()


@given(_texts, _texts)
def test_addition_is_exact(left: str, right: str) -> None:
    a, b = parse_quantity(left), parse_quantity(right)
    assert (a + b) - b == a
    assert (a + b).nano == a.nano + b.nano
