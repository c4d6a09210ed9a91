"""A template as its typed object would be written: a copy in which an optional field with nothing in it is left out.

The reference passes templates through typed structs, so `value: ""` or `maxRestarts: 0` is the same as no such field,
while a field that knows "unset" (a pointer there) keeps its zero, and amounts are canonical. Both spellings of one
template must give the same bytes, and a patch with an empty list must not empty the list it is merged into. Fields we
do not know are never touched.
"""

from __future__ import annotations

from typing import Any

from trainwright.schema.quantity import QuantityError, parse_quantity

# Optional scalars whose zero means "not set", by the field their object stands in. Everything else keeps its zero:
# most booleans and numbers of a pod are pointers in the API, and `runAsUser: 0` is a wish.
_CONTAINER = {
    *("image", "workingDir", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
    *("stdin", "stdinOnce", "tty"),
}
_PROBE = {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"}
_UNSET_AT_ZERO: dict[str, set[str]] = {
    "failurePolicy": {"maxRestarts"},
    "network": {"subdomain"},
    "coordinator": {"jobIndex", "podIndex"},
    "replicatedJobs": {"groupName"},
    "spec": {
        *("restartPolicy", "dnsPolicy", "serviceAccountName", "serviceAccount", "nodeName", "hostname", "subdomain"),
        *("schedulerName", "priorityClassName", "hostNetwork", "hostPID", "hostIPC"),
    },
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ports": {"name", "hostPort", "hostIP", "protocol"},
    "env": {"value"},
    "volumeMounts": {"readOnly", "subPath", "subPathExpr"},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "httpGet": {"path", "host", "scheme"},
    "tcpSocket": {"host"},
    "fieldRef": {"apiVersion"},
    "configMapKeyRef": {"name"},
    "secretKeyRef": {"name"},
    "configMapRef": {"name"},
    "secretRef": {"name"},
    "imagePullSecrets": {"name"},
    "configMap": {"name"},
    "secret": {"secretName"},
    "emptyDir": {"medium"},
    "persistentVolumeClaim": {"readOnly"},
    "nfs": {"readOnly"},
    "serviceAccountToken": {"audience"},
    "tolerations": {"key", "operator", "value", "effect"},
    "metadata": {"name", "generateName", "namespace"},
}
_NOTHING: set[str] = set()
_AMOUNTS = frozenset({"limits", "requests", "overhead"})
_FREE_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels"}) | _AMOUNTS
_EMPTY_IN_PATCH = _FREE_MAPS | {"metadata", "spec", "template"}


def sparse(node: Any, owner: str = "", *, is_patch: bool = False) -> Any:
    """A deep copy of a JSON value without unset fields; `owner` is the field it stands in.

    In a patch an empty list or map says nothing either, since it could only be read as "make it empty".
    """
    if isinstance(node, dict):
        if owner in _AMOUNTS:
            return {name: amount(value) for name, value in node.items()}
        if owner in _FREE_MAPS:
            return dict(node)
        copy = {}
        unset_at_zero = _UNSET_AT_ZERO.get(owner, _NOTHING)
        for name, value in node.items():
            if value is None or (is_patch and (value == [] or (value == {} and name in _EMPTY_IN_PATCH))):
                continue
            if not value and name in unset_at_zero and not isinstance(value, dict | list):
                continue
            if name == "resourceFieldRef" and isinstance(value, dict):
                value = {**value, "divisor": amount(value.get("divisor", "0"))}
            elif name == "sizeLimit":
                value = amount(value)
            copy[name] = sparse(value, name, is_patch=is_patch)
        return copy
    if isinstance(node, list):
        return [sparse(item, owner, is_patch=is_patch) for item in node]
    return node


def amount(value: Any) -> Any:
    """A quantity as the API writes it; what is none stays as it is, for validation to judge."""
    try:
        return str(parse_quantity(value)) if isinstance(value, str | int | float) else value
    except QuantityError:
        return value
