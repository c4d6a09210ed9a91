"""CEL's functions: the standard ones and those Kubernetes adds (strings, lists, regular expressions, quantities,
URLs, addresses, sets).

A function takes evaluated arguments, the target of a member call first, and returns a value or raises `CelError`. The
table at the end says which names exist, whether they are called as members, and with how many arguments.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import SchemaError
from ..quantity import Quantity, QuantityError, parse_quantity
from ..regex import compile_regex
from .syntax import UInt
from .values import (
    NO_OVERLOAD,
    NONE,
    CelError,
    Duration,
    Optional_,
    Type,
    equal,
    is_number,
    ordered,
    parse_duration,
    parse_timestamp,
    type_name,
)

Function = Callable[..., Any]


def _need(value: Any, *types: type) -> None:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise CelError(NO_OVERLOAD)


def _int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


# ── size, conversions, types ──────────────────────────────────────────────────────────────────────────────────────────


def size(value: Any) -> int:
    _need(value, str, bytes, list, dict)
    return len(value)


def to_int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return _int64(int(value)) if re.fullmatch(r"[+-]?[0-9]+", value) else _bad_conversion(value)
        except ValueError:
            _bad_conversion(value)
    if isinstance(value, dt.datetime):
        return math.floor(value.timestamp())
    _need(value, int, float)
    if isinstance(value, float):
        if not math.isfinite(value) or not -(2.0**63) < value < 2.0**63:
            raise CelError("integer overflow")
        return math.trunc(value)
    return _int64(int(value))


def _bad_conversion(value: str) -> int:
    raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')


def to_uint(value: Any) -> UInt:
    number = to_int(value) if not isinstance(value, UInt) else int(value)
    if not 0 <= number < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def to_double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None
    _need(value, int, float)
    return float(value)


def to_string(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            from ..gotext import number_text

            return number_text(value)
        case int():
            return str(int(value))
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
        case Duration():
            seconds = value.nanos / 10**9
            return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"
        case Quantity():
            return str(value)
    if hasattr(value, "cel_type"):
        return str(value)
    raise CelError(NO_OVERLOAD)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    _need(value, str)
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise CelError(f'type conversion error from "{value}" to bool')


def to_bytes(value: Any) -> bytes:
    _need(value, str, bytes)
    return value.encode() if isinstance(value, str) else bytes(value)


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    _need(value, str)
    return parse_duration(value)


def to_timestamp(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return dt.datetime.fromtimestamp(value, dt.UTC)
    _need(value, str)
    return parse_timestamp(value)


# ── strings ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def contains(text: Any, part: Any) -> bool:
    _need(text, str)
    _need(part, str)
    return part in text


def starts_with(text: Any, part: Any) -> bool:
    _need(text, str)
    _need(part, str)
    return bool(text.startswith(part))


def ends_with(text: Any, part: Any) -> bool:
    _need(text, str)
    _need(part, str)
    return bool(text.endswith(part))


def _regex(pattern: Any) -> re.Pattern[str]:
    _need(pattern, str)
    try:
        return compile_regex(pattern)
    except SchemaError as error:
        raise CelError(str(error)) from None


def matches(text: Any, pattern: Any) -> bool:
    _need(text, str)
    return _regex(pattern).search(text) is not None


def find(text: Any, pattern: Any) -> str:
    _need(text, str)
    found = _regex(pattern).search(text)
    return found[0] if found else ""


def find_all(text: Any, pattern: Any, limit: Any = -1) -> list[str]:
    _need(text, str)
    _need(limit, int)
    found = [match[0] for match in _regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def char_at(text: Any, index: Any) -> str:
    _need(text, str)
    _need(index, int)
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return str(text[index : index + 1])


def index_of(value: Any, part: Any, start: Any = 0) -> int:
    _need(start, int)
    if isinstance(value, list):
        return next((at for at, item in enumerate(value) if equal(item, part)), -1)
    _need(value, str)
    _need(part, str)
    if not 0 <= start <= len(value):
        raise CelError(f"index out of range: {start}")
    return int(value.find(part, start))


def last_index_of(value: Any, part: Any, start: Any = None) -> int:
    if isinstance(value, list):
        return max((at for at, item in enumerate(value) if equal(item, part)), default=-1)
    _need(value, str)
    _need(part, str)
    if start is None:
        return int(value.rfind(part))
    _need(start, int)
    if not 0 <= start <= len(value):
        raise CelError(f"index out of range: {start}")
    return int(value.rfind(part, 0, start + len(part)))


def lower_ascii(text: Any) -> str:
    _need(text, str)
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in text)


def upper_ascii(text: Any) -> str:
    _need(text, str)
    return "".join(char.upper() if "a" <= char <= "z" else char for char in text)


def replace(text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    _need(text, str)
    _need(old, str)
    _need(new, str)
    _need(limit, int)
    return str(text.replace(old, new, limit))


def split(text: Any, separator: Any, limit: Any = -1) -> list[str]:
    _need(text, str)
    _need(separator, str)
    _need(limit, int)
    if limit == 0:
        return []
    if separator == "":
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]
    return list(text.split(separator, limit - 1 if limit > 0 else -1))


def substring(text: Any, start: Any, end: Any = None) -> str:
    _need(text, str)
    _need(start, int)
    end = len(text) if end is None else end
    _need(end, int)
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    return str(text[start:end])


def trim(text: Any) -> str:
    _need(text, str)
    return str(text.strip())


def join(items: Any, separator: Any = "") -> str:
    _need(items, list)
    _need(separator, str)
    for item in items:
        _need(item, str)
    return str(separator.join(items))


def reverse(text: Any) -> Any:
    _need(text, str, list)
    return text[::-1]


def quote(text: Any) -> str:
    from ..gotext import quote as go_quote

    _need(text, str)
    return go_quote(text)


def format_(template: Any, args: Any) -> str:
    """`"%s is %d".format([name, n])`."""
    _need(template, str)
    _need(args, list)
    remaining = list(args)

    def fill(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not remaining:
            raise CelError("could not parse formatting clause: not enough arguments")
        value = remaining.pop(0)
        verb, digits = match[2], match[1]
        match verb:
            case "s":
                return _shown(value)
            case "d":
                _need(value, int)
                return str(int(value))
            case "f" | "e":
                _need(value, int, float)
                return f"{value:.{int(digits[1:]) if digits else 6}{verb}}"
            case "b":
                _need(value, int, bool)
                return f"{int(value):b}"
            case "x" | "X":
                if isinstance(value, str | bytes):
                    hexed = to_bytes(value).hex()
                    return hexed.upper() if verb == "X" else hexed
                _need(value, int)
                return f"{value:{verb}}"
            case _:
                _need(value, int)
                return f"{value:o}"

    return re.sub(r"%(?:%|(\.\d+)?([sdfebxXo]))", fill, template)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(k)}: {_shown(value[k])}" for k in sorted(value, key=str)) + "}"
    return "null" if value is None else to_string(value)


# ── lists and sets ────────────────────────────────────────────────────────────────────────────────────────────────────


def is_sorted(items: Any) -> bool:
    _need(items, list)
    return all(not _less(b, a) for a, b in pairwise(items))


def _less(left: Any, right: Any) -> bool:
    if not ordered(left, right):
        raise CelError(NO_OVERLOAD)
    return bool(left < right)


def total(items: Any) -> Any:
    _need(items, list)
    if not items:
        return 0
    if isinstance(items[0], Duration):
        return Duration(sum(item.nanos for item in items))
    for item in items:
        _need(item, int, float)
    return sum(items[1:], items[0])


def _extreme(name: str, *, smallest: bool) -> Function:
    def pick(items: Any) -> Any:
        _need(items, list)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _less(item, best) if smallest else _less(best, item):
                best = item
        return best

    return pick


def _member(item: Any, items: list[Any]) -> bool:
    return any(equal(item, other) for other in items)


def sets_contains(items: Any, part: Any) -> bool:
    _need(items, list)
    _need(part, list)
    return all(_member(item, items) for item in part)


def sets_equivalent(left: Any, right: Any) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def sets_intersects(left: Any, right: Any) -> bool:
    _need(left, list)
    _need(right, list)
    return any(_member(item, right) for item in left)


# ── quantities ────────────────────────────────────────────────────────────────────────────────────────────────────────


def quantity(text: Any) -> Quantity:
    _need(text, str)
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise CelError(str(error)) from None


def is_quantity(text: Any) -> bool:
    _need(text, str)
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _sign(value: Any) -> int:
    _need(value, Quantity)
    return int(value.nano > 0) - int(value.nano < 0)


def _is_integer(value: Any) -> bool:
    _need(value, Quantity)
    return bool(value.is_integer and -(2**63) <= value.value() < 2**63)


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.value())


def _as_float(value: Any) -> float:
    _need(value, Quantity)
    return float(value.as_float())


def _other(value: Any) -> Quantity:
    if isinstance(value, int) and not isinstance(value, bool):
        return parse_quantity(int(value))
    _need(value, Quantity)
    result: Quantity = value
    return result


def _add(left: Any, right: Any) -> Quantity:
    _need(left, Quantity)
    result: Quantity = left + _other(right)
    return result


def _sub(left: Any, right: Any) -> Quantity:
    _need(left, Quantity)
    result: Quantity = left - _other(right)
    return result


def _is_less(left: Any, right: Any) -> bool:
    _need(left, Quantity)
    return bool(left < _other(right))


def _is_greater(left: Any, right: Any) -> bool:
    _need(left, Quantity)
    return bool(left > _other(right))


def _compare(left: Any, right: Any) -> int:
    _need(left, Quantity)
    other = _other(right)
    return int(left > other) - int(left < other)


# ── URLs and addresses ────────────────────────────────────────────────────────────────────────────────────────────────


class URL:
    """A parsed absolute URL or absolute path."""

    cel_type = "kubernetes.URL"
    __slots__ = ("parts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.parts = urlsplit(text)
            _ = self.parts.port
        except ValueError as error:
            raise CelError(f'URL parse error during conversion from string: parse "{text}": {error}') from None
        if not text or (not self.parts.scheme and not text.startswith("/")) or re.search(r"[\s\x00-\x1f]", text):
            raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URL) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def url(text: Any) -> URL:
    _need(text, str)
    return URL(text)


def is_url(text: Any) -> bool:
    _need(text, str)
    try:
        URL(text)
    except CelError:
        return False
    return True


def _url_part(pick: Callable[[URL], Any]) -> Function:
    def part(value: Any) -> Any:
        _need(value, URL)
        return pick(value)

    return part


def _host(value: URL) -> str:
    return value.parts.netloc.rpartition("@")[2]


def _hostname(value: URL) -> str:
    host = _host(value)
    if host.startswith("["):
        return host[1 : host.index("]")]
    return host.rpartition(":")[0] if ":" in host else host


class IP:
    cel_type = "net.IP"
    __slots__ = ("address",)

    def __init__(self, text: str) -> None:
        try:
            self.address = ipaddress.ip_address(text)
        except ValueError:
            raise CelError(f'IP Address "{text}" parse error during conversion from string') from None
        if "%" in text:
            raise CelError(f'IP address "{text}" with zone value is not allowed')

    def __str__(self) -> str:
        return str(self.address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IP) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)


class CIDR:
    cel_type = "net.CIDR"
    __slots__ = ("interface",)

    def __init__(self, text: str) -> None:
        try:
            self.interface = ipaddress.ip_interface(text)
        except ValueError:
            raise CelError(f'CIDR "{text}" parse error during conversion from string') from None
        if "/" not in text:
            raise CelError(f'CIDR "{text}" parse error during conversion from string')

    def __str__(self) -> str:
        return str(self.interface)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDR) and other.interface == self.interface

    def __hash__(self) -> int:
        return hash(self.interface)


def ip(value: Any) -> IP:
    if isinstance(value, CIDR):
        return IP(str(value.interface.ip))
    _need(value, str)
    return IP(value)


def cidr(text: Any) -> CIDR:
    _need(text, str)
    return CIDR(text)


def _parses(parse: Callable[[str], Any]) -> Function:
    def judge(text: Any) -> bool:
        _need(text, str)
        try:
            parse(text)
        except CelError:
            return False
        return True

    return judge


def _ip_is(pick: Callable[[Any], bool]) -> Function:
    def judge(value: Any) -> bool:
        _need(value, IP)
        return bool(pick(value.address))

    return judge


def ip_is_canonical(text: Any) -> bool:
    return bool(str(ip(text)) == text)


def contains_ip(value: Any, address: Any) -> bool:
    _need(value, CIDR)
    inner = IP(address) if isinstance(address, str) else address
    _need(inner, IP)
    return bool(inner.address in value.interface.network)


def contains_cidr(value: Any, other: Any) -> bool:
    _need(value, CIDR)
    inner = CIDR(other) if isinstance(other, str) else other
    _need(inner, CIDR)
    a, b = value.interface.network, inner.interface.network
    return bool(a.version == b.version and b.subnet_of(a))


def _masked(value: Any) -> CIDR:
    _need(value, CIDR)
    return CIDR(str(value.interface.network))


def _prefix_length(value: Any) -> int:
    _need(value, CIDR)
    return int(value.interface.network.prefixlen)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _time_part(of_timestamp: Callable[[dt.datetime], int], of_duration: int = 0) -> Function:
    def part(value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, Duration) and of_duration:
            return int(value.nanos / of_duration)
        _need(value, dt.datetime)
        return of_timestamp(value.astimezone(_zone(zone)))

    return part


def _zone(name: str) -> dt.tzinfo:
    if match := re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", name):
        minutes = int(match[2]) * 60 + int(match[3])
        return dt.timezone(dt.timedelta(minutes=-minutes if match[1] == "-" else minutes))
    if name in ("UTC", ""):
        return dt.UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


# ── optionals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def optional_value(value: Any) -> Any:
    _need(value, Optional_)
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


def optional_of_non_zero(value: Any) -> Optional_:
    zero = (
        value is None or value is False or value in (0, 0.0, "", b"") or (isinstance(value, list | dict) and not value)
    )
    return NONE if zero and value is not True else Optional_(value)


def _present(value: Any) -> bool:
    _need(value, Optional_)
    return bool(value.present)


GLOBAL: dict[str, tuple[Function, int, int]] = {
    "size": (size, 1, 1),
    "int": (to_int, 1, 1),
    "uint": (to_uint, 1, 1),
    "double": (to_double, 1, 1),
    "string": (to_string, 1, 1),
    "bool": (to_bool, 1, 1),
    "bytes": (to_bytes, 1, 1),
    "duration": (to_duration, 1, 1),
    "timestamp": (to_timestamp, 1, 1),
    "dyn": (lambda value: value, 1, 1),
    "type": (lambda value: Type(type_name(value)), 1, 1),
    "matches": (matches, 2, 2),
    "quantity": (quantity, 1, 1),
    "isQuantity": (is_quantity, 1, 1),
    "url": (url, 1, 1),
    "isURL": (is_url, 1, 1),
    "ip": (ip, 1, 1),
    "isIP": (_parses(IP), 1, 1),
    "cidr": (cidr, 1, 1),
    "isCIDR": (_parses(CIDR), 1, 1),
}
"""Functions called by name: the function, its least and its most arguments."""

NAMESPACED: dict[str, tuple[Function, int, int]] = {
    "sets.contains": (sets_contains, 2, 2),
    "sets.equivalent": (sets_equivalent, 2, 2),
    "sets.intersects": (sets_intersects, 2, 2),
    "strings.quote": (quote, 1, 1),
    "ip.isCanonical": (ip_is_canonical, 1, 1),
    "optional.of": (lambda value: Optional_(value), 1, 1),
    "optional.ofNonZeroValue": (optional_of_non_zero, 1, 1),
    "optional.none": (lambda: NONE, 0, 0),
}

MEMBER: dict[str, tuple[Function, int, int]] = {
    "size": (size, 0, 0),
    "contains": (contains, 1, 1),
    "startsWith": (starts_with, 1, 1),
    "endsWith": (ends_with, 1, 1),
    "matches": (matches, 1, 1),
    "find": (find, 1, 1),
    "findAll": (find_all, 1, 2),
    "charAt": (char_at, 1, 1),
    "indexOf": (index_of, 1, 2),
    "lastIndexOf": (last_index_of, 1, 2),
    "lowerAscii": (lower_ascii, 0, 0),
    "upperAscii": (upper_ascii, 0, 0),
    "replace": (replace, 2, 3),
    "split": (split, 1, 2),
    "substring": (substring, 1, 2),
    "trim": (trim, 0, 0),
    "join": (join, 0, 1),
    "reverse": (reverse, 0, 0),
    "format": (format_, 1, 1),
    "isSorted": (is_sorted, 0, 0),
    "sum": (total, 0, 0),
    "min": (_extreme("min", smallest=True), 0, 0),
    "max": (_extreme("max", smallest=False), 0, 0),
    "sign": (_sign, 0, 0),
    "isInteger": (_is_integer, 0, 0),
    "asInteger": (_as_integer, 0, 0),
    "asApproximateFloat": (_as_float, 0, 0),
    "add": (_add, 1, 1),
    "sub": (_sub, 1, 1),
    "isLessThan": (_is_less, 1, 1),
    "isGreaterThan": (_is_greater, 1, 1),
    "compareTo": (_compare, 1, 1),
    "getScheme": (_url_part(lambda value: value.parts.scheme), 0, 0),
    "getHost": (_url_part(_host), 0, 0),
    "getHostname": (_url_part(_hostname), 0, 0),
    "getPort": (_url_part(lambda value: str(value.parts.port) if value.parts.port is not None else ""), 0, 0),
    "getEscapedPath": (_url_part(lambda value: value.parts.path), 0, 0),
    "getQuery": (_url_part(lambda value: parse_qs(value.parts.query, keep_blank_values=True)), 0, 0),
    "ip": (ip, 0, 0),
    "family": (lambda value: _ip_is(lambda address: True)(value) and value.address.version, 0, 0),
    "isUnspecified": (_ip_is(lambda address: address.is_unspecified), 0, 0),
    "isLoopback": (_ip_is(lambda address: address.is_loopback), 0, 0),
    "isLinkLocalMulticast": (_ip_is(lambda a: a.is_multicast and str(a).startswith(("224.0.0.", "ff02:"))), 0, 0),
    "isLinkLocalUnicast": (_ip_is(lambda address: address.is_link_local), 0, 0),
    "isGlobalUnicast": (
        _ip_is(lambda a: not (a.is_unspecified or a.is_loopback or a.is_multicast or a.is_link_local)),
        0,
        0,
    ),
    "containsIP": (contains_ip, 1, 1),
    "containsCIDR": (contains_cidr, 1, 1),
    "masked": (_masked, 0, 0),
    "prefixLength": (_prefix_length, 0, 0),
    "getFullYear": (_time_part(lambda t: t.year), 0, 1),
    "getMonth": (_time_part(lambda t: t.month - 1), 0, 1),
    "getDate": (_time_part(lambda t: t.day), 0, 1),
    "getDayOfMonth": (_time_part(lambda t: t.day - 1), 0, 1),
    "getDayOfWeek": (_time_part(lambda t: t.isoweekday() % 7), 0, 1),
    "getDayOfYear": (_time_part(lambda t: t.timetuple().tm_yday - 1), 0, 1),
    "getHours": (_time_part(lambda t: t.hour, 3600 * 10**9), 0, 1),
    "getMinutes": (_time_part(lambda t: t.minute, 60 * 10**9), 0, 1),
    "getSeconds": (_time_part(lambda t: t.second, 10**9), 0, 1),
    "getMilliseconds": (_time_part(lambda t: t.microsecond // 1000, 10**6), 0, 1),
    "hasValue": (_present, 0, 0),
    "value": (optional_value, 0, 0),
}
"""Functions called on a value; the counts leave the value itself out."""

TYPES = {
    name: Type(name)
    for name in (
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
        "optional_type",
    )
}

__all__ = ["GLOBAL", "MEMBER", "NAMESPACED", "TYPES", "is_number"]
