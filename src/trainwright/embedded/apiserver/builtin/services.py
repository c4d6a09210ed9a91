"""Services: defaults, and changes of their type.

There is no proxy: services get an address because clients expect one, and names resolve through the node.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import SERVICE_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import KindWithStatus
from trainwright.embedded.apiserver.builtin.serviceaddresses import allocate
from trainwright.embedded.apiserver.builtin.servicerules import (
    externally_accessible,
    is_headless,
    status_faults,
    validate_service,
)
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults


class Services(KindWithStatus):
    plural, kind = "services", "Service"
    short_names = ("svc",)
    categories = ("all",)
    columns = SERVICE_COLUMNS
    metadata_repeats = 1
    returns_deleted = True
    create_on_update = True

    def name_faults(self, name: str) -> list[str]:
        return dns1123_label_faults(name)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        affinity = spec.setdefault("sessionAffinity", "None")
        if affinity == "None":
            spec.pop("sessionAffinityConfig", None)
        elif affinity == "ClientIP":
            config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            if config.get("timeoutSeconds") is None:
                spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
        spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        balancer = obj.setdefault("status", {}).setdefault("loadBalancer", {})
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for entry in balancer.get("ingress") or ():
                if entry.get("ip"):
                    entry.setdefault("ipMode", "VIP")

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"loadBalancer": {}}
        allocate(obj, None)

    def prepare_update(self, obj: Json, old: Json) -> None:
        super().prepare_update(obj, old)
        spec, before = obj["spec"], old["spec"]
        _drop_fields_of_former_type(spec, before)
        if spec.get("type") == "ExternalName":
            spec.pop("internalTrafficPolicy", None)
        if spec.get("type") != "LoadBalancer":
            obj["status"] = {**obj["status"], "loadBalancer": {}}
        if "ExternalName" not in (spec.get("type"), before.get("type")):
            # Older clients do not know these fields, so fields that they leave out stay.
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(name) and before.get(name):
                    spec[name] = before[name]
        allocate(obj, old)

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_service(obj)

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        spec, before = obj["spec"], old["spec"]
        kinds = (spec.get("type"), before.get("type"))
        if before.get("clusterIP") and "ExternalName" not in kinds and not (is_headless(spec) and is_headless(before)):
            new, known = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
            if new[:1] != known[:1]:
                found.append(field.invalid("spec.clusterIPs[0]", new, "may not change once set"))
        if kinds == ("LoadBalancer", "LoadBalancer") and spec.get("loadBalancerClass") != before.get(
            "loadBalancerClass"
        ):
            text = "may not change once set"
            found.append(field.invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), text))
        return found + validate_service(obj, old)

    def validate_status_update(self, obj: Json, old: Json) -> list[FieldError]:
        return status_faults(obj, old)

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        spec = obj["spec"]
        found: list[str] = []
        kind, outer = spec.get("type"), spec.get("externalIPs")
        if is_headless(spec):
            if outer:
                found.append("spec.externalIPs is ignored for headless services")
            if spec.get("sessionAffinity") != "None":
                found.append("spec.SessionAffinity is ignored for headless services")
        elif outer and kind != "ExternalName":
            found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        if outer and kind == "ExternalName":
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
        if kind != "ExternalName" and spec.get("externalName"):
            found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
        if spec.get("trafficDistribution") == "PreferClose":
            found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
        return found

    def fields(self, obj: Json) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _drop_fields_of_former_type(spec: Json, before: Json) -> None:
    """Drop the fields of a service's former type, unless the client changed them too."""
    kind, former = spec.get("type"), before.get("type")
    if former != "ExternalName" and kind == "ExternalName":
        addresses = ("clusterIP", "clusterIPs")
        if all(spec.get(name) == before.get(name) for name in addresses):
            for name in addresses:
                spec.pop(name, None)
        for name in ("ipFamilies", "ipFamilyPolicy"):
            _drop_if_same(spec, before, name)
    exposed = ("NodePort", "LoadBalancer")
    if former in exposed and kind not in exposed:
        known = {port.get("nodePort") for port in before.get("ports") or ()}
        if all(port.get("nodePort") in {None, *known} for port in spec.get("ports") or ()):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if former == "LoadBalancer" and kind != "LoadBalancer":
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"):
            _drop_if_same(spec, before, name)
    if externally_accessible(before) and not externally_accessible(spec):
        _drop_if_same(spec, before, "externalTrafficPolicy")


def _drop_if_same(spec: Json, before: Json, name: str) -> None:
    if name in spec and spec[name] == before.get(name):
        del spec[name]
