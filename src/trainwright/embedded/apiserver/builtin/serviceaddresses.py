"""Addresses and node ports of services: what clients ask for, and what the server allocates.

The cluster has one IP family, IPv4, and no proxy: addresses are derived from the service's UID, out of a range that is
never routed. kube-apiserver allocates before it validates, so a refused allocation is the only fault in its answer.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator

from trainwright.embedded.apiserver import errors
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

RANGE = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS = range(30000, 32768)
FAMILIES = ("IPv4", "IPv6")
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
PORT_RANGE = "provided port is not in the valid range. The range of valid ports is 30000-32767"


def allocate(obj: Json, old: Json | None) -> None:
    """Fill in the addresses and ports that the client left open. Raises the 422 for those that cannot be allocated."""
    spec = obj["spec"]
    _agree(spec, (old or {"spec": {}})["spec"])
    if spec.get("type") != "ExternalName":
        _families(obj, None if old is None else old["spec"])
        _address(obj)
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        _node_ports(obj)


def _agree(spec: Json, before: Json) -> None:
    """Keep clusterIP equal to the first of clusterIPs: a client that changes one of them means both."""
    address, addresses = spec.get("clusterIP"), spec.get("clusterIPs")
    if not before:
        if address and not addresses:
            spec["clusterIPs"] = [address]
        return
    if before.get("clusterIPs") and not addresses and address == before.get("clusterIP"):
        spec["clusterIPs"] = before["clusterIPs"]
    if address != before.get("clusterIP") and addresses == before.get("clusterIPs"):
        if address:
            spec["clusterIPs"] = [address]
        else:
            spec.pop("clusterIPs", None)


def _families(obj: Json, before: Json | None) -> None:
    spec = obj["spec"]
    without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        if before is not None and before.get("ipFamilyPolicy"):
            spec["ipFamilyPolicy"] = before["ipFamilyPolicy"]
        else:
            spec["ipFamilyPolicy"] = "RequireDualStack" if without_selector else "SingleStack"
    faults = address_faults(spec, before)
    if not faults and spec["ipFamilyPolicy"] == "SingleStack" and len(spec.get("ipFamilies") or ()) == 2:
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
        faults.append(field.invalid("spec.ipFamilyPolicy", "SingleStack", text))
    _refuse(obj, faults)
    if without_selector:
        # Users make its endpoints, of either family.
        families = spec.setdefault("ipFamilies", ["IPv4"])
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            spec["ipFamilies"] = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
        return
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        faults.append(field.invalid("spec.ipFamilyPolicy", "RequireDualStack", text))
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family != "IPv4":
            faults.append(field.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    _refuse(obj, faults)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def address_faults(spec: Json, before: Json | None = None) -> list[FieldError]:
    """The faults of clusterIPs, ipFamilies and ipFamilyPolicy."""
    if spec.get("type") == "ExternalName":
        return []
    address, addresses = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    found = [*_first_address_faults(address, addresses), *_family_faults(spec)]
    if addresses[:1] == ["None"] and len(addresses) > 1:
        text = "'None' must be the first and only value"
        return [*found, field.invalid("spec.clusterIPs", addresses, text)]
    known = ("None", *((before or {}).get("clusterIPs") or ()))
    for index, text in enumerate(addresses):
        if not is_address(text) and text not in (known if index == 0 else known[1:]):
            found.append(field.invalid(f"spec.clusterIPs[{index}]", text, NO_ADDRESS))
    if len(addresses) > 2:
        found.append(field.invalid("spec.clusterIPs", addresses, "may only hold up to 2 values"))
    return found


def _first_address_faults(address: str, addresses: list[str]) -> Iterator[FieldError]:
    if address and not addresses:
        yield field.required("spec.clusterIPs")
    elif address and addresses[0] != address:
        yield field.invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    elif addresses and not address:
        yield field.invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")


def _family_faults(spec: Json) -> Iterator[FieldError]:
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    for index, family in enumerate(families):
        if family not in FAMILIES:
            yield field.not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES)
        if family in families[:index]:
            yield field.duplicate(f"spec.ipFamilies[{index}]", family)
    if policy is not None and policy not in POLICIES:
        yield field.not_supported("spec.ipFamilyPolicy", policy, POLICIES)


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _address(obj: Json) -> None:
    spec = obj["spec"]
    if not spec.get("clusterIP"):
        digest = hashlib.sha256(obj["metadata"].get("uid", "").encode()).digest()
        spec["clusterIP"] = f"10.{96 + digest[0] % 16}.{digest[1]}.{1 + digest[2] % 254}"
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec["clusterIP"] != "None" and ipaddress.ip_address(spec["clusterIP"]) not in RANGE:
        text = f"failed to allocate IP {spec['clusterIP']}: the provided network does not match the current range"
        _refuse(obj, [field.invalid("spec.clusterIPs", spec["clusterIPs"], text)])


def _node_ports(obj: Json) -> None:
    spec = obj["spec"]
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return
    for index, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort"):
            seed = f"{obj['metadata'].get('uid', '')}/{index}".encode()
            port["nodePort"] = NODE_PORTS[int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") % len(NODE_PORTS)]
        elif port["nodePort"] not in NODE_PORTS:
            _refuse(obj, [field.invalid(f"spec.ports[{index}].nodePort", port["nodePort"], PORT_RANGE)])


def _refuse(obj: Json, faults: list[FieldError]) -> None:
    if faults:
        raise errors.invalid("", "Service", obj["metadata"].get("name", ""), faults)
