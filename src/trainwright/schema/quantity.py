"""Kubernetes quantities, exactly: `500m`, `1Gi`, `2e3`.

In: the text or number of a manifest. Out: an immutable `Quantity` that compares and adds exactly and prints the
canonical text that the API server stores. Like there, values finer than a billionth are rounded away from zero.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import Final

_NANO: Final = 10**9
_MAX: Final = (2**63 - 1) * _NANO
# Numbers beyond these limits are of no use and cost memory or time; Go's library keeps them scaled and fails later.
_MAX_EXPONENT: Final = 1000
_MAX_DIGITS: Final = 4000

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

BINARY_SI: Final = "BinarySI"
DECIMAL_SI: Final = "DecimalSI"
DECIMAL_EXPONENT: Final = "DecimalExponent"


class QuantityError(ValueError):
    """Text that is no quantity, in the API server's words."""


WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


@total_ordering
class Quantity:
    """An exact amount in billionths, with the format it was written in. Equality and order are those of the amount."""

    __slots__ = ("_literal", "format", "nano")

    def __init__(self, nano: int, format: str = DECIMAL_SI, literal: str = "") -> None:
        self.nano = nano
        self.format = format
        # Text that Go's library takes for canonical is kept as it was written, even `+1Ki` or `1.500`.
        self._literal = literal

    def __str__(self) -> str:
        return self._literal or self.canonical()

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nano * factor, self.format)

    @property
    def is_integer(self) -> bool:
        return self.nano % _NANO == 0

    def value(self) -> int:
        """The amount as an integer, rounded away from zero (`1500m` is 2)."""
        return _round_away(self.nano, _NANO)

    def as_float(self) -> float:
        return self.nano / _NANO

    def canonical(self) -> str:
        """The shortest text without loss: no fraction, the largest suffix that keeps an integer."""
        if self.nano == 0:
            return "0"
        if self.format == BINARY_SI and abs(self.nano) >= 1024 * _NANO and self.is_integer:
            whole, times = self.nano // _NANO, 0
            while whole % 1024 == 0 and times < 6:
                whole //= 1024
                times += 1
            return f"{whole}{_BINARY_SUFFIX[times]}"
        mantissa, exponent = self.nano, -9
        while mantissa % 1000 == 0:
            mantissa //= 1000
            exponent += 3
        if self.format == DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        while exponent > 18:
            mantissa *= 1000
            exponent -= 3
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def _round_away(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount > 0 else amount // unit


def parse_quantity(value: str | int | float) -> Quantity:
    """The quantity of a manifest's text or number; raises `QuantityError` with the API server's words."""
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, bool):
        raise QuantityError(WRONG_FORMAT)
    return _parse(str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    if text == "0":
        return Quantity(0, DECIMAL_SI, text)
    match = _NUMBER.fullmatch(text)
    if not text or match is None:
        raise QuantityError(WRONG_FORMAT)
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4]
    format, base, exponent = _suffix(suffix)
    # Like in Go's library, no digits mean zero (`m` is 0), except before the largest suffixes.
    if len(whole) + len(fraction) > _MAX_DIGITS or (not whole and not fraction and base == 2 and exponent >= 50):
        raise QuantityError(WRONG_NUMBER)
    digits = int(whole + fraction or 0)
    if base == 2:
        nano = _round_away(digits * 2**exponent * _NANO, 10 ** len(fraction))
        nano = min(nano, _MAX)
        if 0 < nano < _NANO:
            format = DECIMAL_SI
    else:
        scale = 9 + exponent - len(fraction)
        nano = digits * 10**scale if scale >= 0 else _round_away(digits, 10**-scale)
    return Quantity(-nano if sign == "-" else nano, format, _kept(text, whole, fraction, format, base, exponent))


def _suffix(suffix: str) -> tuple[str, int, int]:
    if suffix in _DECIMAL:
        return DECIMAL_SI, 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return BINARY_SI, 2, _BINARY[suffix]
    if suffix[0] in "eE" and re.fullmatch(r"[+-]?[0-9]{1,19}", suffix[1:]):
        exponent = int(suffix[1:])
        if abs(exponent) > _MAX_EXPONENT:
            raise QuantityError(WRONG_NUMBER)
        return DECIMAL_EXPONENT, 10, exponent
    raise QuantityError(WRONG_SUFFIX)


def _kept(text: str, whole: str, fraction: str, format: str, base: int, exponent: int) -> str:
    """The text, where Go's library takes it for canonical and keeps it; else nothing."""
    whole = whole.lstrip("0") or "0"
    shifted = whole + fraction
    if base == 2:
        keeps = not fraction and 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0 and int(whole) & 7 != 0
        return text if keeps and format == BINARY_SI else ""
    scale = exponent - len(fraction)
    if len(shifted) > 18 or scale < -9 or scale % 3 or shifted.endswith("000") or shifted[0] == "0":
        return ""
    return text
