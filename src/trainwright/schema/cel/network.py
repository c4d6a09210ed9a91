"""URLs, IP addresses and CIDR blocks in CEL. Imported when a rule first uses one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from trainwright.schema.cel.signatures import Function, Signatures, need
from trainwright.schema.cel.values import CelError


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
    need(text, str)
    return URL(text)


def is_url(text: Any) -> bool:
    need(text, str)
    try:
        URL(text)
    except CelError:
        return False
    return True


def _url_part(pick: Callable[[URL], Any]) -> Function:
    def part(value: Any) -> Any:
        need(value, URL)
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
    need(value, str)
    return IP(value)


def cidr(text: Any) -> CIDR:
    need(text, str)
    return CIDR(text)


def _parses(parse: Callable[[str], Any]) -> Function:
    def judge(text: Any) -> bool:
        need(text, str)
        try:
            parse(text)
        except CelError:
            return False
        return True

    return judge


def _ip_is(pick: Callable[[Any], bool]) -> Function:
    def judge(value: Any) -> bool:
        need(value, IP)
        return bool(pick(value.address))

    return judge


def ip_is_canonical(text: Any) -> bool:
    return bool(str(ip(text)) == text)


def contains_ip(value: Any, address: Any) -> bool:
    need(value, CIDR)
    inner = IP(address) if isinstance(address, str) else address
    need(inner, IP)
    return bool(inner.address in value.interface.network)


def contains_cidr(value: Any, other: Any) -> bool:
    need(value, CIDR)
    inner = CIDR(other) if isinstance(other, str) else other
    need(inner, CIDR)
    a, b = value.interface.network, inner.interface.network
    return bool(a.version == b.version and b.subnet_of(a))


def _masked(value: Any) -> CIDR:
    need(value, CIDR)
    return CIDR(str(value.interface.network))


def _prefix_length(value: Any) -> int:
    need(value, CIDR)
    return int(value.interface.network.prefixlen)


GLOBAL: Signatures = {
    "url": (url, 1, 1),
    "isURL": (is_url, 1, 1),
    "ip": (ip, 1, 1),
    "isIP": (_parses(IP), 1, 1),
    "cidr": (cidr, 1, 1),
    "isCIDR": (_parses(CIDR), 1, 1),
}

NAMESPACED: Signatures = {
    "ip.isCanonical": (ip_is_canonical, 1, 1),
}

MEMBER: Signatures = {
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
}
