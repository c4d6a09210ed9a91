"""The columns of built-in kinds, as `kubectl get` shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.embedded.apiserver.builtin.eventforms import to_core
from trainwright.embedded.apiserver.builtin.podcells import pod_ready, pod_restarts, pod_status
from trainwright.embedded.apiserver.http.age import age_of, human_duration, parse
from trainwright.embedded.apiserver.http.tables import AGE, NAME
from trainwright.embedded.apiserver.types import Column
from trainwright.schema.jsonobject import Json


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}


def _status(obj: Json) -> Json:
    return obj.get("status") or {}


def _col(name: str, cell: Callable[[Json], Any], type: str = "string", priority: int = 0) -> Column:
    return Column(name, type, lambda obj, now: cell(obj), priority=priority)


def _timed(name: str, cell: Callable[[Json, float], Any], priority: int = 0) -> Column:
    """A column with an age, which depends on the present time."""
    return Column(name, "string", cell, priority=priority)


def _or_none(value: Any) -> Any:
    return value or "<none>"


def _labels(labels: Json | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def _selector(selector: Json | None) -> str:
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        operator = term.get("operator")
        if operator in ("In", "NotIn"):
            parts.append(f"{term['key']} {operator.lower()} ({values})")
        else:
            parts.append(term["key"] if operator == "Exists" else f"!{term['key']}")
    return ",".join(parts) or "<none>"


NAMESPACE_COLUMNS = (NAME, _col("Status", lambda o: _status(o).get("phase", "")), AGE)
CONFIG_MAP_COLUMNS = (
    NAME,
    _col("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())),
    AGE,
)
SECRET_COLUMNS = (
    NAME,
    _col("Type", lambda o: o.get("type", "")),
    _col("Data", lambda o: len(o.get("data") or ())),
    AGE,
)
SERVICE_ACCOUNT_COLUMNS = (NAME, AGE)  # Kubernetes 1.36 no longer counts Secrets


def _first_ip(obj: Json) -> Any:
    ips = _status(obj).get("podIPs") or []
    return _or_none(ips[0].get("ip") if ips else _status(obj).get("podIP"))


def _gates(obj: Json) -> str:
    gates = _spec(obj).get("readinessGates") or []
    if not gates:
        return "<none>"
    true = {c["type"] for c in _status(obj).get("conditions") or () if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


POD_COLUMNS = (
    NAME,
    _col("Ready", pod_ready),
    _col("Status", pod_status),
    _timed("Restarts", pod_restarts),
    AGE,
    _col("IP", _first_ip, priority=1),
    _col("Node", lambda o: _or_none(_spec(o).get("nodeName")), priority=1),
    _col("Nominated Node", lambda o: _or_none(_status(o).get("nominatedNodeName")), priority=1),
    _col("Readiness Gates", _gates, priority=1),
)


def _external_ip(obj: Json) -> str:
    kind = _spec(obj).get("type")
    if kind == "ExternalName":
        return str(_spec(obj).get("externalName", ""))
    ips = _spec(obj).get("externalIPs") or []
    if kind == "LoadBalancer" and not ips:
        return "<pending>"
    return ",".join(ips) or "<none>"


def _service_ports(obj: Json) -> str:
    parts = []
    for port in _spec(obj).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        parts.append(f"{port.get('port')}{node}/{port.get('protocol')}")
    return ",".join(parts) or "<none>"


SERVICE_COLUMNS = (
    NAME,
    _col("Type", lambda o: _spec(o).get("type", "")),
    _col("Cluster-IP", lambda o: _spec(o).get("clusterIP") or "<none>"),
    _col("External-IP", _external_ip),
    _col("Port(s)", _service_ports),
    AGE,
    _col("Selector", lambda o: _labels(_spec(o).get("selector")), priority=1),
)


def _node_status(obj: Json) -> str:
    ready = [c for c in _status(obj).get("conditions") or () if c.get("type") == "Ready"]
    text = "Unknown" if not ready else ("Ready" if ready[0].get("status") == "True" else "NotReady")
    return text + (",SchedulingDisabled" if _spec(obj).get("unschedulable") else "")


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key[len(prefix) :] for key in obj["metadata"].get("labels") or () if key.startswith(prefix))
    return ",".join(roles) or "<none>"


def _address(kind: str) -> Any:
    def cell(obj: Json) -> str:
        for address in _status(obj).get("addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return "<none>"

    return cell


def _info(name: str) -> Any:
    return lambda obj: (_status(obj).get("nodeInfo") or {}).get(name) or "<unknown>"


NODE_COLUMNS = (
    NAME,
    _col("Status", _node_status),
    _col("Roles", _node_roles),
    AGE,
    _col("Version", lambda o: (_status(o).get("nodeInfo") or {}).get("kubeletVersion", "")),
    _col("Internal-IP", _address("InternalIP"), priority=1),
    _col("External-IP", _address("ExternalIP"), priority=1),
    _col("OS-Image", _info("osImage"), priority=1),
    _col("Kernel-Version", _info("kernelVersion"), priority=1),
    _col("Container-Runtime", _info("containerRuntimeVersion"), priority=1),
)


def _job_status(obj: Json) -> str:
    true = {c["type"] for c in _status(obj).get("conditions") or () if c.get("status") == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    if "FailureTarget" in true:
        return "FailureTarget"
    if "SuccessCriteriaMet" in true:
        return "SuccessCriteriaMet"
    return "Running"


def _completions(obj: Json) -> str:
    done = _status(obj).get("succeeded", 0)
    wanted = _spec(obj).get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = _spec(obj).get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(obj: Json, now: float) -> str:
    start = parse(_status(obj).get("startTime"))
    if start is None:
        return ""
    end = parse(_status(obj).get("completionTime"))
    if end is None:
        return human_duration(now - start.timestamp())
    return human_duration((end - start).total_seconds())


def _containers(obj: Json, member: str) -> str:
    template = (_spec(obj).get("template") or {}).get("spec") or {}
    return ",".join(str(c.get(member, "")) for c in template.get("containers") or ())


JOB_COLUMNS = (
    NAME,
    _col("Status", _job_status),
    _col("Completions", _completions),
    _timed("Duration", _job_duration),
    AGE,
    _col("Containers", lambda o: _containers(o, "name"), priority=1),
    _col("Images", lambda o: _containers(o, "image"), priority=1),
    _col("Selector", lambda o: _selector(_spec(o).get("selector")), priority=1),
)


def _last_seen(obj: Json, now: float) -> str:
    series = obj.get("series") or {}
    return age_of(series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime"), now)


def _first_seen(obj: Json, now: float) -> str:
    return age_of(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _involved(obj: Json) -> str:
    about = obj.get("involvedObject") or {}
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(obj: Json) -> str:
    source = obj.get("source") or {}
    parts = [
        source.get("component") or obj.get("reportingComponent", ""),
        source.get("host") or obj.get("reportingInstance", ""),
    ]
    return ", ".join(part for part in parts if part)


def _event_count(obj: Json) -> int:
    series = obj.get("series")
    return int(series.get("count", 0)) if series else int(obj.get("count") or 1)


EVENT_COLUMNS = (
    _timed("Last Seen", _last_seen),
    _col("Type", lambda o: o.get("type", "")),
    _col("Reason", lambda o: o.get("reason", "")),
    _col("Object", _involved),
    _col("Subobject", lambda o: (o.get("involvedObject") or {}).get("fieldPath", ""), priority=1),
    _col("Source", _event_source, priority=1),
    _col("Message", lambda o: str(o.get("message", "")).strip()),
    _timed("First Seen", _first_seen, priority=1),
    _col("Count", _event_count, priority=1),
    Column("Name", "string", NAME.cell, format="name", priority=1),
)


def _as_core(column: Column) -> Column:
    return Column(
        column.name,
        column.type,
        lambda obj, now: column.cell(to_core(obj), now),
        column.format,
        column.description,
        column.priority,
    )


EVENT_V1_COLUMNS = tuple(_as_core(column) for column in EVENT_COLUMNS)


def _controller(obj: Json) -> str:
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group = reference.get("apiVersion", "").rpartition("/")[0]
            kind = reference.get("kind", "").lower()
            return f"{kind}{'.' + group if group else ''}/{reference.get('name')}"
    return "<none>"


CONTROLLER_REVISION_COLUMNS = (
    NAME,
    _col("Controller", _controller),
    _col("Revision", lambda o: o.get("revision", 0)),
    AGE,
)
LEASE_COLUMNS = (NAME, _col("Holder", lambda o: _spec(o).get("holderIdentity", "")), AGE)
PRIORITY_CLASS_COLUMNS = (
    NAME,
    _col("Value", lambda o: o.get("value", 0), "integer"),
    _col("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
    AGE,
    _col("PreemptionPolicy", lambda o: o.get("preemptionPolicy", "")),
)
POD_GROUP_COLUMNS = (
    NAME,
    _col("Policy", lambda o: "Gang" if "gang" in ((o.get("spec") or {}).get("schedulingPolicy") or {}) else "Basic"),
    _col("Workload", lambda o: _pod_group_workload(o)),
    _col("Status", lambda o: _pod_group_status(o)),
    AGE,
)
RUNTIME_CLASS_COLUMNS = (NAME, _col("Handler", lambda o: o.get("handler", "")), AGE)
LIMIT_RANGE_COLUMNS = (NAME, _col("Created At", lambda o: o["metadata"].get("creationTimestamp"), "date"))
CUSTOM_RESOURCE_DEFINITION_COLUMNS = (
    NAME,
    _col("Created At", lambda o: o["metadata"].get("creationTimestamp"), "date"),
)
ROLE_COLUMNS = (NAME, _col("Created At", lambda o: o["metadata"].get("creationTimestamp"), "date"))


def _subjects(kind: str) -> Any:
    def cell(obj: Json) -> str:
        found = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace', '')}/{s.get('name')}" for s in found)
        return ", ".join(str(s.get("name")) for s in found)

    return cell


def _role(obj: Json) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


ROLE_BINDING_COLUMNS = (
    NAME,
    _col("Role", _role),
    AGE,
    _col("Users", _subjects("User"), priority=1),
    _col("Groups", _subjects("Group"), priority=1),
    _col("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)
WEBHOOK_CONFIGURATION_COLUMNS = (NAME, _col("Webhooks", lambda o: len(o.get("webhooks") or ())), AGE)


def _target(obj: Json) -> str:
    reference = _spec(obj).get("scaleTargetRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


def _metric_targets(obj: Json) -> str:
    """What each metric is, and what it should be."""
    measured = _status(obj).get("currentMetrics") or []
    shown = []
    for index, metric in enumerate(_spec(obj).get("metrics") or ()):
        resource = metric.get("resource") or {}
        target = resource.get("target") or {}
        now = ((measured[index] if index < len(measured) else {}).get("resource") or {}).get("current") or {}
        if "averageUtilization" in target:
            percent = now.get("averageUtilization")
            value = "<unknown>" if percent is None else f"{percent}%"
            shown.append(f"{resource.get('name')}: {value}/{target['averageUtilization']}%")
        elif "averageValue" in target:
            shown.append(f"{resource.get('name')}: {now.get('averageValue', '<unknown>')}/{target['averageValue']}")
        else:
            shown.append("<unknown>")
    return ", ".join(shown) or "<none>"


HORIZONTAL_POD_AUTOSCALER_COLUMNS = (
    NAME,
    _col("Reference", _target),
    _col("Targets", _metric_targets),
    _col("MinPods", lambda o: str(_spec(o).get("minReplicas", "<unset>"))),
    _col("MaxPods", lambda o: _spec(o).get("maxReplicas", 0)),
    _col("Replicas", lambda o: _status(o).get("currentReplicas", 0)),
    AGE,
)

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
PERSISTENT_VOLUME_COLUMNS = (
    NAME,
    _col("Capacity", lambda o: (_spec(o).get("capacity") or {}).get("storage", "")),
    _col("Access Modes", lambda o: ",".join(_MODES.get(m, m) for m in _spec(o).get("accessModes") or ())),
    _col("Reclaim Policy", lambda o: _spec(o).get("persistentVolumeReclaimPolicy", "")),
    _col("Status", lambda o: "Terminating" if o["metadata"].get("deletionTimestamp") else _status(o).get("phase", "")),
    _col("Claim", lambda o: "/".join((_spec(o).get("claimRef") or {}).get(key, "") for key in ("namespace", "name"))),
    _col("StorageClass", lambda o: _spec(o).get("storageClassName", "")),
    _col("VolumeAttributesClass", lambda o: _spec(o).get("volumeAttributesClassName") or "<unset>"),
    _col("Reason", lambda o: _status(o).get("reason", "")),
    AGE,
    _col("VolumeMode", lambda o: _spec(o).get("volumeMode") or "<unset>", priority=1),
)
STORAGE_CLASS_COLUMNS = (
    NAME,
    _col("Provisioner", lambda o: o.get("provisioner", "")),
    _col("ReclaimPolicy", lambda o: o.get("reclaimPolicy", "")),
    _col("VolumeBindingMode", lambda o: o.get("volumeBindingMode", "")),
    _col("AllowVolumeExpansion", lambda o: bool(o.get("allowVolumeExpansion")), "boolean"),
    AGE,
)
PERSISTENT_VOLUME_CLAIM_COLUMNS = (
    NAME,
    _col("Status", lambda o: "Terminating" if o["metadata"].get("deletionTimestamp") else _status(o).get("phase", "")),
    _col("Volume", lambda o: _spec(o).get("volumeName", "")),
    _col("Capacity", lambda o: (_status(o).get("capacity") or {}).get("storage", "")),
    _col("Access Modes", lambda o: ",".join(_MODES.get(m, m) for m in _status(o).get("accessModes") or ())),
    _col("StorageClass", lambda o: _spec(o).get("storageClassName", "")),
    _col("VolumeAttributesClass", lambda o: _spec(o).get("volumeAttributesClassName") or "<unset>"),
    AGE,
    _col("VolumeMode", lambda o: _spec(o).get("volumeMode") or "<unset>", priority=1),
)


def _pod_group_workload(group: Json) -> str:
    reference = (group.get("spec") or {}).get("podGroupTemplateRef") or {}
    return str((reference.get("workload") or {}).get("workloadName") or "<none>")


def _pod_group_status(group: Json) -> str:
    conditions = {c.get("type"): c for c in (group.get("status") or {}).get("conditions") or ()}
    if (target := conditions.get("DisruptionTarget")) is not None:
        return str(target.get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
