"""Rules for a pod's spec: its parts, and how and where it may run.

They are those of kube-apiserver, without the ones for windows, seccomp and pod affinity, which are not checked here.
"""

from __future__ import annotations

import ipaddress

from trainwright.embedded.apiserver.builtin.containerrules import validate_container, validate_ids
from trainwright.embedded.apiserver.builtin.volumerules import validate_volumes
from trainwright.embedded.apiserver.metadata import label_faults
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_label_faults, dns1123_subdomain_faults, label_key_faults


def validate_pod_spec(spec: Json, at: str, *, is_pod: bool) -> list[FieldError]:
    found: list[FieldError] = []
    # The service account of a template may be filled in when the pod is created.
    account = not is_pod or bool(spec.get("serviceAccountName"))
    volumes = validate_volumes(spec.get("volumes") or [], f"{at}.volumes", found, account=account)
    containers = spec.get("containers") or []
    if not containers:
        found.append(field.required(f"{at}.containers"))
    names: set[str] = set()
    for group, members in (("containers", containers), ("initContainers", spec.get("initContainers") or [])):
        init = group == "initContainers"
        for index, container in enumerate(members):
            where = f"{at}.{group}[{index}]"
            found += validate_container(container, where, volumes, init=init)
            if container.get("name", "") in names:
                found.append(field.duplicate(f"{where}.name", container.get("name", "")))
            names.add(container.get("name", ""))
    if is_pod and spec.get("ephemeralContainers"):
        found.append(field.forbidden(f"{at}.ephemeralContainers", "cannot be set on create"))
    if spec.get("hostNetwork"):
        found += _host_ports(containers, at, is_pod=is_pod)
    found += _policies(spec, at)
    found += _names(spec, at)
    found += _placement(spec, at)
    found += _security(spec, at)
    return found


def _host_ports(containers: list[Json], at: str, *, is_pod: bool) -> list[FieldError]:
    """On the host's network a port must equal its host port. A template may omit it: the pod's defaults set it."""
    found: list[FieldError] = []
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                where = f"{at}.containers[{number}].ports[{index}].hostPort"
                found.append(field.invalid(where, host, "must match `containerPort` when `hostNetwork` is true"))
    return found


def _policies(spec: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    restart = spec.get("restartPolicy", "")
    if not restart:
        found.append(field.required(f"{at}.restartPolicy"))
    elif restart not in ("Always", "OnFailure", "Never"):
        found.append(field.not_supported(f"{at}.restartPolicy", restart, ["Always", "OnFailure", "Never"]))
    dns = spec.get("dnsPolicy", "")
    if dns not in ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"):
        choices = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]
        found.append(field.not_supported(f"{at}.dnsPolicy", dns, choices))
    elif dns == "None" and not spec.get("dnsConfig"):
        found.append(field.required(f"{at}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        found.append(field.invalid(f"{at}.activeDeadlineSeconds", deadline, text))
    system = (spec.get("os") or {}).get("name")
    if spec.get("os") is not None and system not in ("linux", "windows"):
        found.append(field.not_supported(f"{at}.os", system or "", ["linux", "windows"]))
    return found


def _names(spec: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"):
        if spec.get(name):
            found += [field.invalid(f"{at}.{name}", spec[name], text) for text in dns1123_subdomain_faults(spec[name])]
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            found += [field.invalid(f"{at}.{name}", spec[name], text) for text in dns1123_label_faults(spec[name])]
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        where = f"{at}.hostAliases[{index}]"
        try:
            ipaddress.ip_address(alias.get("ip", ""))
        except ValueError:
            text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            found.append(field.invalid(f"{where}.ip", alias.get("ip", ""), text))
        for host in alias.get("hostnames") or ():
            found += [field.invalid(f"{where}.hostnames", host, text) for text in dns1123_subdomain_faults(host)]
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        where = f"{at}.readinessGates[{index}].conditionType"
        found += [field.invalid(where, kind, text) for text in label_key_faults(kind)]
    return found


def _placement(spec: Json, at: str) -> list[FieldError]:
    found = label_faults(spec.get("nodeSelector") or {}, f"{at}.nodeSelector")
    found += validate_tolerations(spec, at)
    gates: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        where, name = f"{at}.schedulingGates[{index}]", gate.get("name", "")
        found += [field.invalid(where, name, text) for text in label_key_faults(name)]
        if name in gates:
            found.append(field.duplicate(where, name))
        gates.add(name)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is not None and not required.get("nodeSelectorTerms"):
        where = f"{at}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        found.append(field.required(where, "must have at least one node selector term"))
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        found += _spread(constraint, f"{at}.topologySpreadConstraints[{index}]")
    return found


def _spread(constraint: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    skew, when = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
    if skew <= 0:
        found.append(field.invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
    if not constraint.get("topologyKey"):
        found.append(field.required(f"{at}.topologyKey", "can not be empty"))
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        found.append(field.not_supported(f"{at}.whenUnsatisfiable", when, ["DoNotSchedule", "ScheduleAnyway"]))
    return found


def _security(spec: Json, at: str) -> list[FieldError]:
    found = validate_ids(spec.get("securityContext") or {}, f"{at}.securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(field.invalid(f"{at}.securityContext.shareProcessNamespace", True, text))
    return found


def validate_tolerations(spec: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, toleration in enumerate(spec.get("tolerations") or []):
        found += _toleration(toleration, f"{at}.tolerations[{index}]")
    return found


def _toleration(toleration: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(field.invalid(f"{at}.operator", operator, text))
    elif toleration.get("key"):
        found += [field.invalid(f"{at}.key", toleration["key"], text) for text in label_key_faults(toleration["key"])]
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(field.invalid(f"{at}.effect", effect, text))
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        found.append(field.invalid(f"{at}.operator", toleration["value"], text))
    elif operator not in ("Equal", "Exists", ""):
        found.append(field.not_supported(f"{at}.operator", operator, ["Equal", "Exists"]))
    if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        choices = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
        found.append(field.not_supported(f"{at}.effect", effect, choices))
    return found
