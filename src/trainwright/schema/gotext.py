"""Values as Go prints them: the API server's messages quote values, and clients match on the text.

In: JSON values (dict, list, str, int, float, bool, None). Out: text. `quote` is `%q`, `json_text` is `json.Marshal`,
`plain_text` and `number_text` are `%v`, `type_text` is `%T`.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_JSON_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_JSON_TABLE = str.maketrans(_JSON_ESCAPES)


def quote(text: str) -> str:
    """A Go string literal, as `%q` gives it: printable characters stay, the rest is escaped."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out: list[str] = []
    for char in text:
        code = ord(char)
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char == " " or unicodedata.category(char)[0] in "LMNPS":
            out.append(char)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        elif code < 0x10000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    return '"' + "".join(out) + '"'


def number_text(value: int | float) -> str:
    """An integer as it is; a float as `%v` prints a float64: shortest form, exponents below -4 and from 21 on."""
    if isinstance(value, int):
        return str(value)
    return _shortest(value, low=-4, pad=2)


def _shortest(value: float, *, low: int, pad: int) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    mantissa, _, exponent_text = f"{value!r}".partition("e")
    negative = mantissa.startswith("-")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    exponent = int(exponent_text or 0)
    digits = (whole + fraction).lstrip("0")
    # The decimal exponent of the first significant digit.
    point = len(whole) + exponent - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    first = point - 1
    if first < low or first >= 21:
        body = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        body += f"e{'-' if first < 0 else '+'}{abs(first):0{pad}d}"
    elif point <= 0:
        body = "0." + "0" * -point + digits
    elif point >= len(digits):
        body = digits + "0" * (point - len(digits))
    else:
        body = digits[:point] + "." + digits[point:]
    return ("-" if negative else "") + body


def json_text(value: Any) -> str:
    """Compact JSON with sorted keys and `<`, `>`, `&` escaped."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(str(k))}:{json_text(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    if isinstance(value, float):
        # encoding/json switches to an exponent below 1e-6 and writes it without a leading zero (1e-7).
        text = _shortest(value, low=-6, pad=2)
        return text.replace("e-0", "e-") if "e-0" in text else text
    return json.dumps(value, ensure_ascii=False).translate(_JSON_TABLE)


def value_text(value: Any) -> str:
    """A value inside a field error: numbers and booleans plainly, strings quoted, the rest as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float):
        return number_text(value)
    return json_text(value)


def plain_text(value: Any) -> str:
    """A decoded value as `%v` prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(plain_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def type_text(value: Any) -> str:
    """The Go type of a decoded value, as `%T` prints it."""
    kinds = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
    return kinds.get(type(value), "float64")
