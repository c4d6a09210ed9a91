"""String formats of CRD schemas, checked as the API server checks them.

In: the name of a format. Out: a function that tells whether a string has that format, None for formats that the API
server does not know and ignores.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date

_DATE_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"
_DURATION = r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)"
_SPELLED_DURATION = (
    r"(?i)((?:\d+)\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\s*)+"
)
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = rf"(?:{_LABEL}\.)*{_LABEL}"
_BYTE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_EMAIL = r"(?:[^<>]*<)?[^@\s<>]+@[^@\s<>]+>?"
_SHORT_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LONG_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    # `re` compiles at the first use and keeps the result; most schemas use no format.
    return lambda text: re.fullmatch(pattern, text, flags | re.ASCII) is not None


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def is_date_time(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = re.fullmatch(_DATE_TIME, clock)
    return bool(separator and is_date(day) and match and match[1] <= "23" and match[2] <= "59" and match[3] <= "59")


def is_duration(text: str) -> bool:
    return re.fullmatch(_DURATION, text) is not None or re.fullmatch(_SPELLED_DURATION, text.strip()) is not None


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text) and len(text) % 4 == 0


def _is_address(kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return parses


def is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_uri(text: str) -> bool:
    """A request URI: an absolute path or an absolute URI."""
    return bool(re.fullmatch(r"(?:/|[A-Za-z][A-Za-z0-9+.-]*:(?://)?)[^\s]*", text)) and len(text) > 0


def is_hostname(text: str) -> bool:
    return len(text) <= 255 and re.fullmatch(_HOSTNAME, text) is not None


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    return 12 <= len(digits) <= 19 and _luhn(digits)


def is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((place + 1) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits)) % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits)) % 10 == 0


FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "byte": is_base64,
    "cidr": is_cidr,
    "creditcard": is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": lambda text: re.fullmatch(_EMAIL, text) is not None,
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": is_hostname,
    "ipv4": _is_address(ipaddress.IPv4Address),
    "ipv6": _is_address(ipaddress.IPv6Address),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(_LONG_NAME, text) is not None,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_SHORT_NAME, text) is not None,
    "mac": _matches(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"),
    "password": lambda text: True,
    "rgbcolor": _matches(rf"rgb\(\s*{_BYTE}\s*(,\s*{_BYTE}\s*){{2}}\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": is_uri,
    "uuid": _matches(_UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
    "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
}


def format_check(name: str) -> Callable[[str], bool] | None:
    """The check of a format, None if it is unknown. Dashes in the name are ignored: `date-time` is `datetime`."""
    return FORMATS.get(name.replace("-", ""))
