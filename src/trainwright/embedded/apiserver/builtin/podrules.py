"""The rules for a pod's spec that users meet: names, images, ports, resources, volumes and their mounts, probes,
policies.

Written after kube-apiserver's validation; what it judges beyond this (windows, security contexts, topology) is passed
through unjudged.
"""

from __future__ import annotations

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.names import dns1123_label_faults, dns1123_subdomain_faults
from ....schema.quantity import QuantityError, parse_quantity
from ..errors import Json
from ..metadata import label_faults

RANGE_PORT = "must be between 1 and 65535, inclusive"


def validate_pod_spec(spec: Json, at: str, *, is_pod: bool) -> list[FieldError]:
    found: list[FieldError] = []
    volumes = _volumes(spec.get("volumes") or [], f"{at}.volumes", found)
    containers = spec.get("containers") or []
    if not containers:
        found.append(field.required(f"{at}.containers"))
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{at}.containers[{index}]"
        found += _container(container, where, volumes)
        _unique(container.get("name", ""), f"{where}.name", names, found)
    for index, container in enumerate(spec.get("initContainers") or []):
        where = f"{at}.initContainers[{index}]"
        found += _container(container, where, volumes, init=True)
        _unique(container.get("name", ""), f"{where}.name", names, found)
    found += _policies(spec, at)
    found += label_faults(spec.get("nodeSelector") or {}, f"{at}.nodeSelector")
    for name, checker in (("nodeName", dns1123_subdomain_faults), ("serviceAccountName", dns1123_subdomain_faults)):
        if spec.get(name):
            found += [field.invalid(f"{at}.{name}", spec[name], text) for text in checker(spec[name])]
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            found += [field.invalid(f"{at}.{name}", spec[name], text) for text in dns1123_label_faults(spec[name])]
    for index, toleration in enumerate(spec.get("tolerations") or []):
        found += _toleration(toleration, f"{at}.tolerations[{index}]")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        found.append(
            field.invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    return found


def _unique(name: str, at: str, seen: set[str], found: list[FieldError]) -> None:
    if name in seen:
        found.append(field.duplicate(at, name))
    seen.add(name)


def _policies(spec: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    restart = spec.get("restartPolicy", "")
    if not restart:
        found.append(field.required(f"{at}.restartPolicy"))
    elif restart not in ("Always", "OnFailure", "Never"):
        found.append(field.not_supported(f"{at}.restartPolicy", restart, ["Always", "OnFailure", "Never"]))
    dns = spec.get("dnsPolicy", "")
    if dns not in ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"):
        choices = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
        found.append(field.not_supported(f"{at}.dnsPolicy", dns, choices))
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        found.append(field.invalid(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
    return found


# ---------------------------------------------------------------------------------------------------------- containers


def _container(container: Json, at: str, volumes: dict[str, Json], *, init: bool = False) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        found.append(field.required(f"{at}.name"))
    else:
        found += [field.invalid(f"{at}.name", name, text) for text in dns1123_label_faults(name)]
    image = container.get("image", "")
    if not image:
        found.append(field.required(f"{at}.image"))
    elif image.strip() != image:
        found.append(field.invalid(f"{at}.image", image, "must not have leading or trailing whitespace"))
    found += _ports(container.get("ports") or [], f"{at}.ports")
    found += _environment(container.get("env") or [], f"{at}.env")
    found += _mounts(container.get("volumeMounts") or [], f"{at}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy", "")
    if policy not in ("Always", "IfNotPresent", "Never"):
        found.append(field.not_supported(f"{at}.imagePullPolicy", policy, ["Always", "IfNotPresent", "Never"]))
    message = container.get("terminationMessagePolicy", "")
    if message not in ("File", "FallbackToLogsOnError"):
        choices = ["FallbackToLogsOnError", "File"]
        found.append(field.not_supported(f"{at}.terminationMessagePolicy", message, choices))
    found += _resources(container.get("resources") or {}, f"{at}.resources")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe(container[probe], f"{at}.{probe}", single=probe != "readinessProbe")
    return found


def _ports(ports: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{at}[{index}]"
        name = port.get("name", "")
        if name:
            faults = _port_name(name)
            found += [field.invalid(f"{where}.name", name, text) for text in faults]
            if not faults:
                _unique(name, f"{where}.name", names, found)
        number = port.get("containerPort", 0)
        if number == 0:
            found.append(field.required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(field.invalid(f"{where}.containerPort", number, RANGE_PORT))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            found.append(field.invalid(f"{where}.hostPort", host, RANGE_PORT))
        protocol = port.get("protocol", "")
        if not protocol:
            found.append(field.required(f"{where}.protocol"))
        elif protocol not in ("TCP", "UDP", "SCTP"):
            found.append(field.not_supported(f"{where}.protocol", protocol, ["SCTP", "TCP", "UDP"]))
    return found


def _port_name(name: str) -> list[str]:
    found: list[str] = []
    if len(name) > 15:
        found.append("must be no more than 15 characters")
    if not all(char.isdigit() or "a" <= char <= "z" or char == "-" for char in name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def _environment(variables: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, variable in enumerate(variables):
        where = f"{at}[{index}]"
        name = variable.get("name", "")
        if not name:
            found.append(field.required(f"{where}.name"))
        elif "=" in name or not all(32 <= ord(char) < 127 for char in name):
            text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            found.append(field.invalid(f"{where}.name", name, text))
        source = variable.get("valueFrom")
        if source is not None:
            kinds = [
                key
                for key in ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
                if key in source
            ]
            if not kinds:
                text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`"
                text += " or `fileKeyRef`"
                found.append(field.invalid(f"{where}.valueFrom", "", text))
            elif variable.get("value"):
                found.append(field.invalid(f"{where}.valueFrom", "", "may not be specified when `value` is not empty"))
            elif len(kinds) > 1:
                found.append(
                    field.invalid(f"{where}.valueFrom", "", "may not have more than one field specified at a time")
                )
    return found


def _mounts(mounts: list[Json], at: str, volumes: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{at}[{index}]"
        name = mount.get("name", "")
        if not name:
            found.append(field.required(f"{where}.name"))
        if name not in volumes:
            found.append(field.not_found(f"{where}.name", name))
        path = mount.get("mountPath", "")
        if not path:
            found.append(field.required(f"{where}.mountPath"))
        if path in paths:
            found.append(field.invalid(f"{where}.mountPath", path, "must be unique"))
        paths.add(path)
    return found


def _resources(resources: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            where = f"{at}.{group}"
            if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
                text = "must be a standard resource type or fully qualified"
                found.append(field.invalid(where, name, text))
                found.append(field.invalid(where, name, "must be a standard resource for containers"))
            try:
                if parse_quantity(amount) < parse_quantity("0"):
                    text = "must be greater than or equal to 0"
                    found.append(field.invalid(f"{where}[{name}]", amount, text))
            except QuantityError as error:
                found.append(field.invalid(f"{where}[{name}]", amount, str(error)))
    for name, amount in requests.items():
        if name in limits and parse_quantity(limits[name]) < parse_quantity(amount):
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(field.invalid(f"{at}.requests", amount, text))
        elif "/" in name and name in limits and parse_quantity(limits[name]) != parse_quantity(amount):
            found.append(field.invalid(f"{at}.requests", amount, f"must be equal to {name} limit of {limits[name]}"))
        elif "/" in name and name not in limits:
            found.append(field.required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
    return found


_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})


def _probe(probe: Json, at: str, *, single: bool) -> list[FieldError]:
    found: list[FieldError] = []
    handlers = [name for name in ("exec", "httpGet", "tcpSocket", "grpc") if probe.get(name) is not None]
    if not handlers:
        found.append(field.required(at, "must specify a handler type"))
    for extra in handlers[1:]:
        found.append(field.forbidden(f"{at}.{extra}", "may not specify more than 1 handler type"))
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if probe.get(name, 0) < 0:
            found.append(field.invalid(f"{at}.{name}", probe[name], "must be greater than or equal to 0"))
    if single and probe.get("successThreshold", 1) != 1:
        found.append(field.invalid(f"{at}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


# ---------------------------------------------------------------------------------------------------------- volumes


def _volumes(volumes: list[Json], at: str, found: list[FieldError]) -> dict[str, Json]:
    known: dict[str, Json] = {}
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        name = volume.get("name", "")
        if not name:
            found.append(field.required(f"{where}.name"))
        else:
            found += [field.invalid(f"{where}.name", name, text) for text in dns1123_label_faults(name)]
        if name in known:
            found.append(field.duplicate(f"{where}.name", name))
        known[name] = volume
        sources = [key for key in volume if key != "name"]
        for extra in sources[1:]:
            found.append(field.forbidden(f"{where}.{extra}", "may not specify more than 1 volume type"))
        if not sources:
            found.append(field.required(where, "must specify a volume type"))
        found += _source(volume, where)
    return known


def _source(volume: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    if volume.get("secret") is not None and not volume["secret"].get("secretName"):
        found.append(field.required(f"{at}.secret.secretName"))
    if volume.get("configMap") is not None and not volume["configMap"].get("name"):
        found.append(field.required(f"{at}.configMap.name"))
    if volume.get("hostPath") is not None and not volume["hostPath"].get("path"):
        found.append(field.required(f"{at}.hostPath.path"))
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and not claim.get("claimName"):
        found.append(field.required(f"{at}.persistentVolumeClaim.claimName"))
    return found


def _toleration(toleration: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not toleration.get("key") and toleration.get("operator") != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(field.invalid(f"{at}.operator", toleration.get("operator", ""), text))
    operator = toleration.get("operator", "")
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        found.append(field.invalid(f"{at}.operator", toleration, text))
    elif operator not in ("Equal", "Exists", ""):
        found.append(field.not_supported(f"{at}.operator", operator, ["Equal", "Exists"]))
    effect = toleration.get("effect", "")
    if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        choices = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
        found.append(field.not_supported(f"{at}.effect", effect, choices))
    return found
