"""Services: defaults, cluster IPs, ports.

There is no proxy behind them: an address is given because clients expect one, and names resolve through the node.
"""

from __future__ import annotations

import hashlib

from ....schema import errors as field
from ....schema.errors import ErrorType, FieldError
from ....schema.names import dns1123_label_faults
from ..errors import Json
from .containerrules import port_name_faults
from .strategy import StatusStrategy

PORT_RANGE = "must be between 1 and 65535, inclusive"


class Services(StatusStrategy):
    metadata_repeats = 1
    returns_deleted = True
    create_on_update = True

    def name_faults(self, name: str) -> list[str]:
        return dns1123_label_faults(name)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("sessionAffinity", "None")
        if spec["sessionAffinity"] == "ClientIP":
            config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
            config.setdefault("timeoutSeconds", 10800)
        spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if spec["type"] in ("NodePort", "LoadBalancer") and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"loadBalancer": {}}
        self._addresses(obj)

    @staticmethod
    def _addresses(obj: Json) -> None:
        spec = obj["spec"]
        if spec.get("type") == "ExternalName":
            return
        if not spec.get("clusterIP"):
            # A stable address out of 10.96.0.0/12, which is never routed here.
            digest = hashlib.sha256(obj["metadata"].get("uid", "").encode()).digest()
            spec["clusterIP"] = f"10.{96 + digest[0] % 16}.{digest[1]}.{1 + digest[2] % 254}"
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        if spec["clusterIP"] == "None" and not spec.get("selector"):
            # Headless and without a selector: its endpoints are made by hand, of either family.
            spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
            spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        spec, before = obj["spec"], old["spec"]
        if spec.get("type") == "ExternalName":
            return
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
        if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        self._addresses(obj)

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        found: list[FieldError] = []
        kind = spec.get("type", "")
        ports = spec.get("ports") or []
        headless = spec.get("clusterIP") == "None"
        if not ports and not headless and kind != "ExternalName":
            found.append(field.required("spec.ports"))
        if kind not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
            choices = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
            found.append(field.not_supported("spec.type", kind, choices))
        names: set[str] = set()
        seen: set[tuple[object, object]] = set()
        for index, port in enumerate(ports):
            found += self._port(port, f"spec.ports[{index}]", len(ports) > 1, names)
            known = (port.get("port"), port.get("protocol"))
            if known in seen:
                shown = f'"Protocol":"{known[1]}","AppProtocol":null,"Port":{known[0]},"TargetPort":0,"NodePort":0'
                shown = f'{{"Name":"",{shown}}}'
                found.append(FieldError(ErrorType.DUPLICATE, f"spec.ports[{index}]", field.OMITTED, shown))
            seen.add(known)
        affinity = spec.get("sessionAffinity", "")
        if affinity not in ("None", "ClientIP"):
            found.append(field.not_supported("spec.sessionAffinity", affinity, ["ClientIP", "None"]))
        if kind == "ExternalName" and not spec.get("externalName"):
            found.append(field.required("spec.externalName"))
        return found

    @staticmethod
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
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        spec, before = obj["spec"], old["spec"]
        if before.get("clusterIP") and "ExternalName" not in (spec.get("type"), before.get("type")):
            new, known = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
            if new[:1] != known[:1]:
                found.append(field.invalid("spec.clusterIPs[0]", new, "may not change once set"))
        return found + self.validate(obj)

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress")
        if ingress and obj["spec"].get("type") != "LoadBalancer":
            text = "may only be used when `spec.type` is 'LoadBalancer'"
            return [field.forbidden("status.loadBalancer.ingress", text)]
        return []

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        spec = obj["spec"]
        if spec.get("clusterIP") == "None" and spec.get("sessionAffinity") != "None":
            return ["spec.SessionAffinity is ignored for headless services"]
        return []

    def fields(self, obj: Json) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}

    def field_names(self) -> frozenset[str]:
        return frozenset({"spec.clusterIP", "spec.type"})
