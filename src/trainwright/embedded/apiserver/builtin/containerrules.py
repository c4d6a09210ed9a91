"""Rules for one container: names, image, ports, environment, mounts, resources, security, probes and hooks."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.builtin.downwardapi import VARIABLE_FIELDS, field_reference, resource_reference
from trainwright.embedded.apiserver.builtin.mountrules import validate_mounts
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import config_key_faults, dns1123_label_faults, dns1123_subdomain_faults, label_key_faults
from trainwright.schema.quantity import QuantityError, parse_quantity

RANGE_PORT = "must be between 1 and 65535, inclusive"
RANGE_ID = "must be between 0 and 2147483647, inclusive"
AT_LEAST_ZERO = "must be greater than or equal to 0"
SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})


def validate_container(container: Json, at: str, volumes: dict[str, Json], *, init: bool = False) -> list[FieldError]:
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
    found += _environment_from(container.get("envFrom") or [], f"{at}.envFrom")
    found += validate_mounts(container, f"{at}.volumeMounts", volumes)
    for index, device in enumerate(container.get("volumeDevices") or ()):
        if device.get("name", "") not in volumes:
            found.append(field.not_found(f"{at}.volumeDevices[{index}].name", device.get("name", "")))
    found += _choices(container, at)
    found += validate_resources(container.get("resources") or {}, f"{at}.resources")
    found += validate_ids(container.get("securityContext") or {}, f"{at}.securityContext")
    sidecar = container.get("restartPolicy") == "Always"
    for probe in PROBES:
        if container.get(probe) is None:
            continue
        if init and not sidecar:
            text = "may not be set for init containers without restartPolicy=Always"
            found.append(field.forbidden(f"{at}.{probe}", text))
        else:
            found += _probe(container[probe], f"{at}.{probe}", single=probe != "readinessProbe")
    for hook, action in (container.get("lifecycle") or {}).items():
        if isinstance(action, dict):
            found += _handler(action, f"{at}.lifecycle.{hook}", ("exec", "httpGet", "tcpSocket", "sleep"))
    return found


def _choices(container: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    policy = container.get("imagePullPolicy", "")
    if policy not in ("Always", "IfNotPresent", "Never"):
        found.append(field.not_supported(f"{at}.imagePullPolicy", policy, ["Always", "IfNotPresent", "Never"]))
    message = container.get("terminationMessagePolicy", "")
    if message not in ("File", "FallbackToLogsOnError"):
        choices = ["File", "FallbackToLogsOnError"]
        found.append(field.not_supported(f"{at}.terminationMessagePolicy", message, choices))
    return found


def _ports(ports: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{at}[{index}]"
        name = port.get("name", "")
        if name:
            faults = port_name_faults(name)
            found += [field.invalid(f"{where}.name", name, text) for text in faults]
            if not faults:
                if name in names:
                    found.append(field.duplicate(f"{where}.name", name))
                names.add(name)
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


def port_name_faults(name: str) -> list[str]:
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


def _port_reference(port: Any, at: str) -> list[FieldError]:
    if isinstance(port, str):
        return [field.invalid(at, port, text) for text in port_name_faults(port)]
    if not isinstance(port, int) or not 1 <= port <= 65535:
        return [field.invalid(at, port if port is not None else 0, RANGE_PORT)]
    return []


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
        if variable.get("valueFrom") is not None:
            found += _source(variable, f"{where}.valueFrom")
    return found


def _source(variable: Json, at: str) -> list[FieldError]:
    source = variable["valueFrom"]
    kinds = [kind for kind in SOURCES if source.get(kind) is not None]
    found: list[FieldError] = []
    for kind in kinds:
        found += _reference(source[kind], kind, f"{at}.{kind}")
    if not kinds:
        names = ", ".join(f"`{kind}`" for kind in SOURCES[:-1])
        return [field.invalid(at, "", f"must specify one of: {names} or `{SOURCES[-1]}`")]
    if variable.get("value"):
        found.append(field.invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(kinds) > 1:
        found.append(field.invalid(at, "", "may not have more than one field specified at a time"))
    return found


def _reference(reference: Json, kind: str, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    if kind == "fieldRef":
        found += field_reference(reference, at, VARIABLE_FIELDS)
    elif kind == "resourceFieldRef":
        found += resource_reference(reference, at, volume=False)
    elif kind in ("configMapKeyRef", "secretKeyRef"):
        name, key = reference.get("name", ""), reference.get("key", "")
        found += [field.invalid(f"{at}.name", name, text) for text in dns1123_subdomain_faults(name)]
        if not key:
            found.append(field.required(f"{at}.key"))
        else:
            found += [field.invalid(f"{at}.key", key, text) for text in config_key_faults(key)]
    return found


def _environment_from(sources: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, source in enumerate(sources):
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            if not source[kind].get("name"):
                found.append(field.required(f"{at}[{index}].{kind}.name"))
        if not kinds:
            found.append(field.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            found.append(field.invalid(at, "", "may not have more than one field specified at a time"))
    return found


def validate_resources(resources: Json, at: str) -> list[FieldError]:
    found: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            found += _amount(name, amount, f"{at}.{group}[{name}]")
    for name, amount in requests.items():
        if name not in limits:
            if "/" in name and name not in STANDARD:
                found.append(field.required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
            continue
        wanted, limit = parse_quantity(amount), parse_quantity(limits[name])
        if "/" in name and wanted != limit:
            found.append(field.invalid(f"{at}.requests", amount, f"must be equal to {name} limit of {limits[name]}"))
        elif limit < wanted:
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(field.invalid(f"{at}.requests", amount, text))
    named = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in named) and not {"cpu", "memory"} & named:
        found.append(field.forbidden(at, "HugePages require cpu or memory"))
    return found


def _amount(name: str, amount: Any, at: str) -> list[FieldError]:
    found: list[FieldError] = [field.invalid(at, name, text) for text in label_key_faults(name)]
    if "/" not in name and name not in STANDARD and not name.startswith("hugepages-"):
        found.append(field.invalid(at, name, "must be a standard resource type or fully qualified"))
        found.append(field.invalid(at, name, "must be a standard resource for containers"))
    try:
        quantity = parse_quantity(amount)
    except QuantityError as error:
        return [*found, field.invalid(at, amount, str(error))]
    if quantity < parse_quantity("0"):
        found.append(field.invalid(at, str(amount), AT_LEAST_ZERO))
    elif "/" in name and not quantity.is_integer:
        found.append(field.invalid(at, str(amount), "must be an integer"))
    return found


def validate_ids(context: Json, at: str) -> list[FieldError]:
    return [
        field.invalid(f"{at}.{name}", context[name], RANGE_ID)
        for name in ("runAsUser", "runAsGroup", "fsGroup")
        if context.get(name) is not None and not 0 <= context[name] <= 2**31 - 1
    ]


def _handler(action: Json, at: str, kinds: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    given = [kind for kind in kinds if action.get(kind) is not None]
    for index, kind in enumerate(given):
        if index:
            found.append(field.forbidden(f"{at}.{kind}", "may not specify more than 1 handler type"))
            continue
        body = action[kind]
        if kind == "exec" and not body.get("command"):
            found.append(field.required(f"{at}.exec.command"))
        elif kind == "httpGet":
            if not body.get("path"):
                found.append(field.required(f"{at}.httpGet.path"))
            found += _port_reference(body.get("port"), f"{at}.httpGet.port")
            if body.get("scheme") not in ("HTTP", "HTTPS"):
                found.append(field.not_supported(f"{at}.httpGet.scheme", body.get("scheme", ""), ["HTTP", "HTTPS"]))
        elif kind == "tcpSocket":
            found += _port_reference(body.get("port"), f"{at}.tcpSocket.port")
        elif kind == "grpc" and not 1 <= body.get("port", 0) <= 65535:
            found.append(field.invalid(f"{at}.grpc.port", body.get("port", 0), RANGE_PORT))
    if not given:
        found.append(field.required(at, "must specify a handler type"))
    return found


def _probe(probe: Json, at: str, *, single: bool) -> list[FieldError]:
    found = _handler(probe, at, ("exec", "httpGet", "tcpSocket", "grpc"))
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if probe.get(name, 0) < 0:
            found.append(field.invalid(f"{at}.{name}", probe[name], AT_LEAST_ZERO))
    if single and probe.get("successThreshold", 1) != 1:
        found.append(field.invalid(f"{at}.successThreshold", probe["successThreshold"], "must be 1"))
    return found
