"""Rules for services: ports, fields that depend on the type, traffic policies, status."""

from __future__ import annotations

import ipaddress

from trainwright.embedded.apiserver.builtin.containerrules import port_name_faults
from trainwright.embedded.apiserver.builtin.serviceaddresses import NO_ADDRESS, address_faults, is_address
from trainwright.embedded.apiserver.metadata import label_faults
from trainwright.schema import errors as field
from trainwright.schema.errors import ErrorType, FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults, dns1123_subdomain_faults, label_key_faults

PORT_RANGE = "must be between 1 and 65535, inclusive"
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"


def validate_service(obj: Json, old: Json | None = None) -> list[FieldError]:
    spec = obj["spec"]
    kind, ports = spec.get("type", ""), spec.get("ports") or []
    found: list[FieldError] = []
    if not ports and not is_headless(spec) and kind != "ExternalName":
        found.append(field.required("spec.ports"))
    if kind not in TYPES:
        found.append(field.not_supported("spec.type", kind, TYPES))
    if kind == "ExternalName":
        found += _external_name(spec)
    found += _ports(ports, kind)
    found += label_faults(spec.get("selector") or {}, "spec.selector")
    found += _affinity(spec)
    found += address_faults(spec, None if old is None else old["spec"])
    found += _external_addresses(spec, (old or {"spec": {}})["spec"])
    return found + _balancer(spec) + _traffic(spec)


def is_headless(spec: Json) -> bool:
    return bool(spec.get("clusterIP") == "None")


def externally_accessible(spec: Json) -> bool:
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        return True
    return spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))


def _external_name(spec: Json) -> list[FieldError]:
    found = [
        field.forbidden(f"spec.{name}", "may not be set for ExternalName services")
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(name)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*found, field.required("spec.externalName")]
    return found + [field.invalid("spec.externalName", name, text) for text in dns1123_subdomain_faults(name)]


def _ports(ports: list[Json], kind: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    seen: set[tuple[object, object]] = set()
    node_ports: set[tuple[object, object]] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        found += _port(port, at, len(ports) > 1, names)
        if port.get("nodePort"):
            if kind == "ClusterIP":
                found.append(field.forbidden(f"{at}.nodePort", "may not be used when `type` is 'ClusterIP'"))
            taken = (port["nodePort"], port.get("protocol"))
            if taken in node_ports:
                found.append(field.duplicate(f"{at}.nodePort", port["nodePort"]))
            node_ports.add(taken)
        known = (port.get("port"), port.get("protocol"))
        if known in seen:
            shown = f'"Protocol":"{known[1]}","AppProtocol":null,"Port":{known[0]},"TargetPort":0,"NodePort":0'
            found.append(FieldError(ErrorType.DUPLICATE, at, field.OMITTED, f'{{"Name":"",{shown}}}'))
        seen.add(known)
    return found


def _port(port: Json, at: str, named: bool, names: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name = port.get("name", "")
    if not name and named:
        found.append(field.required(f"{at}.name"))
    elif name:
        found += [field.invalid(f"{at}.name", name, text) for text in dns1123_label_faults(name)]
        if name in names:
            found.append(field.duplicate(f"{at}.name", name))
        names.add(name)
    number = port.get("port", 0)
    if not 1 <= number <= 65535:
        found.append(field.invalid(f"{at}.port", number, PORT_RANGE))
    protocol = port.get("protocol", "")
    if protocol not in ("TCP", "UDP", "SCTP"):
        found.append(field.not_supported(f"{at}.protocol", protocol, ["SCTP", "TCP", "UDP"]))
    target = port.get("targetPort")
    if isinstance(target, str):
        found += [field.invalid(f"{at}.targetPort", target, text) for text in port_name_faults(target)]
    elif isinstance(target, int) and not 1 <= target <= 65535:
        found.append(field.invalid(f"{at}.targetPort", target, PORT_RANGE))
    spoken = port.get("appProtocol")
    if spoken is not None:
        found += [field.invalid(f"{at}.appProtocol", spoken, text) for text in label_key_faults(spoken)]
    return found


def _affinity(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if affinity not in ("None", "ClientIP"):
        return [field.not_supported("spec.sessionAffinity", affinity, ["ClientIP", "None"])]
    if affinity == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= 86400:
            at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            return [field.invalid(at, seconds, "must be greater than 0 and less than 86400")]
    return []


def _external_addresses(spec: Json, before: Json) -> list[FieldError]:
    found: list[FieldError] = []
    for index, text in enumerate(spec.get("externalIPs") or ()):
        at = f"spec.externalIPs[{index}]"
        if not is_address(text):
            if text not in (before.get("externalIPs") or ()):
                found.append(field.invalid(at, text, NO_ADDRESS))
            continue
        address = ipaddress.ip_address(text)
        if address.is_unspecified:
            found.append(field.invalid(at, text, f"may not be unspecified ({text})"))
        if address.is_loopback:
            found.append(field.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
        if address.is_link_local:
            words = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
            found.append(field.invalid(at, text, words))
        if address.is_multicast and (address.version == 6 or text.startswith("224.0.0.")):
            words = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
            found.append(field.invalid(at, text, words))
    return found


def _balancer(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    balanced = spec.get("type") == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or []
    if ranges and not balanced:
        found.append(field.forbidden("spec.LoadBalancerSourceRanges", BALANCER_ONLY))
    for index, text in enumerate(ranges):
        at = f"spec.LoadBalancerSourceRanges[{index}]"
        try:
            network = ipaddress.ip_interface(text.strip())
        except ValueError:
            words = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            found.append(field.invalid(at, text, words))
            continue
        if network.ip != network.network.network_address:
            found.append(field.invalid(at, text, "must not have bits set beyond the prefix length"))
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        found.append(field.forbidden("spec.allocateLoadBalancerNodePorts", BALANCER_ONLY))
    chosen = spec.get("loadBalancerClass")
    if chosen is not None and not balanced:
        found.append(field.forbidden("spec.loadBalancerClass", BALANCER_ONLY))
    elif chosen is not None:
        found += [field.invalid("spec.loadBalancerClass", chosen, text) for text in label_key_faults(chosen)]
    return found


def _traffic(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    outer, inner = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if outer and not externally_accessible(spec):
        text = "may only be set for externally-accessible services"
        found.append(field.invalid("spec.externalTrafficPolicy", outer, text))
    elif outer and outer not in ("Cluster", "Local"):
        found.append(field.not_supported("spec.externalTrafficPolicy", outer, ["Cluster", "Local"]))
    if inner is not None and inner not in ("Cluster", "Local"):
        found.append(field.not_supported("spec.internalTrafficPolicy", inner, ["Cluster", "Local"]))
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in DISTRIBUTIONS:
        found.append(field.not_supported("spec.trafficDistribution", spread, DISTRIBUTIONS))
    return found


def status_faults(obj: Json, old: Json) -> list[FieldError]:
    ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if ingress and obj["spec"].get("type") != "LoadBalancer":
        text = "may only be used when `spec.type` is 'LoadBalancer'"
        return [field.forbidden("status.loadBalancer.ingress", text)]
    before = ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    known = {entry.get("ip") for entry in before}
    found: list[FieldError] = []
    for index, entry in enumerate(ingress):
        at, address, mode, host = f"status.loadBalancer.ingress[{index}]", *map(entry.get, ("ip", "ipMode", "hostname"))
        if address and address not in known and not is_address(address):
            found.append(field.invalid(f"{at}.ip", address, NO_ADDRESS))
        if mode is not None and not address:
            found.append(field.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
        elif mode not in (None, "Proxy", "VIP"):
            found.append(field.not_supported(f"{at}.ipMode", mode, ["Proxy", "VIP"]))
        if host:
            found += [field.invalid(f"{at}.hostname", host, text) for text in dns1123_subdomain_faults(host)]
            if is_address(host):
                found.append(field.invalid(f"{at}.hostname", host, "must be a DNS name, not an IP address"))
    return found
