"""Network devices of the caller's network namespace, by the kernel's rtnetlink: bridges, veth pairs, addresses.

In: names, addresses, descriptors of network namespaces. Out: devices, up. No program (`ip`) is needed, and no rights
but those that whoever made a namespace has in it. Raises `OSError`. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import socket
import struct

RTM_NEWLINK, RTM_NEWADDR = 16, 20
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400

IFLA_ADDRESS, IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO, IFLA_NET_NS_FD = 1, 3, 10, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
VETH_INFO_PEER = 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFF_UP = 1

_LINK = struct.Struct("=BxHiII")
"""struct ifinfomsg: family, type, index, flags, mask."""
_ADDRESS = struct.Struct("=BBBBI")
"""struct ifaddrmsg: family, prefix length, flags, scope, index."""
_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""


def add_bridge(name: str) -> None:
    """Makes a bridge and sets it up."""
    kind = _attribute(IFLA_LINKINFO, _attribute(IFLA_INFO_KIND, b"bridge"))
    _send(RTM_NEWLINK, _new(), _link(up=True) + _attribute(IFLA_IFNAME, _text(name)) + kind, f"bridge {name}")


def add_veth(name: str, peer: str, peer_namespace: int, *, bridge: str) -> None:
    """Makes a cable: one end, `name`, is plugged into the bridge; the other one, `peer`, is in the network namespace of
    that descriptor, and is not up yet.
    """
    far = _link() + _attribute(IFLA_IFNAME, _text(peer)) + _attribute(IFLA_NET_NS_FD, struct.pack("=i", peer_namespace))
    data = _attribute(IFLA_INFO_DATA, _attribute(VETH_INFO_PEER, far))
    kind = _attribute(IFLA_LINKINFO, _attribute(IFLA_INFO_KIND, b"veth") + data)
    master = _attribute(IFLA_MASTER, struct.pack("=i", socket.if_nametoindex(bridge)))
    body = _link(up=True) + _attribute(IFLA_IFNAME, _text(name)) + master + kind
    _send(RTM_NEWLINK, _new(), body, f"veth {name}")


def set_up(name: str) -> None:
    _send(RTM_NEWLINK, 0, _link(up=True, index=socket.if_nametoindex(name)), f"{name} up")


def add_address(name: str, address: str, prefix: int) -> None:
    packed = socket.inet_aton(address)
    body = _ADDRESS.pack(socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(name))
    body += _attribute(IFA_LOCAL, packed) + _attribute(IFA_ADDRESS, packed)
    _send(RTM_NEWADDR, _new(), body, f"address {address}/{prefix}")


def _new() -> int:
    return NLM_F_CREATE | NLM_F_EXCL


def _text(name: str) -> bytes:
    return name.encode() + b"\0"


def _link(*, up: bool = False, index: int = 0) -> bytes:
    flag = IFF_UP if up else 0
    return _LINK.pack(socket.AF_UNSPEC, 0, index, flag, flag)


def _attribute(kind: int, value: bytes) -> bytes:
    """struct rtattr, padded to four bytes."""
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + b"\0" * (-length % 4)


def _send(message: int, flags: int, body: bytes, what: str) -> None:
    """Sends one request and waits for the kernel's answer."""
    header = _HEADER.pack(_HEADER.size + len(body), message, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(header + body)
        answer = sock.recv(65536)
    kind = _HEADER.unpack_from(answer)[1]
    number = -struct.unpack_from("=i", answer, _HEADER.size)[0] if kind == NLMSG_ERROR else 0
    if number:
        raise OSError(number, f"{what}: {os.strerror(number)}")
